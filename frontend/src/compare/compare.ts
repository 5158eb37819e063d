// The page of `compare`: two runs aligned by phase, the difference coloured, the potential saving beside the measured one.
import { shortName } from "../shared/paths.ts";
import { TimeAxis } from "../shared/axis.ts";
import { colour, css, FONT, rgb } from "../shared/colours.ts";
import { acrossOf, drawHatch, drawNote, drawSpan, drawSteps, largest, imageSheet, type Box, type Series, type TickName } from "../shared/curves.ts";
import { button, byId, el, narrowScreen, select } from "../shared/dom.ts";
import type { Pen } from "../shared/pen.ts";
import { card, swatch, TrackPage } from "../shared/shell.ts";
import { Link, SHELL_VIEW, type ShellView } from "../shared/state.ts";
import { sheetTable } from "../shared/tables.ts";
import type { Tip, Track } from "../shared/tracks.ts";
import { track } from "../shared/tracks.ts";
import { bytes, clock, count, duration, rate, share, span } from "../shared/units.ts";
import { callFacts, callTitle } from "../workbench/calls.ts";
import { countedOf, phaseFacts, PHASE_TONES } from "../workbench/charts.ts";
import { callInLanes, lanesOf } from "../workbench/lanes.ts";
import { decodeMarks, fromBase64, inflate } from "../workbench/marks.ts";
import { Job, type PhaseOf } from "../workbench/model.ts";
import { paintOf, type Paint } from "../workbench/paint.ts";
import { imageOf, movedBytes, rasterise, spread } from "../workbench/raster.ts";
import { summarise, type Amounts, type Summary } from "../workbench/summary.ts";
import type { PageData } from "../workbench/types.ts";
import { endOfAll, placeSegments, secondAt, segmentAt, SIDES, slicesOf, stepsOnAxis, type Placed, type Segment, type Side } from "./aligned.ts";

interface Difference { before: number; after: number; saved: number; low: number | null; high: number | null }
interface Cause { code: string; title: string; before: number; low: number; high: number; after: number; removed: boolean }
interface Line { level: string; title: string; stake: string }
interface RunData extends PageData { name: Side; all: { source: string; seconds: number | null; stall: number | null }[] }
interface CompareData {
  verdict: string; details: string[]; warnings: string[]; run_time: Difference | null; io_stall: Difference | null;
  promise: { seconds: number; low: number; high: number; codes: string[]; removed: boolean } | null; causes: Cause[];
  metrics: string[][]; gone: Line[]; new: Line[]; kept: Line[]; segments: Segment[]; runs: RunData[];
}
interface View extends ShellView { align: string; colour: string }

const COLUMNS = 900; // of a curve: more than a screen needs
const NOTICEABLE = 0.01; // of the longer run: differences below are not listed
const LISTED = 8;
const FEW = 3; // on a phone, where the tracks come after the list
const MANIFOLD = 10; // from here on, a factor reads better than a percentage
const SAVED = "--gain", LOST = "--loss"; // green and purple of ColorBrewer's PRGn: colour-blind readers tell them apart
const MISSING = { warnings: [], verdict: { line: "", first: null }, facts: [], diagnosis: null, findings: [], rhythm: null, tables: [] };

const data = JSON.parse(byId("data").textContent ?? "{}") as CompareData;
const signed = (seconds: number): string => `${duration(Math.abs(seconds))} ${seconds >= 0 ? "saved" : "lost"}`;

class RunView {
  readonly job: Job;
  paint: Paint | null = null;

  constructor(readonly side: Side, readonly run: RunData) { this.job = new Job({ ...MISSING, ...run }); }

  async load(): Promise<void> {
    const { timeline } = this.run;
    if (timeline.count && timeline.data && timeline.columns) this.job.adopt(decodeMarks(timeline as Parameters<typeof decodeMarks>[0], await inflate(fromBase64(timeline.data))));
    delete timeline.data;
  }

  // Bytes per second of the run's seconds between two points.
  rates(low: number, high: number, operation: number): Float64Array {
    const wide = (high - low) / COLUMNS, layers = countedOf(this.job), { job } = this;
    return spread(job, low, high, COLUMNS, 1, (from) => job.marks.operation[from] === operation ? 0 : -1, movedBytes(job, layers)).map((value) => value / wide);
  }
}

