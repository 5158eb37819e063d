// The page of `ioprism write-time evaluate` and `tune`: how far predictions are off, and what would be faster.
import { TimeAxis } from "../shared/axis.ts";
import { colour } from "../shared/colours.ts";
import { byId, el, select, narrowScreen } from "../shared/dom.ts";
import { drawLine, drawRule, Plot, type Frame, type Scale } from "../shared/plot.ts";
import { distributionOf, drawBand, drawDistribution, drawDots, shareUpTo, type Distribution } from "../shared/plot_parts.ts";
import type { Pen } from "../shared/pen.ts";
import { factList, swatch, TrackPage } from "../shared/shell.ts";
import { Link, SHELL_VIEW, type ShellView } from "../shared/state.ts";
import { sheetTable, type Sheet } from "../shared/tables.ts";
import type { Tab } from "../shared/tabs.ts";
import { count, duration, plain, share } from "../shared/units.ts";
import { errorsOf, logReach, ratios, sizesOf, SMALLEST_ERROR, type SampleSet } from "./scores.ts";

interface Tuning { now: { seconds: number; low: number; high: number }; choices: unknown[][]; moves: boolean; hints: [string, string, string][]; advice: [string, string][] }
interface WriteTimeData {
  subject: string; verdict: string; next: string; warnings: string[]; models: { kind: string; title: string }[]; sets: SampleSet[]; limits: [number, number]; level: number;
  variability: number[]; convergence: [number, number][]; sheets: Sheet[]; symbols: [string, string][]; tuning: Tuning | null;
}
interface WriteTimeView extends ShellView { set: string; models: string[] }

const TONES = ["--f1", "--f2", "--f3", "--f4", "--f5", "--f6", "--f7", "--f8"], DASHES = [[], [7, 3], [2, 2], [9, 3, 2, 3], [4, 4], [1, 3], [12, 4], [6, 2, 2, 2]];
const FIRST_MODELS = 4, EDGE = 1, TALL = 226; // models of the first view; errors beyond EDGE are drawn there; pixels of a chart
const RATIOS: [number, number] = [0.3, 3], WIDE = 20; // times that differ by more stand on a logarithmic axis
const data = JSON.parse(byId("data").textContent ?? "{}") as WriteTimeData;
const keys = data.models.map((_, n) => `m${n}`), first = keys.slice(0, FIRST_MODELS);
const link = new Link<WriteTimeView>({ ...SHELL_VIEW, set: data.sets[0]?.name ?? "", models: [] }, { set: data.sets.map((one) => one.name) });
const tone = (n: number): string => TONES[n % TONES.length], dash = (n: number): number[] => DASHES[n % DASHES.length];
const setOf = (): SampleSet => data.sets.find((one) => one.name === page.store.view.set) ?? data.sets[0];
const shown = (): number[] => (page.store.view.models.length ? page.store.view.models : first).map((key) => keys.indexOf(key)).filter((n) => n >= 0);

const page: TrackPage<WriteTimeView> = new TrackPage<WriteTimeView>({
  axis: new TimeAxis(0, 1), link, tracks: [],
  top: { subject: data.subject, verdict: data.verdict, next: data.next, warnings: data.warnings },
  story: data.tuning ? tuningStory(data.tuning) : [], storyName: data.tuning ? "Where the time goes" : "Models and scores",
  controls: data.sets.length > 1 ? [select("samples", data.sets.map((one): [string, string] => [one.name, `${one.name} (${count(one.samples)})`]), data.sets[0].name, (set) => page.store.set({ set }))] : [],
  charts: [], tabs: tabs(),
  changed: () => { if (data.sets.length) fill(); },
});

function fill(): void {
  byId("story").replaceChildren(...story());
  const chooser = byId("controls").querySelector("select");
  if (chooser) chooser.value = setOf().name;
}

// ---- The list at the left ----

