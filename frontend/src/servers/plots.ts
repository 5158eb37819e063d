// Charts of the chosen jobs: volume against bandwidth, distributions, and the machine's week.
import { colour, css, rampAt, rgb } from "../shared/colours.ts";
import { largest } from "../shared/curves.ts";
import { el } from "../shared/dom.ts";
import type { Pen } from "../shared/pen.ts";
import { drawLine, drawRule, Plot, type Frame, type Scale } from "../shared/plot.ts";
import { swatch } from "../shared/shell.ts";
import { bytes, plural, rate, share } from "../shared/units.ts";
import { data, DIRECTIONS, distribution, jobs, known, MEASURES, measured, powers, TONE, type Direction } from "./machine.ts";

const BINS = 36, WEEKDAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

// ---- Volume against maximum bandwidth: each cell counts jobs ----

interface Heat { x: [number, number]; y: [number, number]; peak: number; cells: Map<number, number[]>; most: number; moving: number }
let picked: number[] = [];
const heats = new Map<Direction, Heat>();

export function setJobs(list: number[]): void {
  picked = list;
  heats.clear();
}

function heatOf(direction: Direction): Heat {
  const made = heats.get(direction);
  if (made) return made;
  const { bytes: volume, max_bandwidth: speed } = jobs[direction], moving = picked.filter((job) => (volume[job] ?? 0) > 0 && (speed[job] ?? 0) > 0), peak = data.peaks[direction] ?? largest(moving.map((job) => speed[job]));
  const x = powers(moving.map((job) => volume[job]!)), y = powers([...moving.map((job) => speed[job]!), ...(peak > 0 ? [peak] : [])]), cells = new Map<number, number[]>();
  const bin = (value: number, [low, high]: [number, number]): number => Math.min(BINS - 1, Math.max(0, Math.floor(Math.log(value / low) / Math.log(high / low) * BINS)));
  for (const job of moving) { const key = bin(volume[job]!, x) * BINS + bin(speed[job]!, y), held = cells.get(key); if (held) held.push(job); else cells.set(key, [job]); }
  const heat = { x, y, peak, cells, most: largest([...cells.values()].map((held) => held.length)), moving: moving.length };
  heats.set(direction, heat);
  return heat;
}

export function heatPlot(direction: Direction, chosen: () => string, choose: (cell: string) => void): Plot {
  const scale = (range: [number, number], kind: "bytes" | "rate", title: string): Scale => ({ low: range[0], high: range[1], kind, log: true, title });
  const keyAt = (x: number, y: number): number => { const heat = heatOf(direction), bin = (value: number, [low, high]: [number, number]): number => Math.floor(Math.log(value / low) / Math.log(high / low) * BINS); return bin(x, heat.x) * BINS + bin(y, heat.y); };
  return new Plot({
    label: `${direction}: volume against maximum bandwidth`, title: `${direction}: each cell counts jobs`, height: 270,
    x: () => scale(heatOf(direction).x, "bytes", "volume of a job"), y: () => scale(heatOf(direction).y, "rate", "maximum bandwidth"),
    draw: (pen, frame) => drawHeat(pen, frame, direction, chosen()),
    tip: (x, y) => { const held = heatOf(direction).cells.get(keyAt(x, y)); return held ? { title: plural(held.length, "job"), facts: [["such as", jobs.id[held[0]]], ["volume", bytes(jobs[direction].bytes[held[0]])], ["at most", rate(jobs[direction].max_bandwidth[held[0]])]] } : null; },
    click: (x, y) => { const key = `${direction}:${keyAt(x, y)}`; choose(heatOf(direction).cells.has(keyAt(x, y)) && chosen() !== key ? key : ""); },
  });
}

function drawHeat(pen: Pen, frame: Frame, direction: Direction, chosen: string): void {
  const { cells, most, peak } = heatOf(direction), wide = frame.width / BINS, tall = frame.height / BINS;
  for (const [key, held] of cells) {
    const x = frame.left + Math.floor(key / BINS) * wide, y = frame.top + frame.height - (key % BINS + 1) * tall;
    pen.fillStyle = css(rampAt(0.35 + 0.65 * Math.log(held.length) / Math.log(Math.max(10, most))));
    pen.fillRect(x, y, wide, tall);
    if (chosen === `${direction}:${key}`) { pen.strokeStyle = colour("--c2"); pen.lineWidth = 2; pen.strokeRect(x, y, wide, tall); }
  }
  if (peak > 0) drawRule(pen, frame, "y", peak, data.peaks[direction] ? `peak ${rate(peak)}` : `highest seen ${rate(peak)}`);
}

export const jobsOfCell = (cell: string): number[] | null => { const [direction, key] = cell.split(":"); return cell ? heatOf(direction as Direction).cells.get(Number(key)) ?? [] : null; };
export const movingJobs = (direction: Direction): number => heatOf(direction).moving;

// ---- Share of jobs at or below a value ----

