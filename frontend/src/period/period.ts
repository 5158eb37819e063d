// The page of `ioprism period`: the figures behind the answer on one time axis, spectrum and autocorrelation below.
import { TimeAxis } from "../shared/axis.ts";
import { drawColumns, sampledCurve, type Sampled } from "../shared/columns.ts";
import { button, byId, el, select } from "../shared/dom.ts";
import { drawLine, Plot } from "../shared/plot.ts";
import { drawBand, drawMarks, drawStems, type Mark } from "../shared/plot_parts.ts";
import { card, factList, swatch, TrackPage } from "../shared/shell.ts";
import { Link, SHELL_VIEW, type ShellView } from "../shared/state.ts";
import { sheetTable } from "../shared/tables.ts";
import type { Tab } from "../shared/tabs.ts";
import { bytes, count, duration, plain, rate, share, withSpread } from "../shared/units.ts";
import { nameOf, type NamedPeriod, type PeriodData, type View } from "./data.ts";
import { sumsOf, tracksOf } from "./tracks.ts";

interface PeriodView extends ShellView { direction: string; waves: string[] }
const FAIR = 0.1; // of the strongest line: the first view ends at the last frequency that is as strong, or at this many multiples of the period's
const HARMONICS = 12;
const MOST_CANDIDATES = 6;

const data = JSON.parse(byId("data").textContent ?? "{}") as PeriodData;
const first = data.views[0], kind = data.metric === null ? "rate" : "count";
const link = new Link<PeriodView>({ ...SHELL_VIEW, direction: first.direction, waves: [] }, { direction: data.views.map((one) => one.direction) });
const viewOf = (state: PeriodView): View => data.views.find((one) => one.direction === state.direction) ?? first;
const allWaves = (view: View): string[] => sumsOf(view).map((one) => one.key);
// An empty list in the link means all sums; "none" keeps a page without any.
const wavesOf = (state: PeriodView): string[] => state.waves.length ? state.waves : allWaves(viewOf(state));

const start = Math.min(...data.views.map((one) => one.signal.start)), end = Math.max(...data.views.map((one) => Math.max(one.signal.end, one.ahead.length ? one.ahead[one.ahead.length - 1][1] : 0)));
const axis = new TimeAxis(start, end > start ? end : start + 1);

const page: TrackPage<PeriodView> = new TrackPage<PeriodView>({
  axis, link, wholeName: "whole signal",
  top: { subject: data.source.join(", "), verdict: first.verdict, next: nextText(first), warnings: data.warnings },
  story: [], storyName: "The answer and all periods",
  controls: data.views.length > 1 ? [select("show", data.views.map((one): [string, string] => [one.direction, nameOf(one.direction)]), first.direction, (direction) => page.store.set({ direction, waves: [] }))] : [],
  tracks: () => tracksOf({ view: viewOf(page.store.view), kind, waves: wavesOf(page.store.view), asynchronous: data.asynchronous }),
  overview: (pen, box, height) => drawColumns(pen, box, height, [sampledCurve("", "--f1", viewOf(page.store.view).signal)], kind, []),
  tabs: tabs(),
  changed: (changed, state) => { if (["direction", "waves", "theme"].some((key) => changed.has(key))) fill(state); },
});

function fill(state: PeriodView): void {
  const view = viewOf(state);
  byId("verdict").textContent = view.verdict;
  byId("next-step").textContent = nextText(view);
  const chooser = byId("controls").querySelector("select");
  if (chooser) chooser.value = view.direction;
  byId("story").replaceChildren(...story(view, state));
  byId("legend").replaceChildren(swatch("sampled signal", "--f1"), swatch("dominant wave, where the period holds", "--f2"), swatch("period holds, its phases", "--c3"), swatch("predicted phase", "--f5"));
  page.pane.arrange();
}

function nextText(view: View): string {
  if (!view.ahead.length) return view.period ? "The next phase cannot be predicted: the period does not hold until the end." : "";
  const [from, to, moved] = view.ahead[0];
  return `Next phase: ${duration(from)} to ${duration(to)} after the start${kind === "rate" ? `, about ${bytes(moved)}` : ""}.`;
}

