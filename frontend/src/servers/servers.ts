// The page of a machine: load over time, and every chart for the jobs of the time in view.
import { TimeAxis } from "../shared/axis.ts";
import { css, rampAt } from "../shared/colours.ts";
import { acrossOf, drawSteps, largest, stepAt, type Box, type Steps } from "../shared/curves.ts";
import { byId, button, el, narrowScreen, select } from "../shared/dom.ts";
import { csvOf, save } from "../shared/download.ts";
import type { Pen } from "../shared/pen.ts";
import type { Plot } from "../shared/plot.ts";
import { card, chip, swatch, TrackPage } from "../shared/shell.ts";
import { Link, SHELL_VIEW, type ShellView } from "../shared/state.ts";
import { sheetTable, type Sheet } from "../shared/tables.ts";
import { moment } from "../shared/ticks.ts";
import { track, type Track } from "../shared/tracks.ts";
import { bytes, count, duration, plural, rate, share } from "../shared/units.ts";
import { ALL, data, DIRECTIONS, eighty, flagsOf, jobs, MEASURES, measured, MOVED, moved, NAMES, pickJobs, TONE, topShare, word, type Choice, type Direction } from "./machine.ts";
import { amountPlot, heatPlot, jobsOfCell, measurePlot, movingJobs, partsOf, setJobs, thresholdLegend, weekPlot } from "./plots.ts";

interface View extends ShellView, Choice { of: string }

const NONE = /^(0%|–|none)/; // of a share in words: nothing to say about it
const { load, machine } = data, { edges } = load, MOST_LISTED = 2000, LOUDEST = 12, SHADES = 1e4; // rates that shades tell apart, from one to this
const axis = new TimeAxis(edges[0] ?? 0, Math.max((edges[0] ?? 0) + 1, edges[edges.length - 1] ?? 1), true);
const hours = (value: number | null): string => value === null ? "–" : value.toLocaleString("en", { maximumFractionDigits: 1 });
const change = (value: number | null): string => value === null ? "–" : `${value >= 0 ? "+" : "−"}${share(Math.abs(value))}`;
const either = (value: number | null): string => value === null ? "–" : value.toFixed(2);

let picked: number[] = ALL;
const steps = (direction: Direction): Steps => ({ start: 0, step: 0, edges, series: [{ name: direction, tone: TONE[direction], values: edges.slice(1).map((edge, bin) => load[direction].reduce((sum, row) => sum + row[bin], 0) / (edge - edges[bin] || 1)) }] });
const total: Record<Direction, Steps> = { read: steps("read"), write: steps("write") };

const plots = { heat: DIRECTIONS.map((direction) => heatPlot(direction, () => page.store.view.cell, (cell) => page.store.set({ cell }))), amounts: [amountPlot("bytes"), amountPlot("max_bandwidth")], measures: DIRECTIONS.flatMap((direction) => Object.keys(MEASURES).map((measure) => measurePlot(direction, measure))), week: DIRECTIONS.map(weekPlot) };