class ComparePage {
  private placed: Placed[] = [];
  private readonly axis: TimeAxis;
  private readonly page: TrackPage<View>;
  private curves = "";
  private readonly noticeable = NOTICEABLE * Math.max(...data.runs.map(({ time }) => time[1] - time[0]));
  private readonly kept = new Map<Side, { low: number; step: number; series: Series[] }>();
  private most = 0;

  constructor(private readonly runs: Record<Side, RunView>) {
    this.placed = placeSegments(data.segments, true);
    this.axis = new TimeAxis(Math.min(0, this.placed[0]?.at ?? 0), Math.max(1e-6, endOfAll(this.placed)));
    const link = new Link<View>({ ...SHELL_VIEW, align: "phase", colour: "operation" }, { align: ["phase", "clock"], colour: ["operation", "size", "duration"] });
    const chosen = link.read(location.hash);
    this.page = new TrackPage<View>({
      axis: this.axis, wholeName: "both runs", link,
      top: { subject: SIDES.map((side) => `${side}: ${sources(runs[side].run)}`).join(" · "), verdict: data.verdict, next: data.details.join(" "), warnings: [...data.warnings, ...SIDES.flatMap((side) => runs[side].run.warnings.map((text) => `${side}: ${text}`))] },
      storyName: "What changed", story: this.story(),
      controls: [
        named("align", select("align", [["phase", "by phase"], ["clock", "by clock"]], chosen.align, (align) => this.page.store.set({ align, low: null, high: null, select: null }))),
        named("colour", select("colour", [["operation", "operation"], ["size", "request size"], ["duration", "duration"]], chosen.colour, (value) => this.page.store.set({ colour: value }))),
      ],
      search: { name: "Search phases", matches: (text) => this.placed.filter(({ name }) => name.includes(text.trim().toLowerCase())).slice(0, LISTED * 3).map((one) => ({ kind: signed(one.saved), text: one.name, run: () => this.show(one) })) },
      tracks: (room) => this.tracks(room),
      overview: (pen, box, height) => this.drawDifference(pen, box, height, false),
      tabs: [
        { id: "details", title: "Details", fill: (panel) => this.fillDetails(panel) },
        { id: "phases", title: "Phases", fill: (panel) => this.fillPhases(panel) },
        { id: "numbers", title: "Numbers", fill: fillNumbers },
        { id: "runs", title: "Runs", fill: (panel) => panel.replaceChildren(el("div", { class: "blocks" }, ...SIDES.map((side) => runsOf(this.runs[side].run)))) },
      ],
      commands: [
        { title: "Next phase", keys: ["]"], run: () => this.step(1) },
        { title: "Previous phase", keys: ["["], run: () => this.step(-1) },
        { title: "Show the largest saving", keys: ["1"], run: () => { const first = this.largestChanges()[0]; if (first) this.show(first); } },
      ],
      changed: (changed, view) => this.follow(changed, view),
      moved: () => { if ((this.page.store.view.tab || "details") === "details" && !this.page.store.view.select) this.page.tabs.show("details"); },
    });
    this.page.start(Promise.all(SIDES.map((side) => runs[side].load())));
    Object.assign(window, { ioprism: { page: this.page, axis: this.axis, store: this.page.store, pane: this.page.pane, placed: () => this.placed, jobs: SIDES.map((side) => runs[side].job) } });
  }

  private follow(changed: Set<string>, view: View): void {
    if (changed.has("align")) {
      this.placed = placeSegments(data.segments, view.align === "phase");
      this.curves = "";
      this.page.setWhole(Math.min(0, this.placed[0]?.at ?? 0), Math.max(1e-6, endOfAll(this.placed)));
      byId<HTMLSelectElement>("align").value = view.align;
    }
    if (changed.has("colour") || changed.has("theme")) {
      for (const side of SIDES) this.runs[side].paint = paintOf(this.runs[side].job, view.colour);
      byId<HTMLSelectElement>("colour").value = view.colour;
      this.legend();
    }
  }

