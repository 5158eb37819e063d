// Charts that are tracks: phases, bandwidth, calls in flight, storage targets, offsets in a file.
import { colour, FONT, rgb } from "../shared/colours.ts";
import { acrossOf, drawImage, drawNote, drawSpan, drawSteps, drawUpward, heatImage, largest, type Box, type Series, type TickName } from "../shared/curves.ts";
import { amountTicks } from "../shared/ticks.ts";
import type { Pen } from "../shared/pen.ts";
import type { Facts } from "../shared/tooltip.ts";
import { bytes, clock, count, duration, rate } from "../shared/units.ts";
import { eachStretch, endOf, extentOf, hasPlace, timeOf } from "./marks.ts";
import type { Job, PhaseOf } from "./model.ts";
import { movedBytes, spread, type Counted } from "./raster.ts";
import type { Chart } from "./rows.ts";
import { shortName } from "../shared/paths.ts";

const COLUMNS = 700; // of a curve: more than a screen needs
export const PHASE_TONES: Record<string, string> = { read: "--c1", write: "--c2", metadata: "--c3" };
interface Curves { key: string; low: number; high: number; series: Series[]; most: number }
const kept = new Map<string, Curves>();
export const forgetCurves = (): void => kept.clear();

export function chartsOf(job: Job): Chart[] {
  const layers = phaseLayers(job), list: Chart[] = [];
  if (layers.length) list.push({ id: "phases", title: "phases", height: 6 + 14 * layers.length, open: true });
  if (job.marks.count) list.push({ id: "bandwidth", title: "bandwidth", height: 66, open: true });
  if (job.marks.count && job.data.timeline.source === "calls") list.push({ id: "concurrency", title: "calls in flight", height: 44, open: true });
  if (job.data.rhythm?.period) list.push({ id: "period", title: "period", height: 48, open: false });
  if (job.targets.length) list.push({ id: "targets", title: "storage targets", height: Math.max(40, Math.min(120, 4 + 8 * job.targets.length)), open: false });
  if (job.marks.count && job.data.timeline.source === "calls") list.push({ id: "offsets", title: "file offsets", height: 90, open: false });
  return list;
}

// A layer that shows less of the written bytes than this share of the most was not recorded whole; see model/layers.py.
const LEAST_SEEN = 0.5;

// The layers at which reads and writes count: the lowest that shows them, so that no byte counts twice.
function countedLayers(job: Job): Counted {
  const moved = [new Map<number, number>(), new Map<number, number>()], { marks } = job;
  for (let s = 0; s + 1 < marks.streams.length; s += 1) {
    const first = marks.streams[s], layer = marks.layer[first];
    if (marks.operation[first] > 1) continue;
    let sum = 0;
    for (let i = first; i < marks.streams[s + 1]; i += 1) sum += marks.bytes[i];
    if (sum > 0) moved[marks.operation[first]].set(layer, (moved[marks.operation[first]].get(layer) ?? 0) + sum);
  }
  const height = (layer: number): number => job.data.heights[job.data.layers[layer]] ?? 0;
  return moved.map((sums, operation) => {
    const least = operation === 1 ? LEAST_SEEN * Math.max(...sums.values()) : 0, seen = [...sums].filter(([, size]) => size >= least).map(([layer]) => layer), lowest = Math.min(...seen.map(height));
    return new Set(seen.filter((layer) => height(layer) === lowest));
  });
}

let countedFor = -1, counted: Counted = [];
export function countedOf(job: Job): Counted {
  if (countedFor !== job.version) { counted = countedLayers(job); countedFor = job.version; }
  return counted;
}