const page: TrackPage<View> = new TrackPage<View>({
  axis, wholeName: "whole record", link: new Link<View>({ ...SHELL_VIEW, user: "", account: "", partition: "", cell: "", of: "write" }, { of: DIRECTIONS }),
  top: {
    subject: plural(load.servers.length, "server"), verdict: `${machine.dominance} ${data.interference.sentence}`, warnings: data.warnings,
    next: `${moment(edges[0] ?? 0).slice(0, 16)} to ${moment(edges[edges.length - 1] ?? 0).slice(0, 16)} UTC. Jobs of at least ${duration(Number(data.settings["min_runtime"]))}, sampled every ${data.interval} s. ${data.trend.sentence}`,
  },
  storyName: "Whom to contact, and what stands out", story: story(),
  legend: [...DIRECTIONS.map((direction) => swatch(direction, TONE[direction])), el("span", { class: "ramp" }), el("span", { id: "shades" }, "")],
  controls: [...NAMES.map((name) => named(name, select(name, [["", "all"], ...jobs[name].words.map((text): [string, string] => [text, text || "unknown"])], "", (value) => page.store.set({ [name]: value, cell: "" })))), named("of", select("servers show", DIRECTIONS.map((one): [string, string] => [one, one]), "write", (of) => page.store.set({ of })))],
  search: { name: "Search jobs and servers", matches: (text) => text.trim() ? ALL.filter((job) => jobs.id[job].toLowerCase().includes(text.trim().toLowerCase())).slice(0, 30).map((job) => ({ kind: "job", text: `${jobs.id[job]} of ${word("user", job) || "unknown"}`, run: () => showJob(job) })) : [] },
  tracks, brushZooms: true,
  overview: (pen, box, height) => drawSteps(pen, { ...box, top: box.top - 12 }, height + 12, { ...total.write, series: DIRECTIONS.flatMap((direction) => total[direction].series) }, "rate", []),
  tabs: [
    { id: "short", title: "In short", fill: fillShort }, { id: "volume", title: "Volume and bandwidth", fill: (panel) => fillPlots(panel, [...plots.heat, ...plots.amounts], `Each cell counts jobs; choose one to list them. ${DIRECTIONS.map((one) => `${count(picked.length - movingJobs(one))} jobs do not ${one}`).join(", ")}.`) },
    { id: "patterns", title: "Patterns", fill: fillPatterns }, { id: "jobs", title: "Jobs", fill: (panel) => fillJobs(panel, jobsOfCell(page.store.view.cell) ?? picked, "Jobs") },
    { id: "movers", title: "Users and accounts", fill: fillMovers }, { id: "week", title: "Week and months", fill: fillWeek }, { id: "sizes", title: "Request sizes", fill: fillSizes },
    { id: "interference", title: "Interference", fill: fillInterference }, { id: "flagged", title: "Flagged jobs", fill: (panel) => fillJobs(panel, picked.filter((job) => jobs.flags[job]), "Flagged jobs") },
  ],
  chips: ({ cell, low }) => [el("span", { class: "chip", id: "chosen" }, `${count(picked.length)} of ${plural(ALL.length, "job")}${low === null ? "" : " run in the time in view"}`), ...(cell ? [chip(`Cell of ${plural(jobsOfCell(cell)?.length ?? 0, "job")}`, () => page.store.set({ cell: "" }))] : [])],
  commands: [{ title: "Read or written by servers", keys: ["r"], run: () => page.store.set({ of: page.store.view.of === "read" ? "write" : "read" }) }],
  changed: (changed, view) => {
    for (const name of [...NAMES, "of"] as const) byId<HTMLSelectElement>(name).value = view[name];
    if (["low", "high", ...NAMES].some((key) => changed.has(key))) countAgain(view);
    if (changed.has("of")) page.pane.arrange();
    if (changed.has("cell") && view.cell && view.tab !== "jobs") page.store.set({ tab: "jobs" });
  },
  moved: () => { countAgain(page.store.view); page.redraw(); byId("chosen").textContent = `${count(picked.length)} of ${plural(ALL.length, "job")}${axis.whole ? "" : " run in the time in view"}`; },
});

function countAgain(view: View): void {
  picked = pickJobs(axis.low, axis.high, view);
  setJobs(picked);
}

function named(id: string, label: HTMLLabelElement): HTMLLabelElement {
  label.querySelector("select")!.id = id;
  return label;
}

function showJob(job: number): void {
  const margin = 0.2 * (jobs.end[job] - jobs.start[job]) || 60;
  axis.show(jobs.start[job] - margin, jobs.end[job] + margin);
  page.store.set({ tab: "jobs" });
}

// ---- Load over time ----

function tracks(room: number): Track[] {
  const of = page.store.view.of as Direction, rows = load[of], most = largest(rows.map(largest)), bin = axis.last > axis.first ? (axis.last - axis.first) / Math.max(1, edges.length - 1) : 1;
  const each = Math.max(3, Math.min(18, (room - 140) / Math.max(1, rows.length))), shade = (value: number): number => Math.max(0, 1 + Math.log(value / most) / Math.log(SHADES));
  byId("shades").textContent = `each server, ${of}: up to ${rate(most / bin)}; a step is ${duration(bin)}`;
  const list = DIRECTIONS.map((direction) => track(`total-${direction}`, `${MOVED[direction]}, all servers`, 64, (pen, box, height, names) => drawSteps(pen, box, height, total[direction], "rate", names), { expandable: true, tip: (time) => tipAt("all servers", time, [[direction, rate(total[direction].series[0].values[stepAt(total[direction], time)])]]) }));
  load.servers.forEach((server, line) => list.push(track(`server:${line}`, server, each, (pen, box, height) => drawServer(pen, box, height, rows[line], shade), { kind: "server", tip: (time) => tipAt(server, time, DIRECTIONS.map((direction) => { const n = stepAt(total[direction], time); return [direction, rate(load[direction][line][n] / (edges[n + 1] - edges[n] || 1))]; })) })));
  return list;
}