function story(): HTMLElement[] {
  const set = setOf(), chosen = shown(), [close, fair] = data.limits;
  const models = data.models.map((model, n) => {
    const box = el("input", { type: "checkbox" });
    box.checked = chosen.includes(n);
    box.addEventListener("change", () => {
      const kept = keys.filter((_, m) => m === n ? box.checked : chosen.includes(m));
      page.store.set({ models: kept.length ? kept : ["none"] });
    });
    const good = errorsOf(set, n), within = good.filter((error) => Math.abs(error) <= close).length / Math.max(1, good.length);
    return el("label", { class: "model" }, box, swatch(`${model.title}: ${share(within)}`, tone(n)));
  });
  return [
    el("h2", {}, `Models, and the share within ${share(close)}`), ...models,
    el("h2", {}, `Chosen model, set ${set.name}`),
    factList([["samples", count(set.samples)], [`within ${share(close)}`, share(set.within[0])], [`within ${share(fair)}`, share(set.within[1])], [`in ${share(data.level)} interval`, share(set.within[2])]]),
    ...(set.too_low ? [el("p", { class: "notice" }, `${set.too_low}.`)] : []),
    el("h2", {}, "Where the predicted time goes"), ...stageBars(set.stages),
  ];
}

function stageBars(stages: readonly [string, number][]): HTMLElement[] {
  return stages.filter(([, part]) => part >= 0.005).map(([name, part]) => {
    const bar = el("span", { class: "bar" });
    bar.style.setProperty("width", `${100 * part / Math.max(...stages.map(([, value]) => value))}%`);
    return el("div", { class: "stage" }, el("span", {}, name), el("span", {}, share(part)), bar);
  });
}

// ---- The charts ----

const distributions = new Map<string, Distribution>();
function distribution(what: "sizes" | "ratios", set: SampleSet, model: number): Distribution {
  const key = `${what}|${set.name}|${model}`, values = what === "sizes" ? sizesOf(set, model) : ratios(set, model).map((value) => Math.min(RATIOS[1], Math.max(RATIOS[0], value)));
  const made = distributions.get(key) ?? distributionOf(values);
  distributions.set(key, made);
  return made;
}

function cdfPlot(title: string, x: () => Scale, curve: (model: number) => Distribution, band: [number, number][], at: (value: number) => string): Plot {
  return new Plot({
    label: title, title, height: TALL, x, y: () => ({ low: 0, high: 1, kind: "share" }),
    draw: (pen, frame) => { for (const [low, high] of band) drawBand(pen, frame, "x", low, high); for (const n of shown().reverse()) drawDistribution(pen, frame, curve(n), tone(n), dash(n)); },
    tip: (value) => ({ title: at(value), facts: shown().map((n): [string, string] => [data.models[n].title, share(shareUpTo(curve(n), value))]) }),
  });
}

function charts(): Plot[] {
  const [close, fair] = data.limits, every = (): number[] => { const set = setOf(); return [...set.measured, ...shown().flatMap((n) => set.predicted[n] ?? [])]; };
  const seconds = (title: string): Scale => { const [low, high] = logReach(every()); return { low, high, kind: "seconds", log: true, title }; };
  const made = [
    new Plot({ label: "Predicted against measured write time", title: "Predicted against measured", height: TALL, x: () => seconds("measured"), y: () => seconds("predicted"), draw: drawPredicted,
      tip: (x, y) => ({ title: `measured ${duration(x)}`, facts: [["predicted", duration(y)], ["error", `${plain(Math.round(100 * (y / x - 1)))}%`]] }) }),
    cdfPlot("Share of samples up to each relative error", () => ({ low: SMALLEST_ERROR, high: Math.max(2, ...shown().flatMap((n) => distribution("sizes", setOf(), n).x.slice(-1))), kind: "share", log: true, title: "|predicted − measured| / measured" }), (n) => distribution("sizes", setOf(), n), [[SMALLEST_ERROR, close], [SMALLEST_ERROR, fair]], (value) => `error up to ${share(value)}`),
    new Plot({ label: "Relative errors, shortest writes left", title: "Relative errors, shortest writes left", height: TALL, x: () => ({ low: 0, high: 1, kind: "share", title: "samples by measured time" }), y: () => ({ low: -1.05 * EDGE, high: 1.05 * EDGE, kind: "share" }),
      draw: (pen, frame) => { drawBand(pen, frame, "y", -close, close); drawBand(pen, frame, "y", -fair, fair); for (const n of shown().reverse()) { const errors = errorsOf(setOf(), n); drawDots(pen, frame, errors.map((_, place) => (place + 0.5) / errors.length), errors, tone(n), { low: -EDGE, high: EDGE }); } } }),
    cdfPlot("Share of samples up to each ratio", () => ({ low: RATIOS[0], high: RATIOS[1], kind: "number", log: true, title: "predicted / measured" }), (n) => distribution("ratios", setOf(), n), [[1 - close, 1 + close], [1 - fair, 1 + fair]], (value) => `ratio up to ${plain(+value.toPrecision(3))}`),
  ];
  if (data.variability.length) made.push(variabilityPlot());
  if (data.convergence.length) made.push(convergencePlot());
  return made;
}