  private legend(): void {
    const items = [swatch("seconds saved", SAVED), swatch("seconds lost", LOST)], listed = new Set<string>();
    for (const side of SIDES) {
      const { paint } = this.runs[side];
      paint!.names.forEach((name, n) => { if (paint!.present.has(n) && !listed.has(name)) { listed.add(name); items.push(swatch(name, css(paint!.colours[n]))); } });
    }
    byId("legend").replaceChildren(...items);
  }

  private largestChanges(): Placed[] {
    return placeSegments(data.segments, true).filter(({ saved }) => Math.abs(saved) >= this.noticeable).sort((a, b) => Math.abs(b.saved) - Math.abs(a.saved));
  }

  private show(segment: Placed): void {
    if (this.page.store.view.align !== "phase") this.page.store.set({ align: "phase" });
    const margin = 0.08 * segment.long, low = segment.at, high = segment.at + segment.long;
    this.page.show(low - margin, high + margin);
    this.page.store.set({ low: this.axis.low, high: this.axis.high, select: { low, high, ranks: "" }, tab: "details" });
  }

  private step(by: number): void {
    const phases = this.placed.filter(({ kind }) => kind), { select: chosen } = this.page.store.view, middle = (this.axis.low + this.axis.high) / 2;
    const now = chosen ? phases.findIndex((one) => one.at === chosen.low) : -1;
    const next = now >= 0 ? now + by : by > 0 ? (this.axis.whole ? 0 : phases.findIndex((one) => one.at > middle)) : phases.findLastIndex((one) => one.at < middle);
    if (phases[next]) this.show(phases[next]);
  }

  // ---- The list at the left ----

  private story(): HTMLElement[] {
    const parts: HTMLElement[] = [el("h2", {}, "Potential and measured saving"), this.promise(), el("h2", {}, "Where the time changed")], changes = this.largestChanges();
    if (!changes.length) parts.push(el("p", { class: "calm" }, "No stretch of the run changed noticeably."));
    const largestChange = Math.abs(changes[0]?.saved ?? 1);
    for (const one of changes.slice(0, narrowScreen() ? FEW : LISTED)) {
      const made = button("", () => this.show(one), { class: `card change ${one.saved >= 0 ? "saved" : "lost"}` }), bar = el("span", { class: "cost" });
      bar.style.width = `${Math.max(2, 100 * Math.abs(one.saved) / largestChange)}%`;
      bar.style.background = `var(${one.saved >= 0 ? SAVED : LOST})`;
      made.append(el("span", { class: "what" }, one.name), el("span", { class: "stake" }, `${signed(one.saved)}: ${duration(one.before[1] - one.before[0])} → ${duration(one.after[1] - one.after[0])}`), bar);
      parts.push(made);
    }
    for (const [title, list] of [["Findings that are gone", data.gone], ["New findings", data.new], ["Findings of both", data.kept]] as const) {
      if (list.length) parts.push(el("details", { class: "more", open: !narrowScreen() }, el("summary", {}, el("h2", {}, `${title} (${list.length})`)), el("ul", { class: "findings" }, ...list.map((one) => el("li", {}, one.title, one.stake ? el("span", { class: "hint" }, ` ${one.stake}`) : null)))));
    }
    return parts;
  }

  private promise(): HTMLElement {
    const { promise, run_time: time } = data, most = Math.max(promise?.high ?? 0, Math.abs(time?.saved ?? 0), Math.abs(time?.high ?? 0), 1e-9), lines: HTMLElement[] = [];
    if (promise) lines.push(measure("potential saving", promise.seconds, promise.low, promise.high, most, "--c5"));
    if (time) lines.push(measure(time.saved >= 0 ? "saved" : "longer by", Math.abs(time.saved), time.low, time.high, most, time.saved >= 0 ? SAVED : LOST));
    const rows = data.causes.map((cause) => el("tr", {}, el("th", { scope: "row", class: "words" }, cause.title), el("td", {}, duration(cause.before)), el("td", {}, cause.after ? duration(cause.after) : "gone")));
    const table = rows.length ? el("table", { class: "contrast" }, el("thead", {}, el("tr", {}, ...["cause", "before", "after"].map((text) => el("th", { scope: "col" }, text)))), el("tbody", {}, ...rows)) : el("p", { class: "hint" }, "No cause was diagnosed before the change.");
    const state = !promise ? "" : promise.removed ? `removed: ${promise.codes.join(", ")}` : `not removed: ${promise.codes.join(", ")}`;
    return card(state || "No saving was predicted", "", [...lines, table], { open: true, level: time && time.saved < 0 ? "medium" : "" });
  }