function tipAt(title: string, time: number, facts: [string, string][]): { title: string; facts: [string, string][] } | null {
  const n = stepAt(total.read, time);
  return n < 0 || n >= edges.length - 1 ? null : { title, facts: [["from", moment(edges[n])], ["to", moment(edges[n + 1])], ...facts] };
}

function drawServer(pen: Pen, box: Box, height: number, values: number[], shade: (value: number) => number): void {
  const across = acrossOf(box), first = Math.max(0, stepAt(total.read, box.low));
  for (let n = first; n < values.length && edges[n] < box.high; n += 1) {
    if (!(values[n] > 0)) continue;
    pen.fillStyle = css(rampAt(shade(values[n])));
    pen.fillRect(across(edges[n]), box.top, across(edges[n + 1]) - across(edges[n]) + 0.3, height >= 6 ? height - 2 : height);
  }
}

// ---- The list at the left ----

function story(): HTMLElement[] {
  const parts: HTMLElement[] = [el("h2", {}, "Whom to contact")], most = Math.max(1e-9, ...data.contacts.map((row) => row[4] ?? 0));
  if (!data.contacts.length) parts.push(el("p", { class: "calm" }, "No user's jobs stand out."));
  for (const [n, [user, why, number, spent, stake]] of data.contacts.entries()) parts.push(card(user, `${hours(stake)} job-hours at stake`, [el("p", {}, why), el("p", { class: "hint" }, `${plural(number, "job")}, ${hours(spent)} job-hours`), jobs.user.words.includes(user) ? el("p", { class: "actions" }, button("Show only these jobs", () => page.store.set({ user, cell: "", tab: "jobs" }))) : null], { level: (stake ?? 0) > 0.5 * most ? "large" : "medium", open: !n && !narrowScreen() }));
  if (!NONE.test(machine.read.small) || !NONE.test(machine.write.small)) parts.push(el("h2", {}, "Small requests"), el("p", {}, `Reads: ${machine.read.small}. Writes: ${machine.write.small}.`));
  parts.push(el("p", { class: "hint" }, "How every number is computed: docs/explanation/server-metrics.md of ioprism."));
  return parts;
}

// ---- Panel ----

function fillPlots(panel: HTMLElement, list: Plot[], note: string): void {
  panel.replaceChildren(el("p", { class: "hint" }, note), el("div", { class: "plots" }, ...list.map((plot) => plot.element)));
  list.forEach((plot) => plot.draw());
}

function plainTable(columns: string[], rows: (string | number)[][], caption = ""): HTMLElement {
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption || columns.join(", ") }, caption ? el("h3", {}, caption) : null, el("table", {}, el("thead", {}, el("tr", {}, ...columns.map((text) => el("th", { scope: "col" }, text)))), el("tbody", {}, ...rows.map((row) => el("tr", {}, ...row.map((cell) => el("td", {}, String(cell))))))));
}