// ---- The list at the left ----

function story(view: View, state: PeriodView): HTMLElement[] {
  const parts: HTMLElement[] = [el("h2", {}, "The answer"), factList(answerFacts(view))];
  if (data.periods.length) parts.push(el("h2", {}, data.periods.length > 1 ? "All periods" : "Period"), ...data.periods.map(periodCard));
  const waves = wavesOf(state);
  parts.push(el("h2", {}, "The signal as waves"), el("p", { class: "hint" }, "Share of the variance that the strongest n waves explain"), ...sumsOf(view).map((one) => {
    const box = el("input", { type: "checkbox" });
    box.checked = waves.includes(one.key);
    box.addEventListener("change", () => {
      const all = allWaves(view), kept = all.filter((key) => key === one.key ? box.checked : waves.includes(key));
      page.store.set({ waves: kept.length === all.length ? [] : kept.length ? kept : ["none"] });
    });
    return el("label", { class: "wave" }, box, swatch(`${one.name}: ${share(one.explained)}`, one.tone));
  }));
  return parts;
}

const reach = (ranges: readonly [number, number][]): string => ranges.map(([from, to]) => `${duration(from)} to ${duration(to)}`).join("; ");
const chance = (value: number): string => value < 0.0001 ? "below 0.01%" : share(value);

function answerFacts(view: View): [string, string][] {
  const { period, burst } = view, facts: [string, string][] = [];
  if (!period) return [["period", "none"], ["signal", `${duration(view.signal.start)} to ${duration(view.signal.end)}`]];
  facts.push(["period", withSpread(period.seconds, period.spread)], ["frequency", frequencyText(period.frequency)], ["confidence", `${share(period.confidence)} (${period.method})`], ["false alarm", chance(period.false_alarm_probability)], ["holds in", reach(period.valid_ranges)]);
  if (period.bytes_share !== null) facts.push(["explains", `${share(period.bytes_share)} of the bytes, ${share(period.time_share)} of the time`]);
  if (burst) facts.push(["each phase", `${kind === "rate" ? `${bytes(burst.bytes)} within ` : ""}${duration(burst.width)} (${share(burst.duty_cycle)} of the period)`]);
  return facts;
}

function periodCard(one: NamedPeriod): HTMLElement {
  const what = one.part ?? nameOf(one.direction), [from] = one.valid_ranges[0] ?? [axis.first], [, to] = one.valid_ranges[one.valid_ranges.length - 1] ?? [0, axis.last];
  const actions = el("div", { class: "actions" }, button("Zoom to where it holds", () => page.zoomTo(from, to)), data.views.some((view) => view.direction === one.direction) ? button(`Show ${nameOf(one.direction)}`, () => page.store.set({ direction: one.direction, waves: [] })) : null);
  return card(`${duration(one.seconds)}: ${what}`, `${one.bytes_share === null ? "" : `${share(one.bytes_share)} of the bytes, `}confidence ${share(one.confidence)}`, [factList([["holds in", reach(one.valid_ranges)], ["false alarm", chance(one.false_alarm_probability)]]), actions]);
}

export function frequencyText(hertz: number): string { return hertz < 0.001 ? `${plain(1000 * hertz)} mHz` : `${plain(hertz)} Hz`; }

// ---- Tabs below the tracks ----

function tabs(): Tab[] {
  return [
    { id: "spectrum", title: "Spectrum", fill: (panel) => fillSpectrum(panel, viewOf(page.store.view)) },
    { id: "autocorrelation", title: "Autocorrelation", fill: (panel) => fillAutocorrelation(panel, viewOf(page.store.view)) },
    { id: "waves", title: "Waves", fill: (panel) => fillWaves(panel, viewOf(page.store.view)) },
    { id: "periods", title: "Periods", fill: (panel) => fillPeriods(panel) },
    ...(data.asynchronous.length ? [{ id: "async", title: "Asynchronous I/O", fill: fillAsynchronous }] : []),
  ];
}