function drawPredicted(pen: Pen, frame: Frame): void {
  const set = setOf(), [low, high] = logReach([...set.measured, ...shown().flatMap((n) => set.predicted[n] ?? [])]), ends = [low, high];
  for (const n of shown().reverse()) drawDots(pen, frame, set.measured, set.predicted[n], tone(n));
  drawLine(pen, frame, ends, ends, { tone: "--ink", wide: 1 });
  for (const factor of [1 - data.limits[1], 1 + data.limits[1]]) drawLine(pen, frame, ends, ends.map((value) => value * factor), { tone: "--dim", dashed: true, wide: 1 });
}

function variabilityPlot(): Plot {
  const curve = distributionOf(data.variability), [, high] = logReach(data.variability);
  return new Plot({
    label: "How much the same write varies", title: "Share of patterns up to each variation", height: TALL,
    x: () => ({ low: 1, high: Math.max(1.5, high), kind: "number", log: true, title: "slowest / fastest" }), y: () => ({ low: 0, high: 1, kind: "share" }),
    draw: (pen, frame) => drawDistribution(pen, frame, curve, "--f1"), tip: (x) => ({ title: `up to ${plain(+x.toPrecision(3))} times`, facts: [["patterns", share(shareUpTo(curve, x))]] }),
  });
}

function convergencePlot(): Plot {
  const runs = data.convergence.map(([n]) => n), shares = data.convergence.map(([, part]) => part), last = shares[shares.length - 1];
  return new Plot({
    label: "Patterns whose mean has converged by the number of runs", title: "Convergence: patterns whose mean is known, by runs", height: TALL,
    x: () => ({ low: runs[0] - 0.5, high: runs[runs.length - 1] + 0.5, kind: "count", title: "runs of a pattern" }), y: () => ({ low: 0, high: 1, kind: "share" }),
    draw: (pen, frame) => {
      pen.fillStyle = colour("--f1");
      runs.forEach((n, place) => { const from = frame.x(n - 0.4), top = frame.y(shares[place]); pen.fillRect(from, top, frame.x(n + 0.4) - from, frame.y(0) - top); });
      if (last < 0.9) drawRule(pen, frame, "y", last, `${share(1 - last)} never converge`);
    },
    tip: (x) => { const place = runs.indexOf(Math.round(x)); return place < 0 ? null : { title: `${runs[place]} runs`, facts: [["converged", share(shares[place])]] }; },
  });
}

// ---- `tune` ----

const NAMED = 6; // configurations whose names fit below the chart

const CHOICES: [string, string][] = [["configuration", "text"], ["nodes", "count"], ["cores", "count"], ["burst", "bytes"], ["stripes", "text"], ["predicted", "seconds"], ["from", "seconds"], ["to", "seconds"], ["speedup", "number"], ["clear", "text"]];
const [SECONDS, LOW, HIGH, SPEEDUP] = [5, 6, 7, 8];