function fillShort(panel: HTMLElement): void {
  const sums = DIRECTIONS.map((direction) => {
    const volumes = picked.map((job) => jobs[direction].bytes[job]), speeds = picked.map((job) => jobs[direction].max_bandwidth[job]);
    return [MOVED[direction], bytes(volumes.reduce<number>((sum, value) => sum + (value ?? 0), 0)), share(topShare(volumes)), bytes(eighty(volumes)), rate(largest(speeds)), rate(eighty(speeds))];
  }), facts = plainTable(["by these jobs", "bytes", "of them by the top 20% of jobs", "80% of jobs up to", "peak of one job", "80% of jobs peak up to"], sums);
  facts.id = "facts";
  const rows = load.servers.map((server, n): [string, number, number] => [server, load.unattributed[0][n], load.unattributed[1][n]]).filter((row) => row[1] + row[2] > 0).sort((a, b) => b[1] + b[2] - a[1] - a[2]).slice(0, 8);
  panel.replaceChildren(el("p", {}, `${count(picked.length)} of ${count(ALL.length)} jobs, of ${count(machine.listed)} that are listed.`), facts, el("h3", {}, "Whose bytes, over the whole record"), el("div", { class: "pairs" }, ...DIRECTIONS.map(partsOf)), el("p", { class: "hint" }, machine.attribution.join("; ")),
    rows.length ? plainTable(["server", "read by no listed job", "written by no listed job"], rows.map(([server, read, written]) => [server, bytes(read), bytes(written)])) : el("p", { class: "hint" }, "All bytes belong to jobs of the list."));
}

function fillPatterns(panel: HTMLElement): void {
  const rows = Object.entries(MEASURES).map(([measure, title]) => [title, ...data.thresholds.map((_, n) => DIRECTIONS.map((direction) => either(eighty(picked.map((job) => measured(direction, measure, n)[job])))).join(" / "))]);
  panel.replaceChildren(el("p", { class: "hint" }, "Share of jobs (up) at or below a value (right). c: bytes per sampling interval above which a server counts as active. Intensity: share of time with I/O. Burstiness: near 1 for rare short I/O, 0 for I/O without pause. Parallel intensity: 0 if one server at a time is active, 1 if all are."),
    thresholdLegend(), el("div", { class: "plots" }, ...plots.measures.map((plot) => plot.element)), plainTable(["", ...data.thresholds.map((threshold) => `c = ${bytes(threshold)}: read / write`)], rows, "80% of jobs stay at or below"));
  plots.measures.forEach((plot) => plot.draw());
}

const COLUMNS: [string, string, (job: number) => unknown][] = [
  ["job", "text", (job) => jobs.id[job]], ["user", "text", (job) => word("user", job)], ["account", "text", (job) => word("account", job)], ["name", "text", (job) => word("name", job)], ["start (UTC)", "text", (job) => moment(jobs.start[job]).slice(0, 16)],
  ["moved", "bytes", moved], ["read", "bytes", (job) => jobs.read.bytes[job]], ["written", "bytes", (job) => jobs.write.bytes[job]], ["max read", "rate", (job) => jobs.read.max_bandwidth[job]], ["max write", "rate", (job) => jobs.write.max_bandwidth[job]],
  ["intensity read", "number", (job) => measured("read", "intensity", 0)[job]], ["intensity write", "number", (job) => measured("write", "intensity", 0)[job]], ["servers", "count", (job) => jobs.servers[job]], ["coverage", "share", (job) => jobs.coverage[job]], ["bytes are", "text", (job) => word("attribution", job)], ["flags", "text", flagsOf],
];

function fillJobs(panel: HTMLElement, list: number[], title: string): void {
  const shown = list.slice().sort((a, b) => moved(b) - moved(a)).slice(0, MOST_LISTED), note = title === "Jobs" ? (list.length > shown.length ? `the ${count(shown.length)} of ${count(list.length)} that moved most` : "") : "shared: a server served another job as well; gap: counters are missing for more than a twentieth of the job; reset: counters were reset; missing: a server has no counters";
  const sheet: Sheet = { title, note, columns: COLUMNS.map(([name, kind]) => ({ name, kind })), rows: shown.map((job) => COLUMNS.map(([, , of]) => of(job))) };
  panel.replaceChildren();
  if (!list.length) { panel.append(el("p", { class: "hint" }, "None.")); return; }
  if (list.length > shown.length) panel.append(button(`Save all ${count(list.length)} jobs as CSV`, () => save("jobs.csv", csvOf([["job", "user", "account", "partition", "name", "start", "end", "servers", "coverage", "flags", "read_bytes", "write_bytes", "read_max_bandwidth", "write_max_bandwidth"], ...list.map((job) => [jobs.id[job], word("user", job), word("account", job), word("partition", job), word("name", job), jobs.start[job], jobs.end[job], jobs.servers[job], jobs.coverage[job], flagsOf(job), jobs.read.bytes[job], jobs.write.bytes[job], jobs.read.max_bandwidth[job], jobs.write.max_bandwidth[job]])]), "text/csv")));
  const place = new Map(shown.map((job) => [jobs.id[job], job]));
  sheetTable(panel, sheet, (row) => ({ run: () => showJob(place.get(String(row[0]))!), chosen: false }));
}