// Curves are kept for what is said where the pointer is.
function curvesOf(job: Job, id: string, low: number, high: number): Curves {
  const key = `${job.version} ${low} ${high}`, known = kept.get(id);
  if (known?.key === key) return known;
  const wide = (high - low) / COLUMNS, layers = countedOf(job), main = job.mainLayer();
  const of = (operation: number): Float64Array => spread(job, low, high, COLUMNS, 1, (from) => job.marks.operation[from] === operation ? 0 : -1, movedBytes(job, layers)).map((value) => value / wide);
  const series = id === "bandwidth"
    ? [{ name: "read", tone: "--c1", values: of(0) }, { name: "written", tone: "--c2", values: of(1) }]
    : [{ name: "calls in flight", tone: "--c3", values: spread(job, low, high, COLUMNS, 1, (from) => job.marks.layer[from] === main && job.isIo(from) ? 0 : -1, (i) => (job.marks.busy ? job.marks.busy[i] : job.marks.duration[i]) * job.marks.tick).map((value) => value / wide) }];
  // Calls in flight are a mean over each column: the axis of one rank's calls still reaches a whole call, its only tick.
  const top = Math.max(0, ...series.map((one) => largest(one.values))), most = top > 0 && id !== "bandwidth" ? Math.max(1, top) : top;
  const made = { key, low, high, series: series.filter((one) => largest(one.values) > 0), most };
  kept.set(id, made);
  return made;
}

export interface ChartContext { job: Job; log: boolean; file: number; height: number; names: TickName[] }

export function drawChart(pen: Pen, id: string, box: Box, context: ChartContext): void {
  if (id === "phases") drawPhases(pen, box, context);
  else if (id === "period") drawPeriod(pen, box, context);
  else if (id === "targets") drawTargets(pen, box, context);
  else if (id === "offsets") drawOffsets(pen, box, context);
  else drawCurves(pen, id, box, context);
}

function drawCurves(pen: Pen, id: string, box: Box, { job, log, height, names }: ChartContext): void {
  const { low, high, series, most } = curvesOf(job, id, box.low, box.high);
  drawSteps(pen, box, height, { start: low, step: (high - low) / COLUMNS, series, most }, id === "bandwidth" ? "rate" : "count", names, log && id === "bandwidth");
}

// Steps of the program are not phases of its I/O.
const phaseLayers = (job: Job): string[] => Object.keys(job.data.phases).filter((layer) => layer !== "application" && job.data.phases[layer].phases.length).sort((a, b) => job.data.heights[b] - job.data.heights[a]);

function drawPhases(pen: Pen, box: Box, { job }: ChartContext): void {
  pen.font = FONT;
  pen.textAlign = "left";
  phaseLayers(job).forEach((layer, n) => {
    const top = box.top + 3 + 14 * n;
    job.data.phases[layer].phases.forEach((phase, number) => drawSpan(pen, box, phase.start, phase.end, top, 12, rgb(PHASE_TONES[phase.kind] ?? "--c5"), `${job.data.titles[layer] ?? layer} ${phase.kind} ${number + 1}`));
    const next = job.data.rhythm?.next;
    if (next && n === 0 && next.start < box.high && next.end > box.low) {
      const from = (next.start - box.low) / (box.high - box.low) * box.width, to = (next.end - box.low) / (box.high - box.low) * box.width;
      pen.strokeStyle = colour("--ink");
      pen.strokeRect(box.left + from, top, Math.max(2, to - from), 12);
    }
  });
}

// The phase at a time, or the closest within `slack` seconds: a phase may be narrower than a pointer can hit.
export function phaseAt(job: Job, time: number, y: number, slack: number): PhaseOf | null {
  const layers = phaseLayers(job), layer = layers[Math.min(layers.length - 1, Math.max(0, Math.floor((y - 3) / 14)))];
  let best: PhaseOf | null = null, closest = slack;
  for (const one of layer ? job.data.phases[layer].phases : []) { const away = Math.max(0, one.start - time, time - one.end); if (away <= closest) { best = { ...one, layer }; closest = away; if (!away) break; } }
  return best;
}