  // ---- Tracks ----

  private tracks(room: number): Track[] {
    const each = Math.max(46, Math.min(170, (room - 200) / 2)), list: Track[] = [track("difference", "difference", 34, (pen, box, height) => this.drawDifference(pen, box, height, true), { tip: (at) => this.differenceTip(at), click: (at) => { const one = segmentAt(this.placed, at); if (one) this.show(one); } })];
    for (const side of SIDES) list.push(track(`phases-${side}`, `${side}: phases`, 22, (pen, box) => this.drawPhases(pen, box, side), { tip: (at) => this.phaseTip(side, at), click: (at) => { const one = segmentAt(this.placed, at); if (one) this.show(one); } }));
    for (const side of SIDES) if (this.runs[side].run.timeline.count) list.push(track(`bandwidth-${side}`, `${side}: bandwidth`, 58, (pen, box, height, names) => this.drawCurve(pen, box, height, names, side), { expandable: true, tip: (at) => this.curveTip(side, at) }));
    for (const side of SIDES) list.push(track(`ranks-${side}`, `${side}: ranks`, each, (pen, box, height, names) => this.drawRanks(pen, box, height, names, side), { expandable: true, tip: (at, y, height) => this.rankTip(side, at, y, height) }));
    return list;
  }

  private drawDifference(pen: Pen, box: Box, height: number, texts: boolean): void {
    const across = acrossOf(box), most = Math.max(1e-9, ...this.placed.map(({ saved }) => Math.abs(saved)));
    for (const one of this.placed) {
      const from = Math.max(box.left, across(one.at)), to = Math.min(box.left + box.width, across(one.at + one.long));
      if (to <= box.left || from >= box.left + box.width) continue;
      const [r, g, b] = rgb(one.saved >= 0 ? SAVED : LOST), changed = Math.abs(one.saved) >= this.noticeable, strength = changed ? Math.abs(one.saved) / most : 0;
      pen.fillStyle = colour("--card");
      pen.fillRect(from, box.top + 2, Math.max(1, to - from - 1), height - 5);
      pen.fillStyle = `rgb(${r} ${g} ${b} / ${(0.45 * Math.sqrt(strength)).toFixed(3)})`;
      pen.fillRect(from, box.top + 2, Math.max(1, to - from - 1), height - 5);
      const tall = (height - 5) * strength; // the bar's height says how much, for readers who see no colour
      pen.fillStyle = css([r, g, b]);
      pen.fillRect(from, box.top + height - 3 - tall, Math.max(1, Math.min(4, to - from - 1)), tall);
      if (!texts || !changed) continue;
      pen.font = FONT;
      pen.textAlign = "left";
      pen.fillStyle = colour("--ink");
      const text = [`${one.name}: ${signed(one.saved)}`, signed(one.saved)].find((words) => pen.measureText(words).width + 14 < to - from);
      if (text) pen.fillText(text, from + 8, box.top + height / 2 + 3);
    }
  }

  private drawPhases(pen: Pen, box: Box, side: Side): void {
    const phases = phasesOf(this.runs[side].job);
    for (const one of this.placed) {
      if (one.at + one.long < box.low || one.at > box.high) continue;
      const [from, to] = one[side], end = one.at + to - from;
      if (one.long > to - from) drawHatch(pen, { ...box, top: box.top + 4 }, end, one.at + one.long, 13, one.saved >= 0 ? SAVED : LOST); // seconds that the other run needs and this one does not
      for (const phase of phases) if (phase.end > from && phase.start < to) drawSpan(pen, box, one.at + Math.max(from, phase.start) - from, one.at + Math.min(to, phase.end) - from, box.top + 4, 13, rgb(PHASE_TONES[phase.kind] ?? "--c5"), one.kind ? one.name : phase.kind);
    }
  }

