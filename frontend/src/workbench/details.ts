// The details panel: totals of the selection beside the rest, and the pinned call with its surroundings.
import { button, el, select } from "../shared/dom.ts";
import { bytes, count, duration, plural, rate, share, span } from "../shared/units.ts";
import { around, callFacts, callTitle } from "./calls.ts";
import type { Job } from "./model.ts";
import { shortNames } from "../shared/paths.ts";
import { SIZE_NAMES } from "./paint.ts";
import { inRanks, type Selection } from "../shared/state.ts";
import { average, summarise, top, without, type Amounts, type Summary } from "./summary.ts";

const LISTED = 8;
const MOST_PHASES = 300; // that are added up for a comparison; more take longer than a step should

export interface DetailActions {
  pin: (mark: number) => void; unpin: () => void; copy: (place: HTMLElement) => void; showFile: (file: number) => void; showTarget: (target: number) => void;
  showRank: (rank: number) => void; showFunction: (name: string) => void; layer: (name: string) => void; zoom: () => void; clear: () => void; csv: () => void;
}
export interface DetailInput { job: Job; layer: number; low: number; high: number; select: Selection | null; call: number; actions: DetailActions }

export function fillDetails(place: HTMLElement, input: DetailInput): void {
  const parts: HTMLElement[] = [];
  if (input.call >= 0) parts.push(callPart(input));
  parts.push(input.job.marks.count ? selectionPart(input) : countersPart(input.job));
  place.replaceChildren(el("div", { class: "details" }, ...parts));
}

function callPart({ job, call, actions }: DetailInput): HTMLElement {
  const { before, after, above, below } = around(job, call), link = button("Copy link", () => actions.copy(link)), facts = el("dl", { class: "facts" });
  for (const [name, text] of callFacts(job, call, true)) {
    const file = job.marks.file[call];
    facts.append(el("dt", {}, name), el("dd", { title: text }, name === "file" ? button(text, () => actions.showFile(file), { class: "pick", title: "Highlight all calls on this file" }) : text));
  }
  const step = (mark: number, text: string): HTMLElement => { const made = button(text, () => actions.pin(mark)); made.disabled = mark < 0; return made; };
  const part = el("section", { class: "call", "aria-label": "Pinned call" }, el("h3", {}, callTitle(job, call)), el("p", { class: "actions" }, step(before, "← previous"), step(after, "next →"), link, button("Unpin", actions.unpin)), facts), nest = el("div", { class: "nest" });
  for (const [title, list] of [["Called by", above], ["Calls below it", below]] as const) if (list.length) {
    nest.append(el("h4", {}, title), el("ul", { class: "calls" }, ...list.slice(0, 12).map((mark) => el("li", {}, button(`${job.layerTitle(job.marks.layer[mark])} ${callTitle(job, mark)}`, () => actions.pin(mark), { class: "pick" }), ` ${duration(job.marks.duration[mark] * job.marks.tick)}`))));
    if (list.length > 12) nest.append(el("p", { class: "hint" }, `and ${count(list.length - 12)} more`));
  }
  if (nest.childElementCount) part.append(nest);
  return part;
}