// The signal whose period was found, a line where each of its phases begins, and the next one that is due.
function drawPeriod(pen: Pen, box: Box, { job, height }: ChartContext): void {
  const { signal, period, starts, next } = job.data.rhythm!, bottom = box.top + height - 2, most = largest(signal.values.map((value) => value ?? 0)) || 1;
  const x = acrossOf(box);
  pen.fillStyle = colour("--c6");
  signal.values.forEach((value, n) => { if (value) { const tall = (height - 16) * value / most; pen.fillRect(x(signal.start + n * signal.step), bottom - tall, Math.max(1, x(signal.start + signal.step) - x(signal.start)), tall); } });
  pen.fillStyle = colour("--ink");
  for (const start of starts) if (start >= box.low && start <= box.high) pen.fillRect(x(start), box.top + 12, 1, height - 14);
  if (next) { pen.strokeStyle = colour("--ink"); pen.strokeRect(x(next.start), box.top + 12, Math.max(2, x(next.end) - x(next.start)), height - 15); }
  drawNote(pen, { ...box, top: box.top - height / 2 + 6 }, `every ${duration(period!.seconds)}; lines: where its phases begin${next ? "; box: the next one" : ""}`, height);
}

const keptTargets: { key: string; sums: Float64Array; low: number; high: number } = { key: "", sums: new Float64Array(0), low: 0, high: 1 };

function targetSums(job: Job, box: Box): typeof keptTargets {
  const key = `${job.version} ${box.low} ${box.high}`;
  if (keptTargets.key === key) return keptTargets;
  const targets = job.targets, place = new Map(targets.map((target, n) => [target, n])), columns = 400, layers = countedOf(job), sums = new Float64Array(targets.length * columns), moved = movedBytes(job, layers);
  const { marks } = job, scale = columns / (box.high - box.low);
  eachStretch(marks, box.low, box.high, (from, to) => {
    if (!job.data.stripes[marks.file[from]]) return;
    for (let i = from; i < to; i += 1) {
      const amount = moved(i), on = amount > 0 ? job.targetsOf(i) : [];
      if (!on.length) continue;
      const a = Math.max(0, (timeOf(marks, i) - box.low) * scale), b = Math.min(columns, (endOf(marks, i) - box.low) * scale), each = amount / on.length / Math.max(1, (b | 0) - (a | 0) + 1);
      for (const target of on) { const row = place.get(target)! * columns; for (let p = a | 0; p <= Math.min(columns - 1, b | 0); p += 1) sums[row + p] += each; }
    }
  });
  Object.assign(keptTargets, { key, sums, low: box.low, high: box.high });
  return keptTargets;
}

function drawTargets(pen: Pen, box: Box, { job, height, names }: ChartContext): void {
  const { sums, low, high } = targetSums(job, box), targets = job.targets, most = largest(sums), tall = height - 4;
  if (!most) { drawNote(pen, box, "no bytes in view", height); return; }
  const scale = box.width / (box.high - box.low);
  drawImage(pen, heatImage(sums, sums.length / targets.length, targets.length, most), box.left + (low - box.low) * scale, box.top + 2, (high - low) * scale, tall);
  const each = tall / targets.length, every = Math.max(1, Math.ceil(13 / each));
  for (let n = 0; n < targets.length; n += every) names.push({ text: String(targets[n]), y: box.top + 2 + n * each + Math.max(5, each / 2) });
}

export function targetFacts(job: Job, box: Box, time: number, y: number, height: number): { target: number; facts: Facts } | null {
  const targets = job.targets, n = Math.floor((y - 2) / ((height - 4) / targets.length)), target = targets[n];
  if (target === undefined) return null;
  const { sums, low, high } = targetSums(job, box), columns = sums.length / targets.length, column = Math.floor((time - low) / (high - low) * columns);
  const total = sums.subarray(n * columns, (n + 1) * columns).reduce((sum, value) => sum + value, 0);
  return { target, facts: [["here", bytes(sums[n * columns + column] ?? 0)], ["in view", bytes(total)]] };
}