  private curvesOf(side: Side): { low: number; step: number; series: Series[] } {
    const key = `${this.axis.low} ${this.axis.high} ${this.placed.length}`;
    if (key !== this.curves) {
      this.curves = key;
      this.most = 0;
      for (const one of SIDES) {
        const run = this.runs[one], low = secondAt(this.placed, one, this.axis.low), high = Math.max(low + 1e-9, secondAt(this.placed, one, this.axis.high));
        const series = run.job.marks.count ? [{ name: "read", tone: "--c1", values: run.rates(low, high, 0) }, { name: "written", tone: "--c2", values: run.rates(low, high, 1) }].filter(({ values }) => largest(values) > 0) : [];
        this.most = Math.max(this.most, ...series.map(({ values }) => largest(values)));
        this.kept.set(one, { low, step: (high - low) / COLUMNS, series });
      }
    }
    return this.kept.get(side)!;
  }

  private drawCurve(pen: Pen, box: Box, height: number, names: TickName[], side: Side): void {
    const { low, step, series } = this.curvesOf(side), slices = slicesOf(this.placed, side, box.low, box.high), { edges, numbers } = stepsOnAxis(slices, low, step, { length: COLUMNS });
    drawSteps(pen, box, height, { start: 0, step: 0, edges, most: this.most, series: series.map((one) => ({ ...one, values: numbers.map((n) => n < 0 ? null : one.values[n]) })) }, "rate", names);
  }

  private drawRanks(pen: Pen, box: Box, height: number, names: TickName[], side: Side): void {
    const { job, paint } = this.runs[side], low = secondAt(this.placed, side, box.low), high = secondAt(this.placed, side, box.high), scale = box.width / (box.high - box.low);
    if (!paint || (!job.marks.count && job.data.timeline.count)) return; // still being unpacked
    if (!job.marks.count) { drawNote(pen, box, "This trace has no per-call data to draw.", height); return; }
    const width = Math.max(1, Math.min(4000, Math.round((high - low) * scale))), rows = Math.min(job.ranks, Math.max(1, Math.floor(height - 4))), each = job.ranks / rows, rowOf = new Int32Array(job.ranks + 2).fill(-1);
    for (let rank = -1; rank < job.ranks; rank += 1) rowOf[rank + 1] = Math.max(0, Math.floor(rank / each));
    const layers = new Set(job.ioLayers().length ? job.ioLayers() : job.layersPresent()), grid = { low, high: Math.max(high, low + 1e-12), width, rows, rowOf }, kinds = paint.colours.length;
    const image = imageOf(rasterise(job, grid, layers, paint.category, kinds, null), grid, kinds, paint.colours, new Float32Array(rows).fill(Math.max(1, each)), rgb("--faded"));
    const sheet = imageSheet(image);
    pen.imageSmoothingEnabled = false;
    for (const { from, to, at } of slicesOf(this.placed, side, box.low, box.high)) {
      const first = (from - low) / (high - low) * width, wide = (to - from) / (high - low) * width;
      pen.drawImage(sheet, first, 0, Math.max(1e-3, wide), rows, acrossOf(box)(at), box.top + 2, Math.max(0.5, (to - from) * scale), height - 4);
    }
    const tall = (height - 4) / job.ranks, every = Math.max(1, Math.ceil(15 / tall));
    for (let rank = 0; rank < job.ranks; rank += every) names.push({ text: `rank ${rank}`, y: box.top + 2 + (rank + 0.5) * tall });
  }

  // ---- What the pointer is at ----

  private differenceTip(at: number): Tip | null {
    const one = segmentAt(this.placed, at);
    return one && { title: one.name, facts: [["before", `${duration(one.before[1] - one.before[0])} from ${clock(one.before[0])}`], ["after", `${duration(one.after[1] - one.after[0])} from ${clock(one.after[0])}`], ["difference", signed(one.saved)]] };
  }

  private phaseTip(side: Side, at: number): Tip | null {
    const { job } = this.runs[side], second = secondAt(this.placed, side, at), phase = phasesOf(job).find((one) => second >= one.start && second <= one.end);
    return phase ? { title: `${side}: ${phase.kind} phase`, facts: phaseFacts(job, phase) } : this.differenceTip(at);
  }