// A plot that fills the panel; a drag along x zooms, and "all" shows everything again.
function zoomPlot(panel: HTMLElement, make: (span: () => [number, number], zoom: (low: number, high: number) => void) => Plot, whole: [number, number], firstView: [number, number], note: string): void {
  let span = firstView;
  const plot = make(() => span, (low, high) => show(Math.max(whole[0], low), Math.min(whole[1], high)));
  const show = (low: number, high: number): void => { if (high > low) span = [low, high]; plot.draw(); };
  const around = (factor: number) => (): void => { const middle = (span[0] + span[1]) / 2, half = (span[1] - span[0]) / 2 * factor; show(Math.max(whole[0], middle - half), Math.min(whole[1], middle + half)); };
  panel.replaceChildren(el("div", { class: "tools" }, el("span", { class: "hint" }, note), button("Zoom in", around(0.5)), button("Zoom out", around(2)), button("All", () => show(...whole))), plot.element);
  page.plots.clear();
  page.plots.add(plot);
}

const panelHeight = (panel: HTMLElement): number => Math.max(150, Math.min(320, panel.clientHeight - 44));

function fillSpectrum(panel: HTMLElement, view: View): void {
  const { frequency, share: power } = view.spectrum, most = Math.max(0, ...power);
  if (!(most > 0)) { panel.replaceChildren(el("p", { class: "hint" }, "The signal does not change: it has no spectrum.")); return; }
  const last = frequency[frequency.length - 1], strong = frequency[power.findLastIndex((value) => value >= FAIR * most)] ?? last;
  const marks: Mark[] = [...view.candidates.slice(0, MOST_CANDIDATES).map((one) => ({ x: one.frequency, text: `candidate ${frequencyText(one.frequency)}`, tone: "--f7", dashed: true })), ...(view.period ? [{ x: view.period.frequency, text: `period ${duration(view.period.seconds)}`, tone: "--f2" }] : [])];
  const reachOf = Math.min(last, view.period ? HARMONICS * view.period.frequency : 1.5 * strong);
  zoomPlot(panel, (span, zoom) => new Plot({
    label: "Power spectrum", height: panelHeight(panel),
    x: () => ({ low: span()[0], high: span()[1], kind: "number", title: "frequency (Hz)" }), y: () => ({ low: 0, high: 1.1 * highestIn(frequency, power, span()), kind: "share" }),
    draw: (pen, frame) => { drawStems(pen, frame, frequency, power, "--f1"); drawMarks(pen, frame, marks); },
    tip: (x) => { const n = nearest(frequency, x); return n < 0 ? null : { title: frequencyText(frequency[n]), facts: [["period", duration(1 / frequency[n])], ["share of the variance", share(power[n])]] }; },
    brush: zoom,
  }), [0, last], [0, reachOf], "Share of the signal's variance at each frequency; drag to zoom.");
}

function highestIn(xs: readonly number[], ys: readonly number[], [low, high]: [number, number]): number {
  let most = 0;
  for (let n = 0; n < xs.length; n += 1) if (xs[n] >= low && xs[n] <= high && ys[n] > most) most = ys[n];
  return most || 1e-6;
}

function nearest(xs: readonly number[], x: number): number {
  let best = -1;
  for (let n = 0; n < xs.length; n += 1) if (best < 0 || Math.abs(xs[n] - x) < Math.abs(xs[best] - x)) best = n;
  return best;
}