function tuningStory(tuning: Tuning): HTMLElement[] {
  const rows = data.sheets[0]?.rows ?? [];
  return [el("h2", {}, "Where the time goes now"), ...stageBars(rows.map((row): [string, number] => [String(row[0]), Number(row[3])])), el("h2", {}, "How often to write"), factList(tuning.advice),
    ...(tuning.hints.length ? [el("h2", {}, "Settings for the fastest"), ...tuning.hints.map(([middleware, where, settings]) => el("div", {}, el("strong", {}, middleware), el("p", { class: "hint" }, where), el("pre", {}, settings.replaceAll(", ", "\n"))))] : []),
    ...(tuning.moves ? [el("p", { class: "notice" }, "Sending data to fewer writers takes time that is not in these numbers.")] : [])];
}

function tuningPlot(tuning: Tuning): Plot {
  const numbers = (row: unknown[], place: number): number => Number(row[place]), all = tuning.choices, every = [tuning.now.low, tuning.now.high, ...all.flatMap((row) => [numbers(row, LOW), numbers(row, HIGH)])];
  return new Plot({
    label: "Predicted time of configurations that write the same bytes", title: "Predicted time of each configuration, fastest left; lines are intervals", height: Math.max(TALL, Math.min(440, byId("charts").parentElement!.clientHeight - 110)),
    x: () => ({ low: 0, high: all.length, title: "configuration", kind: "names", names: all.map((row, n) => all.length <= NAMED && !narrowScreen() ? String(row[0]) : String(n + 1)) }), y: () => { const [low, high] = logReach(every), log = high > WIDE * low; return { low: log ? low : 0, high, kind: "seconds", log, title: "predicted" }; },
    draw: (pen, frame) => {
      drawBand(pen, frame, "y", tuning.now.low, tuning.now.high);
      drawRule(pen, frame, "y", tuning.now.seconds, "");
      pen.fillText(`now: ${duration(tuning.now.seconds)} (${duration(tuning.now.low)} to ${duration(tuning.now.high)})`, frame.left + 4, Math.min(frame.top + frame.height - 4, frame.y(tuning.now.low) + 12)); // below the band: the points are in it
      all.forEach((row, n) => {
        const x = frame.x(n + 0.5), top = frame.y(numbers(row, HIGH));
        pen.fillStyle = colour(numbers(row, SPEEDUP) > 1 ? "--f3" : "--f2");
        pen.fillRect(x - 0.75, top, 1.5, Math.max(1, frame.y(numbers(row, LOW)) - top));
        pen.fillRect(x - 3, frame.y(numbers(row, SECONDS)) - 3, 6, 6);
      });
    },
    tip: (x) => { const row = all[Math.floor(x)]; return row ? { title: String(row[0]), facts: [["predicted", duration(numbers(row, SECONDS))], ["interval", `${duration(numbers(row, LOW))} to ${duration(numbers(row, HIGH))}`], ["speedup", plain(+numbers(row, SPEEDUP).toPrecision(3))]] } : null; },
  });
}

// ---- Tabs ----

function tabs(): Tab[] {
  const made: Tab[] = data.sheets.map((sheet, n) => ({ id: `sheet-${n}`, title: sheet.title, fill: (panel) => {
    panel.replaceChildren();
    sheetTable(panel, sheet, () => null);
    if (n && data.symbols.length || data.tuning) panel.append(el("h3", {}, "Symbols"), symbols());
  } }));
  const { tuning } = data;
  if (tuning) made.unshift({ id: "choices", title: "Configurations", fill: (panel) => {
    panel.replaceChildren();
    const columns = CHOICES.map(([name, kind]) => ({ name, kind })), rows = tuning.choices.map((row) => row.map((cell, n) => n === SPEEDUP ? +Number(cell).toFixed(2) : cell));
    sheetTable(panel, { title: "Configurations that write the same bytes", note: "Fastest first. Clear: the intervals do not overlap.", columns, rows }, () => null);
  } });
  return made;
}

const symbols = (): HTMLElement => el("dl", { class: "symbols" }, ...data.symbols.flatMap(([symbol, meaning]) => [el("dt", {}, `${symbol}: `), el("dd", {}, meaning)]));

const plots = data.tuning ? [tuningPlot(data.tuning)] : charts();
if (data.tuning) plots[0].element.classList.add("whole");
page.parts.charts = plots.map((plot) => plot.element);
plots.forEach((plot) => page.plots.add(plot));
page.start();
Object.assign(window, { ioprism: page });