  private curveTip(side: Side, at: number): Tip | null {
    const { low, step, series } = this.curvesOf(side), second = secondAt(this.placed, side, at), n = Math.floor((second - low) / step);
    return { title: side, facts: [["at", clock(second, this.axis.span / 1000)], ...series.map(({ name, values }): [string, string] => [name, rate(values[n])])] };
  }

  private rankTip(side: Side, at: number, y: number, height: number): Tip | null {
    const { job } = this.runs[side], rank = Math.max(0, Math.min(job.ranks - 1, Math.floor((y - 2) / (height - 4) * job.ranks))), second = secondAt(this.placed, side, at), slack = 4 * this.axis.span / this.page.pane.width;
    for (const layer of job.marks.count ? [job.mainLayer(), ...job.ioLayers()] : []) {
      const mark = callInLanes(job, lanesOf(job, rank, -1, layer, ""), second, -1, slack);
      if (mark >= 0) return { title: `${side}: ${callTitle(job, mark)}`, facts: callFacts(job, mark) };
    }
    return { title: `${side}: ${job.rankName(rank)}`, facts: [["at", clock(second, this.axis.span / 1000)]] };
  }

  // ---- Panel ----

  private fillDetails(panel: HTMLElement): void {
    const { select: chosen } = this.page.store.view, low = chosen?.low ?? this.axis.low, high = chosen?.high ?? this.axis.high;
    const parts = SIDES.map((side) => { const { job } = this.runs[side], from = secondAt(this.placed, side, low), to = secondAt(this.placed, side, high); return { side, job, from, to, sum: summarise(job, job.mainLayer(), from, to, () => true) }; });
    const lines: [string, (sum: Summary) => number, (value: number) => string][] = [
      ["duration", (sum) => sum.seconds, duration], ["wall time with I/O", (sum) => sum.wall ?? NaN, duration], ["cumulative I/O time", (sum) => sum.busy, duration], ["calls", (sum) => sum.calls, count],
      ["read", (sum) => sum.read, bytes], ["written", (sum) => sum.written, bytes], ["average request", (sum) => sum.requests ? (sum.read + sum.written) / sum.requests : NaN, bytes], ["bandwidth", (sum) => (sum.read + sum.written) / sum.seconds, rate],
    ];
    const timed = parts.every(({ job }) => job.timed), used = timed ? lines : lines.filter(([name]) => ["duration", "read", "written", "bandwidth"].includes(name)); // a bin or a span is no time in calls
    const body = used.map(([name, of, text]) => { const [a, b] = parts.map(({ sum }) => of(sum)); return el("tr", {}, el("th", { scope: "row" }, name), el("td", {}, text(a)), el("td", {}, text(b)), el("td", {}, changeOf(a, b))); });
    const blocks = timed ? [...parts.map(({ side, job, sum }) => topTable(`${side}: slowest ranks`, sum.byRank, (rank) => job.rankName(rank))), ...parts.map(({ side, job, sum }) => topTable(`${side}: files`, sum.byFile, (file) => shortName(job.fileName(file), 24)))] : [];
    const title = `${chosen ? "Selection" : this.axis.whole ? "Both runs" : "In view"}: ${parts.map(({ side, from, to }) => `${side} ${span(from, to)}`).join(", ")}`;
    panel.replaceChildren(el("h3", { id: "in-view", class: "heading" }, title), el("div", { class: "columns" }, el("div", { class: "block" }, el("table", { class: "totals" }, el("thead", {}, el("tr", {}, ...[`totals${parts.every(({ job }) => job.marks.count) ? `, ${[...new Set(parts.map(({ job }) => job.layerTitle(job.mainLayer())))].join(" and ")}` : ""}`, "before", "after", "change"].map((text) => el("th", { scope: "col" }, text)))), el("tbody", {}, ...body))), ...blocks));
  }

  private fillPhases(panel: HTMLElement): void {
    const placed = placeSegments(data.segments, true), columns = [{ name: "stretch", kind: "text" }, { name: "before, from", kind: "time" }, { name: "lasts", kind: "seconds" }, { name: "after, from", kind: "time" }, { name: "lasts after", kind: "seconds" }, { name: "saved", kind: "seconds" }];
    panel.replaceChildren();
    sheetTable(panel, { title: "Stretches", note: "phases that both runs have, in order, and what lies between them", columns, rows: placed.map((one) => [one.name, one.before[0], one.before[1] - one.before[0], one.after[0], one.after[1] - one.after[0], one.saved]) }, (row) => {
      const one = placed.find(({ name }) => name === row[0]);
      return one ? { run: () => this.show(one), chosen: this.page.store.view.select?.low === one.at } : null;
    });
  }
}