function fillAutocorrelation(panel: HTMLElement, view: View): void {
  const { autocorrelation, period } = view;
  if (!autocorrelation) { panel.replaceChildren(el("p", { class: "hint" }, "The signal does not change: it has no autocorrelation.")); return; }
  const { step, values } = autocorrelation as Sampled & { values: number[] }, lags = values.map((_, n) => (n + 0.5) * step), last = values.length * step;
  const marks: Mark[] = period ? Array.from({ length: Math.min(12, Math.floor(last / period.seconds)) }, (_, n) => ({ x: (n + 1) * period.seconds, text: n ? `${n + 1}×` : `period ${duration(period.seconds)}`, tone: "--f2", dashed: n > 0 })) : [];
  zoomPlot(panel, (span, zoom) => new Plot({
    label: "Autocorrelation by lag", height: panelHeight(panel),
    x: () => ({ low: span()[0], high: span()[1], kind: "seconds", title: "lag" }), y: () => ({ low: Math.min(-0.2, ...values), high: 1.05, kind: "number" }),
    draw: (pen, frame) => { drawBand(pen, frame, "y", -0.001, 0.001); drawLine(pen, frame, lags, values, { tone: "--f1" }); drawMarks(pen, frame, marks); },
    tip: (x) => { const n = Math.floor(x / step); return n < 0 || n >= values.length ? null : { title: `lag ${duration(x)}`, facts: [["correlation", plain(values[n])]] }; },
    brush: zoom,
  }), [0, last], [0, period ? Math.min(last, 8 * period.seconds) : last], "Correlation of the signal with itself after each lag, up to half its length; drag to zoom.");
}

function fillWaves(panel: HTMLElement, view: View): void {
  page.plots.clear();
  panel.replaceChildren();
  const column = (name: string, of: string): { name: string; kind: string } => ({ name, kind: of });
  const rows = (waves: View["fit"]["waves"]): unknown[][] => waves.filter((one) => one.frequency > 0).map((one) => [1 / one.frequency, frequencyText(one.frequency), one.amplitude, one.phase]);
  const columns = [column("period", "seconds"), column("frequency", "text"), column("amplitude", kind === "rate" ? "rate" : "number"), column("phase (rad)", "number")];
  const gain = view.fit.explained - view.fit.explained_before;
  sheetTable(panel, { title: "Fitted waves", note: `They explain ${share(view.fit.explained)} of the variance; before fitting ${share(view.fit.explained_before)}${gain > 0.0005 ? "" : ", as good as no gain"}.`, columns, rows: rows(view.fit.waves) }, () => null);
  sheetTable(panel, { title: "Strongest waves of the spectrum", note: "", columns, rows: rows(view.waves.waves) }, () => null);
}

function fillPeriods(panel: HTMLElement): void {
  page.plots.clear();
  panel.replaceChildren();
  const { candidates } = viewOf(page.store.view);
  sheetTable(panel, { title: "All periods", note: data.periods.length ? "" : "None.", columns: [{ name: "of", kind: "text" }, { name: "period", kind: "seconds" }, { name: "bytes", kind: "share" }, { name: "time", kind: "share" }, { name: "confidence", kind: "share" }, { name: "false alarm", kind: "text" }, { name: "holds in", kind: "text" }], rows: data.periods.map((one) => [one.part ?? nameOf(one.direction), one.seconds, one.bytes_share, one.time_share, one.confidence, chance(one.false_alarm_probability), reach(one.valid_ranges)]) }, () => null);
  sheetTable(panel, { title: "Candidates of the spectrum", note: "Frequencies that stand out; the score counts standard deviations.", columns: [{ name: "period", kind: "seconds" }, { name: "frequency", kind: "text" }, { name: "power", kind: "share" }, { name: "score", kind: "number" }, { name: "confidence", kind: "share" }], rows: candidates.map((one) => [1 / one.frequency, frequencyText(one.frequency), one.power_share, +one.score.toPrecision(3), one.confidence]) }, () => null);
}

function fillAsynchronous(panel: HTMLElement): void {
  page.plots.clear();
  panel.replaceChildren(el("p", { class: "hint" }, "Required (B): bytes over the time until the program waited for them. Measured (T): bytes over the time they took. Where B stays below what the file system delivers, the I/O is hidden behind computation."), ...data.asynchronous.map((one) => factList([
    [nameOf(one.direction), `${count(one.requests)} requests, ${share(one.hidden)} hidden`], ["required", `${rate(one.required.peak)} so that all stay hidden`], ["measured", `${rate(one.measured.peak)} at most`], ["waited", `${duration(one.waited)} over all ranks`]])));
}

page.start();
Object.assign(window, { ioprism: page });