function selectionPart({ job, layer, low, high, select: chosen, actions }: DetailInput): HTMLElement {
  const from = chosen?.low ?? low, to = chosen?.high ?? high, there = job.loaded?.ranks ?? null, wanted = inRanks(chosen?.ranks ?? "");
  const ranks = there ? (rank: number): boolean => wanted(rank) && rank >= there[0] && rank <= there[1] : wanted;
  if (job.loaded && (from < job.loaded.low || to > job.loaded.high)) return el("section", { class: "selection" }, el("p", { class: "notice" }, "The selection is not in view; zoom to it to see its totals."), button("Zoom to it", actions.zoom));
  const inside = summarise(job, layer, from, to, ranks);
  const everyone = !chosen?.ranks, whole = everyone && from <= job.data.time[0] && to >= job.data.time[1];
  const others = everyone && chosen && !job.loaded ? otherPhases(job, layer, chosen) : [];
  const rest = others.length ? average(others) : everyone ? (whole || job.loaded ? null : without(totals(job, layer), inside)) : summarise(job, layer, from, to, (rank) => !wanted(rank) && (!there || (rank >= there[0] && rank <= there[1])));
  const restName = others.length ? (others.length > 1 ? `average of ${count(others.length)} like it` : "the one like it") : everyone ? "rest of the run" : "other ranks, same time";
  const title = `${chosen ? "Selection" : whole ? "Whole run" : "In view"}: ${span(from, to)}${chosen?.ranks ? `, ${/^\d+$/.test(chosen.ranks) ? "rank" : "ranks"} ${chosen.ranks.length > 40 ? `${chosen.ranks.slice(0, 38)}…` : chosen.ranks}` : there ? `, ranks ${there[0]}-${there[1]}` : ""}`;
  const layers = job.ioLayers().map((one): [string, string] => [job.data.layers[one], job.layerTitle(one)]);
  const tools = el("p", { class: "actions" });
  if (layers.length > 1) tools.append(select("interface", layers, job.data.layers[layer], actions.layer));
  if (chosen) tools.append(button("Zoom to it", actions.zoom), button("Clear", actions.clear));
  tools.append(button("Save calls as CSV", actions.csv, { id: "save-csv" }));
  return el("section", { class: "selection", "aria-label": "Selection" }, el("div", { class: "heading" }, el("h3", { id: "in-view" }, title), tools), el("div", { class: "columns" },
    totalsTable(job, inside, rest, restName),
    bars(job.timed, job.timed ? "Slowest ranks" : "Ranks", inside.byRank, rest && everyone && job.timed ? rest.byRank : null, (rank) => job.markRanks(rank), (rank) => actions.showRank(rank), others.length ? "in others" : "elsewhere"),
    job.marks.fn ? bars(true, "Functions", inside.byFunction, null, (name) => name, (name) => actions.showFunction(name)) : null,
    bars(job.timed, "Files", inside.byFile, null, (file, listed) => shortNames(listed.map((one) => job.fileName(one)), 30)(job.fileName(file)), (file) => actions.showFile(file)),
    inside.byTarget.size ? bars(job.timed, "Targets", inside.byTarget, null, (target) => `target ${target}`, (target) => actions.showTarget(target)) : null,
    job.timed ? sizeBars(job.runs ? "Average request sizes of runs" : "Request sizes", inside.sizes, rest?.sizes ?? null, restName) : sizeBars("Request sizes of the run", job.data.sizes, null, "")));
}

// If the selection is a phase: the other phases of its kind.
function otherPhases(job: Job, layer: number, chosen: Selection): Summary[] {
  const phases = job.data.phases[job.data.layers[layer]]?.phases ?? [], own = phases.find((phase) => phase.start === chosen.low && phase.end === chosen.high);
  const alike = own ? phases.filter((phase) => phase !== own && phase.kind === own.kind) : [];
  if (alike.length > MOST_PHASES) return [];
  return alike.map((phase) => summarise(job, layer, phase.start, phase.end, () => true));
}

const kept = new Map<string, Summary>();

function totals(job: Job, layer: number): Summary {
  const key = `${job.version} ${layer}`, known = kept.get(key);
  if (known) return known;
  kept.clear();
  const made = summarise(job, layer, job.data.time[0], job.data.time[1], () => true);
  kept.set(key, made);
  return made;
}

function totalsTable(job: Job, inside: Summary, rest: Summary | null, restName: string): HTMLElement {
  const lines: [string, (sum: Summary) => string][] = [
    ["duration", (sum) => duration(sum.seconds)], ["ranks", (sum) => count(sum.ranks)],
    ["cumulative I/O time", (sum) => duration(sum.busy)], ["per rank, average", (sum) => duration(sum.busy / sum.ranks)],
    ["share of the ranks' time", (sum) => sum.seconds > 0 ? share(sum.busy / sum.ranks / sum.seconds) : "–"],
    ["wall time with I/O", (sum) => sum.wall === null ? "–" : duration(sum.wall)], ["calls", (sum) => count(sum.calls)],
    ["read", (sum) => bytes(sum.read)], ["written", (sum) => bytes(sum.written)],
    ["average request", (sum) => sum.requests ? bytes((sum.read + sum.written) / sum.requests) : "–"],
    ["bandwidth", (sum) => sum.seconds > 0 ? rate((sum.read + sum.written) / sum.seconds) : "–"],
  ];
  const timeless = ["duration", "ranks", "calls", "read", "written", "average request", "bandwidth"]; // a bin or a span is no time in calls
  const used = (job.timed ? lines : lines.filter(([name]) => timeless.includes(name) && !(job.bins && (name === "calls" || name === "average request")))).filter(([, of]) => of(inside) !== "–");
  const head = el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "totals"), el("th", { scope: "col", title: "Of calls that reach beyond the window, only the part inside counts" }, "here"), rest ? el("th", { scope: "col" }, restName) : null));
  return el("div", { class: "block" }, el("table", { class: "totals" }, head, el("tbody", {}, ...used.map(([name, of]) => el("tr", {}, el("th", { scope: "row" }, name), el("td", {}, of(inside)), rest ? el("td", {}, of(rest)) : null)))));
}