// The file whose offsets are drawn: the highlighted one, else the one with most bytes.
export function offsetFile(job: Job, wanted: number): number {
  if (wanted >= 0) return wanted;
  const moved = new Map<number, number>(), { marks } = job;
  for (let s = 0; s + 1 < marks.streams.length; s += 1) {
    const i = marks.streams[s];
    if (marks.file[i] < 0 || !hasPlace(marks, i)) continue;
    let sum = 0;
    for (let k = i; k < marks.streams[s + 1]; k += 1) sum += marks.bytes[k];
    moved.set(marks.file[i], (moved.get(marks.file[i]) ?? 0) + sum);
  }
  return [...moved].sort((a, b) => b[1] - a[1])[0]?.[0] ?? -1;
}

let offsetsFor = -1, offsetsOf = -1;

function drawOffsets(pen: Pen, box: Box, { job, file, height, names }: ChartContext): void {
  if (file < 0 && offsetsFor !== job.version) { offsetsOf = offsetFile(job, -1); offsetsFor = job.version; }
  const wanted = file >= 0 ? file : offsetsOf, { marks } = job, layers = countedOf(job), bottom = box.top + height - 2, tall = height - 18;
  let reach = 0;
  for (let s = 0; s + 1 < marks.streams.length; s += 1) if (marks.file[marks.streams[s]] === wanted) for (let i = marks.streams[s]; i < marks.streams[s + 1]; i += 1) if (hasPlace(marks, i)) reach = Math.max(reach, marks.offset[i] + extentOf(marks, i));
  if (!reach) { drawNote(pen, box, "no offsets are recorded", height); return; }
  drawUpward(pen, box, amountTicks(reach, "bytes", 3), (value) => bottom - tall * value / reach, names);
  const tones = [colour("--c1"), colour("--c2")], scale = box.width / (box.high - box.low);
  eachStretch(marks, box.low, box.high, (from, to) => {
    if (marks.file[from] !== wanted || marks.operation[from] > 1 || !layers[marks.operation[from]].has(marks.layer[from])) return;
    pen.fillStyle = tones[marks.operation[from]];
    let last = -1;
    for (let i = from; i < to; i += 1) {
      const x = Math.max(0, (timeOf(marks, i) - box.low) * scale), wide = Math.max(1.5, Math.min(box.width, (endOf(marks, i) - box.low) * scale) - x), y = bottom - tall * (marks.offset[i] + extentOf(marks, i)) / reach, high = Math.max(1.5, tall * extentOf(marks, i) / reach);
      const cell = Math.round(x) * 4096 + Math.round(y);
      if (cell === last) continue;
      last = cell;
      pen.fillRect(box.left + x, y, wide, high);
    }
  });
  pen.font = FONT;
  pen.textAlign = "left";
  pen.fillStyle = colour("--dim");
  pen.fillText(shortName(job.fileName(wanted), 60), box.left + 60, box.top + 11);
}

export function curveFacts(job: Job, id: string, box: Box, time: number): Facts {
  const curves = kept.get(id);
  if (!curves || !job.marks.count) return [];
  const n = Math.floor((time - curves.low) / (curves.high - curves.low) * COLUMNS);
  return [["at", clock(time, (box.high - box.low) / 1000)], ...(job.counters ? [["shown", "average from first to last call"] as [string, string]] : []), ...curves.series.map(({ name, values }): [string, string] => [name, id === "bandwidth" ? rate(values[n]) : count(values[n])])];
}

export function phaseFacts(job: Job, phase: PhaseOf): Facts {
  const facts: Facts = [["from", `${clock(phase.start)} for ${duration(phase.end - phase.start)}`], ["ranks", count(phase.ranks)], ["calls", count(phase.operations)], ["moved", bytes(phase.bytes)]];
  if (phase.slowest.rank !== null) facts.push(["slowest", `${job.rankName(phase.slowest.rank)}: ${duration(phase.slowest.time)} in I/O`]);
  if (phase.fastest.rank !== null) facts.push(["fastest", `${job.rankName(phase.fastest.rank)}: ${duration(phase.fastest.time)} in I/O`]);
  return facts;
}