// Who takes most time.
function topTable<K>(title: string, sums: Map<K, Amounts>, name: (key: K) => string): HTMLElement | null {
  const rows = [...sums].sort((a, b) => b[1].busy - a[1].busy).slice(0, LISTED).map(([key, amounts]) => el("tr", {}, el("td", { class: "words" }, name(key)), el("td", {}, duration(amounts.busy)), el("td", {}, amounts.bytes ? bytes(amounts.bytes) : "–")));
  return rows.length ? el("div", { class: "block" }, el("table", {}, el("thead", {}, el("tr", {}, ...[title, "time", "moved"].map((text) => el("th", { scope: "col" }, text)))), el("tbody", {}, ...rows))) : null;
}

function changeOf(before: number, after: number): string {
  if (!(before > 0) || !Number.isFinite(after)) return "–";
  if (after >= MANIFOLD * before) return `× ${count(after / before)}`;
  return Math.abs(after / before - 1) < 0.005 ? "same" : `${after >= before ? "+" : "−"}${share(Math.abs(after / before - 1))}`;
}

const sources = (run: RunData): string => run.all.length > 1 ? `${run.all.length} runs` : run.source.join(", ");
const phasesOf = (job: Job): PhaseOf[] => job.phases();

function named(id: string, label: HTMLLabelElement): HTMLLabelElement {
  label.querySelector("select")!.id = id;
  return label;
}

// An amount as a bar with its interval, on a scale that several share.
function measure(name: string, seconds: number, low: number | null, high: number | null, most: number, tone: string): HTMLElement {
  const amount = el("span", { class: "amount" }), scale = el("span", { class: "scale" }, amount), percent = (value: number): string => `${100 * Math.max(0, Math.min(1, value / most))}%`;
  amount.style.width = percent(seconds);
  amount.style.setProperty("--tone", `var(${tone})`);
  if (low !== null && high !== null && high > low) { const line = el("span", { class: "interval" }); line.style.left = percent(low); line.style.width = percent(high - Math.max(0, low)); scale.append(line); }
  return el("div", { class: "measure" }, el("span", {}, name), el("span", {}, `${duration(seconds)}${low !== null && high !== null ? ` (${duration(low)} to ${duration(high)})` : ""}`), scale);
}

function runsOf(run: RunData): HTMLElement {
  const most = Math.max(1e-9, ...data.runs.flatMap(({ all }) => all.map(({ seconds }) => seconds ?? 0)));
  const rows = run.all.map(({ source, seconds, stall }) => {
    const bar = el("span", { class: "bar" });
    bar.style.width = `${160 * (seconds ?? 0) / most}px`;
    return el("tr", {}, el("td", { class: "words" }, source), el("td", { class: "words" }, bar, duration(seconds)), el("td", {}, duration(stall)));
  });
  return el("table", { class: "runs" }, el("caption", {}, run.all.length > 1 ? `${run.name}: ${run.all.length} runs; the one of median length is drawn` : `${run.name}: one run`), el("thead", {}, el("tr", {}, ...["run", "run time", "I/O stall"].map((text) => el("th", { scope: "col" }, text)))), el("tbody", {}, ...rows));
}

function fillNumbers(panel: HTMLElement): void {
  const rows = data.metrics.map((cells) => el("tr", {}, ...cells.map((cell, n) => n ? el("td", { class: n === 4 ? cell : "" }, cell) : el("th", { scope: "row", class: "words" }, cell))));
  panel.replaceChildren(el("table", { id: "metrics" }, el("thead", {}, el("tr", {}, ...["number", "before", "after", "change", "judged"].map((text) => el("th", { scope: "col" }, text)))), el("tbody", {}, ...rows)));
}

new ComparePage(Object.fromEntries(data.runs.map((run) => [run.name, new RunView(run.name, run)])) as Record<Side, RunView>);