function bars<K>(timed: boolean, title: string, map: Map<K, Amounts>, rest: Map<K, Amounts> | null, name: (key: K, listed: K[]) => string, choose: (key: K) => void, restName = ""): HTMLElement | null {
  const size = (sums: Amounts): number => timed ? sums.busy : sums.bytes, list = top(map, LISTED, size);
  if (!list.length) return null;
  const most = Math.max(...list.map(([, sums]) => size(sums)), 1e-12), body = el("tbody"), counted = list.every(([, sums]) => !sums.bytes);
  for (const [key, sums] of list) {
    const bar = el("span", { class: "bar" });
    bar.style.width = `${Math.max(1, 40 * size(sums) / most)}px`;
    body.append(el("tr", {}, el("td", { class: "words" }, button(name(key, list.map(([one]) => one)), () => choose(key), { class: "pick" })), el("td", { class: "drawn" }, bar), timed ? el("td", {}, duration(sums.busy)) : null, el("td", {}, counted ? count(sums.calls) : sums.bytes ? bytes(sums.bytes) : plural(sums.calls, "call")), rest ? el("td", { class: "rest" }, duration(rest.get(key)?.busy ?? 0)) : null));
  }
  return el("div", { class: "block" }, el("table", {}, el("thead", {}, el("tr", {}, el("th", { scope: "col", colspan: "2" }, title), timed ? el("th", { scope: "col" }, "time") : null, el("th", { scope: "col" }, counted ? "calls" : "moved"), rest ? el("th", { scope: "col" }, restName) : null)), body));
}

export function sizeBars(title: string, sizes: { read: number[]; write: number[] }, rest: { read: number[]; write: number[] } | null, restName: string): HTMLElement | null {
  const most = Math.max(1, ...sizes.read, ...sizes.write), body = el("tbody");
  SIZE_NAMES.forEach((name, n) => {
    if (!sizes.read[n] && !sizes.write[n] && !rest?.read[n] && !rest?.write[n]) return;
    const cell = el("td", { class: "drawn" });
    for (const [value, tone] of [[sizes.read[n], "part1"], [sizes.write[n], "part2"]] as const) if (value) { const bar = el("span", { class: `bar ${tone}` }); bar.style.width = `${Math.max(1, 40 * value / most)}px`; cell.append(bar); }
    body.append(el("tr", {}, el("th", { scope: "row" }, n ? `≤ ${name}`.replace("≤ larger", "larger") : "≤ 100 B"), cell, el("td", {}, count(sizes.read[n])), el("td", {}, count(sizes.write[n])), rest ? el("td", { class: "rest" }, count(rest.read[n] + rest.write[n])) : null));
  });
  if (!body.childElementCount) return null;
  return el("div", { class: "block sizes" }, el("table", {}, el("thead", {}, el("tr", {}, el("th", { scope: "col", colspan: "2" }, title), el("th", { scope: "col" }, "reads"), el("th", { scope: "col" }, "writes"), rest ? el("th", { scope: "col" }, restName) : null)), body));
}

function countersPart(job: Job): HTMLElement {
  return el("section", {}, el("p", { class: "notice", id: "no-calls" }, "This trace has no per-call data, so there is nothing to draw over time. For a per-call trace, run the job with DXT_ENABLE_IO_TRACE=1."), sizeBars("Request sizes", job.data.sizes, null, ""));
}