export function amountPlot(kind: "bytes" | "max_bandwidth"): Plot {
  const values = (direction: Direction): number[] => known(picked.map((job) => jobs[direction][kind][job])).filter((value) => value > 0);
  return new Plot({
    label: `Share of jobs at or below a ${kind === "bytes" ? "volume" : "bandwidth"}`, title: kind === "bytes" ? "share of jobs that move at most" : "share of jobs that never exceed", height: 170,
    x: () => { const [low, high] = powers(DIRECTIONS.flatMap(values)); return { low, high, kind: kind === "bytes" ? "bytes" : "rate", log: true }; }, y: () => ({ low: 0, high: 1, kind: "share" }),
    draw: (pen, frame) => { for (const direction of DIRECTIONS) { const { x, y } = distribution(values(direction)); drawLine(pen, frame, x, y, { tone: TONE[direction] }); } },
    tip: (at) => ({ title: kind === "bytes" ? bytes(at) : rate(at), facts: DIRECTIONS.map((direction) => { const all = values(direction); return [direction, share(all.length ? all.filter((value) => value <= at).length / all.length : null)]; }) }),
  });
}

export function measurePlot(direction: Direction, measure: string): Plot {
  const values = (n: number): number[] => known(picked.map((job) => measured(direction, measure, n)[job]));
  return new Plot({
    label: `${direction}: ${MEASURES[measure]}, share of jobs at or below a value`, title: `${direction}: ${MEASURES[measure]}`, height: 170,
    x: () => ({ low: 0, high: 1, kind: "number" }), y: () => ({ low: 0, high: 1, kind: "share" }),
    draw: (pen, frame) => data.thresholds.forEach((_, n) => { const { x, y } = distribution(values(n)); drawLine(pen, frame, [0, ...x, 1], [0, ...y, 1], { tone: `--f${n + 1}`, dashed: n % 2 === 1 }); }),
    tip: (at) => ({ title: `at or below ${at.toFixed(2)}`, facts: data.thresholds.map((threshold, n) => { const all = values(n); return [`c = ${bytes(threshold)}`, share(all.length ? all.filter((value) => value <= at).length / all.length : null)]; }) }),
  });
}

export const thresholdLegend = (): HTMLElement => el("p", { class: "legend" }, ...data.thresholds.map((threshold, n) => swatch(`c = ${bytes(threshold)}`, `--f${n + 1}`)));

// ---- The week ----

export function weekPlot(direction: Direction): Plot {
  const rows = data.profile[direction], most = largest(rows.flat()) || 1, cell = (x: number, y: number): [number, number] => [Math.floor(x), 6 - Math.floor(y)];
  return new Plot({
    label: `${direction} by weekday and hour`, title: `${direction}: mean rate by hour (${data.profile.timezone}), up to ${rate(most)}; grey: not recorded`, height: 190,
    x: () => ({ low: 0, high: 24, kind: "count", title: "hour" }), y: () => ({ low: 0, high: 7, kind: "names", names: WEEKDAYS.slice().reverse() }),
    draw: (pen, frame) => rows.forEach((row, day) => row.forEach((value, hour) => {
      pen.fillStyle = value === null ? colour("--faded") : css(rampAt(Math.sqrt(value / most)));
      if (value === null || value > 0) pen.fillRect(frame.x(hour) + 0.5, frame.y(7 - day) + 0.5, frame.width / 24 - 1, frame.height / 7 - 1);
    })),
    tip: (x, y) => { const [hour, day] = cell(x, y), value = rows[day]?.[hour]; return value === undefined ? null : { title: `${WEEKDAYS[day]} ${String(hour).padStart(2, "0")}:00`, facts: [["mean rate", value === null ? "not recorded" : rate(value)]] }; },
  });
}

// ---- Whose bytes ----

const PARTS = { attributed: "attributed to one job", shared: "shared by several jobs", unattributed: "no job of the list" } as const;
const PART_TONES = ["--c3", "--f5", "--rest"];

export function partsOf(direction: Direction): HTMLElement {
  const totals = data.machine[direction];
  if (!totals.bytes) return el("div", { class: "block" }, el("b", {}, `${direction}: nothing moved by the servers`));
  const bar = el("div", { class: "parts" }), legend = el("p", { class: "legend" });
  Object.entries(PARTS).forEach(([part, name], n) => {
    const amount = totals[part as keyof typeof PARTS], piece = el("span", { title: `${name}: ${bytes(amount)}` });
    piece.style.flexGrow = String(amount / totals.bytes);
    piece.style.background = css(rgb(PART_TONES[n]));
    bar.append(piece);
    legend.append(swatch(`${name}: ${bytes(amount)}, ${share(amount / totals.bytes)}`, PART_TONES[n]));
  });
  return el("div", { class: "block" }, el("b", {}, `${direction}: ${bytes(totals.bytes)} moved by the servers`), bar, legend, totals.outside > 0 ? el("p", { class: "hint" }, `${bytes(totals.outside)} of what no job of the list explains were moved before the first or after the last job of the list.`) : null);
}