// With all jobs looked at, the servers' account of every job of the list; else of the chosen ones.
function movers(name: "user" | "account"): HTMLElement {
  const columns = [name, "jobs", "read", "written", "shared part"];
  if (picked.length === ALL.length) return plainTable(columns, machine[`${name}s`].slice(0, LOUDEST).map((row) => [row[0], count(row[1]), ...row.slice(2).map((value) => bytes(Number(value)))]));
  const sums = new Map<number, number[]>();
  for (const job of picked) {
    const held = sums.get(jobs[name].of[job]) ?? [0, 0, 0, 0];
    held[0] += 1;
    DIRECTIONS.forEach((direction, n) => { held[1 + n] += jobs[direction].bytes[job] ?? 0; held[3] += jobs[direction].shared_bytes[job] ?? 0; });
    sums.set(jobs[name].of[job], held);
  }
  const ordered = [...sums].sort((a, b) => b[1][1] + b[1][2] - a[1][1] - a[1][2]).slice(0, LOUDEST);
  return plainTable(columns, ordered.map(([number, held]) => [jobs[name].words[number] || "unknown", count(held[0]), ...held.slice(1).map(bytes)]));
}

function fillMovers(panel: HTMLElement): void {
  const users = movers("user");
  users.id = "users";
  panel.replaceChildren(el("div", { class: "pairs" }, users, movers("account")));
}

function fillWeek(panel: HTMLElement): void {
  const months = plainTable(["month", "days recorded", "read", "change per day", "written", "change per day"], data.trend.months.map((row) => [row[0], hours(row[1]), bytes(row[2]), change(row[4]), bytes(row[3]), change(row[5])]));
  const accounts = data.trend.compared ? plainTable(["account", `per day in ${data.trend.compared[0]}`, `per day in ${data.trend.compared[1]}`], data.trend.accounts.map((row) => [row[0], bytes(row[1]), bytes(row[2])])) : el("div");
  panel.replaceChildren(el("div", { class: "plots" }, ...plots.week.map((plot) => plot.element)), el("p", {}, data.trend.sentence), el("div", { class: "pairs" }, months, accounts));
  plots.week.forEach((plot) => plot.draw());
}

function fillSizes(panel: HTMLElement): void {
  const sides = DIRECTIONS.map((direction) => machine[direction].sizes), sums = sides.map((rows) => rows.reduce((sum, row) => sum + row[2], 0));
  const rows = sides[0].map(([low, high], line) => [high === null ? `${bytes(low)} and more` : `${bytes(low)} to ${bytes(high)}`, ...sides.flatMap((side, n) => [count(side[line][2]), sums[n] ? share(side[line][2] / sums[n]) : "–", bytes(side[line][3])])]);
  panel.replaceChildren(el("p", {}, `Small: reads ${machine.read.small}; writes ${machine.write.small}.`), plainTable(["mean request in a sampling step", "read operations", "of all", "bytes read", "write operations", "of all", "bytes written"], rows));
}

function fillInterference(panel: HTMLElement): void {
  panel.replaceChildren(el("p", {}, data.interference.sentence), el("p", { class: "hint" }, "Each application beside another on the same servers, against its own times without it."));
  if (data.interference.pairs.length) panel.append(plainTable(["application", "beside", "compared by", "times slower", "observations beside", "quiet", "hours beside", "p, corrected", "slower?"], data.interference.pairs.map((row) => row.map((value) => typeof value === "number" ? hours(value) : value))));
}

setJobs(picked);
for (const plot of Object.values(plots).flat()) page.plots.add(plot);
page.start();
Object.assign(window, { ioprism: { page, axis, store: page.store, pane: page.pane, picked: () => picked } });
