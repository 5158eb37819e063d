// The page of a centre: what all jobs lose, why, and when something happened.
import { TimeAxis } from "../shared/axis.ts";
import { colour, css, FONT, inkOn, rgb } from "../shared/colours.ts";
import { acrossOf, drawNote, drawSpan, type Box } from "../shared/curves.ts";
import { byId, el, narrowScreen } from "../shared/dom.ts";
import type { Pen } from "../shared/pen.ts";
import type { Match } from "../shared/search.ts";
import { card, chip, factList, swatch, TrackPage } from "../shared/shell.ts";
import { Link, SHELL_VIEW, type ShellView } from "../shared/state.ts";
import { sheetTable, type RowAction, type Sheet } from "../shared/tables.ts";
import { moment } from "../shared/ticks.ts";
import { track, type Track } from "../shared/tracks.ts";
import { squarify } from "../shared/treemap.ts";
import { count, plural } from "../shared/units.ts";

interface Savings { name: string; parts: Record<string, number> }
interface Event { kind: string; subject: string; from: number; to: number | null; text: string; node_hours: number }
interface Advice { applications: string; words: string; hours: number; jobs: number; title: string; advice: string | null; log: string; report: string | null }
interface Job { start: number | null; runtime: number; application: string; user: string; saving: number; cause: string; log: string; report: string | null }
interface SiteData { line: string; next: string; facts: [string, string][]; savings: Savings[]; events: Event[]; span: [number | null, number | null]; advice: Advice[]; jobs: Job[]; tables: Sheet[] }
interface View extends ShellView { app: string; filter: string }

const data = JSON.parse(byId("data").textContent ?? "{}") as SiteData;
const HOUR = 3600, DAY = 86400, MOST_CELLS = 60, EVENT = 20, TONES = 8;
const READABLE = { width: 46, height: 18 }; // pixels of a cell that has room for its name
const LETTER = 6.4; // pixels of a letter of the areas' text, on average
const FEW = 3; // cards that a phone shows before the rest is folded
const KINDS: [string, string, string][] = [["slow", "slow target or node", "--c2"], ["changed", "changed application", "--c4"], ["", "jobs that disturb each other", "--c1"]];
const kindOf = (event: Event): [string, string, string] => KINDS.find(([begin]) => event.kind.startsWith(begin))!;
const hours = (value: number): string => value > 0 && value < 0.001 ? "below 0.001 node-hours" : `${value >= 100 ? count(value) : +value.toPrecision(2)} node-hours`;
const sum = (parts: Record<string, number>): number => Object.values(parts).reduce((a, b) => a + b, 0);
const day = (seconds: number): string => moment(seconds).slice(0, 10);
const has = (text: string, needle: string): boolean => text.toLowerCase().includes(needle.trim().toLowerCase());

// Each cause keeps its colour in the whole page: the costliest ones have one of their own.
const causes = new Map<string, number>();
for (const { parts } of data.savings) for (const [cause, value] of Object.entries(parts)) causes.set(cause, (causes.get(cause) ?? 0) + value);
const ranked = [...causes].filter(([, value]) => value > 0).sort((a, b) => b[1] - a[1]).map(([cause]) => cause);
const toneOf = (cause: string): string => { const place = ranked.indexOf(cause); return place >= 0 && place < TONES - 1 ? `--f${place + 1}` : "--rest"; };

const reportLink = (report: string, text: string): HTMLElement => el("a", { href: /^[./]/.test(report) ? encodeURI(report) : `./${encodeURI(report)}` }, text);
const look = (log: string, report: string | null): HTMLElement => report ? el("p", {}, "Report of one of them: ", reportLink(report, log)) : el("p", { class: "hint" }, `Look at one of them: ioprism report ${log} -o job.html`);

const known = [data.span[0], data.span[1], ...data.events.flatMap(({ from, to }) => [from, to])].filter((one): one is number => one !== null);
const first = known.length ? Math.min(...known) : 0, last = Math.max(first + HOUR, ...known);
const axis = new TimeAxis(first, last + 0.02 * (last - first), true);

const page: TrackPage<View> = new TrackPage<View>({
  axis, wholeName: "all jobs", link: new Link<View>({ ...SHELL_VIEW, app: "", filter: "" }),
  top: { subject: "site", verdict: data.line, next: data.next },
  storyName: "What to do first", story: [],
  legend: [...ranked.slice(0, TONES - 1).map((cause) => swatch(cause, toneOf(cause))), ...(ranked.length >= TONES ? [swatch("other causes", "--rest")] : [])],
  controls: [filterBox()],
  search: { name: "Search applications and events", matches },
  charts: [el("div", { id: "treemap", role: "group", "aria-label": "Potential savings: areas are node-hours, by application and cause" })],
  tracks: () => tracks(), overview: drawOverview,
  tabs: [{ id: "details", title: "Details", fill: fillDetails }, ...data.tables.map((sheet, n) => ({ id: `table-${n}`, title: sheet.title.split(":")[0], fill: (panel: HTMLElement) => { panel.replaceChildren(); sheetTable(panel, shownRows(sheet), (row) => chooseRow(row, sheet)); } }))],
  chips: ({ app, filter }) => [...(app ? [chip(`Application: ${app}`, () => page.store.set({ app: "" }))] : []), ...(filter ? [chip(`Shows only what has “${filter}”`, () => page.store.set({ filter: "" }))] : [])],
  commands: [{ title: "All applications", keys: ["c"], run: () => page.store.set({ app: "" }) }],
  changed: (changed, { filter }) => {
    byId<HTMLInputElement>("filter").value = filter;
    if (["app", "filter", "theme"].some((key) => changed.has(key))) { drawTreemap(); page.pane.arrange(); }
    if (changed.has("filter")) byId("story").replaceChildren(...story());
  },
});

function filterBox(): HTMLElement {
  const box = el("input", { id: "filter", type: "search", placeholder: "show only …", "aria-label": "Show only what has this text", autocomplete: "off" });
  box.addEventListener("input", () => page.store.set({ filter: box.value }, true));
  return box;
}

function matches(text: string): Match[] {
  if (!text.trim()) return [];
  const apps = data.savings.filter(({ name }) => has(name, text)).slice(0, 20).map(({ name }): Match => ({ kind: "app", text: name, run: () => page.store.set({ app: name, tab: "details" }) }));
  return [...apps, ...data.events.filter((event) => has(event.text, text)).slice(0, 20).map((event): Match => ({ kind: "event", text: event.text, run: () => showEvent(event) }))];
}

const shownRows = (sheet: Sheet): Sheet => ({ ...sheet, rows: sheet.rows.filter((row) => row.some((cell) => has(String(cell), page.store.view.filter))) });

function chooseRow(row: unknown[], sheet: Sheet): RowAction | null {
  const log = sheet.columns.findIndex(({ name }) => name === "log"), report = data.jobs.find((job) => log >= 0 && job.log === row[log])?.report;
  if (report) return { run: () => { location.href = /^[./]/.test(report) ? encodeURI(report) : `./${encodeURI(report)}`; }, chosen: false };
  const name = sheet.columns[0].name === "application" ? String(row[0]) : "";
  return data.savings.some((one) => one.name === name) ? { run: () => page.store.set({ app: page.store.view.app === name ? "" : name }), chosen: page.store.view.app === name } : null;
}

function story(): HTMLElement[] {
  const { filter } = page.store.view, advice = data.advice.filter((one) => has(`${one.words} ${one.title} ${one.advice}`, filter)), events = data.events.filter((event) => has(`${event.kind} ${event.text}`, filter));
  const most = Math.max(1e-9, ...data.advice.map((one) => one.hours));
  return [
    el("h2", {}, "What to do first"), ...(advice.length ? [] : [el("p", { class: "calm" }, data.advice.length ? "Nothing matches." : "No job has a cause worth removing.")]),
    el("div", { id: "advice" }, ...folded(advice.map((one, n) => {
      const made = card(`${one.applications}: ${one.title}`, `${hours(one.hours)} in ${plural(one.jobs, "job")}`, [one.advice ? el("p", { class: "advice" }, one.advice) : null, look(one.log, one.report)], { open: n < 3 && !narrowScreen(), level: one.hours > 0.3 * most ? "large" : one.hours > 0.03 * most ? "medium" : "small" }), bar = el("span", { class: "cost" });
      bar.style.width = `${Math.max(2, 100 * one.hours / most)}%`;
      made.querySelector("summary")!.append(bar);
      return made;
    }))),
    el("h2", {}, "What happened"), ...(events.length ? [] : [el("p", { class: "calm" }, "No significant change.")]),
    el("ul", { id: "events" }, ...events.map((event) => { const made = el("button", { type: "button", class: "pick" }, event.text); made.addEventListener("click", () => showEvent(event)); return el("li", {}, made); })),
  ];
}

// On a phone, the areas come after the list: only its head is shown.
function folded(cards: HTMLElement[]): HTMLElement[] {
  if (!narrowScreen() || cards.length <= FEW) return cards;
  return [...cards.slice(0, FEW), el("details", { class: "more" }, el("summary", {}, `${cards.length - FEW} more`), ...cards.slice(FEW))];
}

function showEvent(event: Event): void {
  const end = event.to ?? event.from + DAY, margin = 0.2 * Math.max(DAY, end - event.from);
  page.show(event.from - margin, end + margin);
  page.store.set({ low: axis.low, high: axis.high, select: { low: event.from, high: end, ranks: "" }, tab: "details" });
}

// ---- Savings as areas ----

function drawTreemap(): void {
  const place = byId("treemap"), { app, filter } = page.store.view, wide = place.clientWidth || 900, high = place.clientHeight || 300;
  const items = data.savings.filter((one) => has(`${one.name} ${Object.keys(one.parts).join(" ")}`, filter)).map((one) => ({ ...one, value: sum(one.parts) })).filter(({ value }) => value > 0).sort((a, b) => b.value - a.value).slice(0, MOST_CELLS);
  if (!items.length) { place.replaceChildren(el("p", { class: "calm" }, "Nothing to save.")); return; }
  place.replaceChildren(...squarify(items.map(({ value }) => value), wide, high).map((box, n) => {
    const { name, parts, value } = items[n], cell = el("button", { type: "button", title: `${name}: ${hours(value)}`, "aria-pressed": String(app === name) });
    Object.assign(cell.style, { left: `${100 * box.x / wide}%`, top: `${100 * box.y / high}%`, width: `${100 * box.width / wide}%`, height: `${100 * box.height / high}%` });
    const named = box.width >= READABLE.width && box.height >= 2 * READABLE.height, top = named ? 18 : 0;
    if (named) cell.append(el("span", { class: "head" }, el("b", {}, name), fits(`${name} ${hours(value)}`, box.width) ? ` ${hours(value)}` : ""));
    const inside = Object.entries(parts).filter(([, part]) => part > 0).sort((a, b) => b[1] - a[1]);
    squarify(inside.map(([, part]) => part), box.width, Math.max(1, box.height - top)).forEach((part, k) => {
      const [cause, amount] = inside[k], tone = toneOf(cause), span = el("span", { class: "part", title: `${name}, ${cause}: ${hours(amount)}` }, labelOf(cause, hours(amount), part));
      Object.assign(span.style, { left: `${part.x}px`, top: `${top + part.y}px`, width: `${part.width}px`, height: `${part.height}px`, background: `var(${tone})`, color: inkOn(rgb(tone)) });
      cell.append(span);
    });
    if (!cell.textContent) cell.setAttribute("aria-label", cell.title);
    cell.addEventListener("click", () => page.store.set({ app: page.store.view.app === name ? "" : name, tab: "details" }));
    return cell;
  }));
}

const fits = (text: string, wide: number): boolean => LETTER * text.length + 10 <= wide;

// The cause and its hours, in as many lines as there is room for; a number alone has no meaning.
function labelOf(cause: string, amount: string, { width, height }: { width: number; height: number }): string {
  const lines = Math.floor(height / READABLE.height), longest = Math.max(...`${cause} ${amount}`.split(/[ -]/).map((word) => word.length + 1));
  if (lines < 1 || !fits("x".repeat(longest), width)) return "";
  return LETTER * (cause.length + amount.length + 1) * 1.25 <= lines * (width - 10) ? `${cause} ${amount}` : LETTER * cause.length * 1.25 <= lines * (width - 10) ? cause : "";
}

// ---- What happened, and the jobs that lose most, over time ----

function tracks(): Track[] {
  const { filter, app } = page.store.view, jobs = data.jobs.filter((job) => job.start !== null && has(`${job.application} ${job.user} ${job.cause} ${job.log}`, filter) && (!app || job.application === app)), most = Math.max(1e-9, ...jobs.map(({ saving }) => saving));
  const list: Track[] = [], events = data.events.filter((event) => has(`${event.kind} ${event.text}`, filter));
  if (!events.length) list.push(track("events", "events", EVENT, (pen, box, height) => drawNote(pen, box, "no significant change", height)));
  for (const event of events) {
    const [, , tone] = kindOf(event), end = event.to ?? event.from + DAY, number = data.events.indexOf(event);
    list.push(track(`event:${number}`, `${event.kind.replace("-", " ")}: ${event.subject}`, EVENT, (pen, box) => drawEvent(pen, box, event, tone), {
      title: event.text, tip: (time) => time >= event.from - DAY && time <= end + DAY ? { title: event.kind.replace("-", " "), facts: [["subject", event.subject], ["from", day(event.from)], ["to", event.to === null ? "now" : day(event.to)], ["", event.text]] } : null, click: () => showEvent(event),
    }));
  }
  if (jobs.length) list.push(track("jobs", "jobs that lose most", 84, (pen, box, height, names) => {
    names.push({ text: `${+most.toPrecision(2)} node-hours`, y: box.top + 20 });
    for (const job of jobs) drawJob(pen, box, height, job, most);
  }, { tip: (time) => jobTip(jobs, time), click: (time) => { const job = nearest(jobs, time); if (job) page.store.set({ app: job.application, tab: "details" }); } }));
  return list;
}

function drawOverview(pen: Pen, box: Box, height: number): void {
  for (const event of data.events) drawSpan(pen, box, event.from, event.to ?? event.from + DAY, box.top + height - 5, 5, rgb(kindOf(event)[2]));
  const most = Math.max(1e-9, ...data.jobs.map(({ saving }) => saving));
  for (const job of data.jobs) if (job.start !== null) drawJob(pen, box, height, { ...job, report: null }, most);
}

// A bar, and beside it what it is about: bars of days in a year have no room.
function drawEvent(pen: Pen, box: Box, event: Event, tone: string): void {
  const end = Math.max(event.to ?? event.from + DAY, event.from + 3 * (box.high - box.low) / box.width), text = `${event.subject}${event.node_hours >= 1 ? `: ${hours(event.node_hours)}` : ""}`;
  drawSpan(pen, box, event.from, end, box.top + 3, 13, rgb(tone));
  pen.font = FONT;
  pen.textAlign = "left";
  const across = acrossOf(box), wide = pen.measureText(text).width, right = across(end) + 5, left = across(event.from) - wide - 5;
  pen.fillStyle = colour("--ink");
  if (right + wide <= box.left + box.width && right >= box.left) pen.fillText(text, right, box.top + 13);
  else if (left >= box.left && left < box.left + box.width) pen.fillText(text, left, box.top + 13);
}

function drawJob(pen: Pen, box: Box, height: number, job: Job, most: number): void {
  const x = acrossOf(box), tall = Math.max(3, (height - 20) * job.saving / most), from = x(job.start!), wide = Math.max(3, x(job.start! + job.runtime) - from);
  pen.fillStyle = css(rgb(toneOf(job.cause)));
  pen.fillRect(from, box.top + height - 2 - tall, wide, tall);
  if (job.report) { pen.font = FONT; pen.textAlign = "left"; pen.fillStyle = colour("--ink"); pen.fillText("↗", from, box.top + height - 5 - tall); }
}

const nearest = (jobs: Job[], time: number): Job | undefined => {
  const near = jobs.filter((job) => Math.abs(job.start! - time) < 8 * axis.span / page.pane.width || (time >= job.start! && time <= job.start! + job.runtime));
  return near.sort((a, b) => Math.abs(a.start! - time) - Math.abs(b.start! - time))[0];
};

function jobTip(jobs: Job[], time: number): { title: string; facts: [string, string][] } | null {
  const job = nearest(jobs, time);
  return job ? { title: job.application, facts: [["user", job.user], ["started", moment(job.start!)], ["could save", hours(job.saving)], ["main cause", job.cause], ["log", job.log]] } : null;
}

// ---- Panel ----

function fillDetails(panel: HTMLElement): void {
  const { app, select } = page.store.view, parts: HTMLElement[] = [];
  if (select) {
    const events = data.events.filter((event) => event.from <= select.high && (event.to ?? event.from + DAY) >= select.low), jobs = data.jobs.filter((job) => job.start !== null && job.start <= select.high && job.start + job.runtime >= select.low);
    parts.push(el("h3", {}, `${day(select.low)} to ${day(select.high)}`), el("ul", {}, ...events.map((event) => el("li", {}, event.text))), el("p", {}, `${plural(jobs.length, "job")} of those that lose most ran then.`));
    if (jobs.length) sheetTable(panelPart(parts), jobSheet(jobs), (row) => chooseRow(row, jobSheet(jobs)));
  } else if (app) {
    const one = data.savings.find(({ name }) => name === app), advice = data.advice.filter(({ words }) => has(words, app)), jobs = data.jobs.filter((job) => job.application === app);
    if (one) parts.push(el("h3", {}, `${app}: ${hours(sum(one.parts))} could be saved`), factList(Object.entries(one.parts).filter(([, part]) => part > 0).sort((a, b) => b[1] - a[1]).map(([cause, part]) => [cause, hours(part)])));
    for (const { title, advice: text, log, report } of advice) parts.push(el("p", {}, `${title}. ${text ?? ""}`), look(log, report));
    if (jobs.length) sheetTable(panelPart(parts), jobSheet(jobs), (row) => chooseRow(row, jobSheet(jobs)));
  } else parts.push(factList(data.facts, true), el("p", { class: "hint" }, "Areas above are node-hours that could be saved: choose an application to see its causes and jobs. Below: changes whose false-alarm probability is below 0.1%."));
  panel.replaceChildren(...parts);
}

function panelPart(parts: HTMLElement[]): HTMLElement { const made = el("div"); parts.push(made); return made; }

const jobSheet = (jobs: Job[]): Sheet => ({ title: "Jobs", note: "", columns: [{ name: "log", kind: "text" }, { name: "user", kind: "text" }, { name: "started", kind: "text" }, { name: "main cause", kind: "text" }, { name: "could save, node-hours", kind: "number" }], rows: jobs.map((job) => [job.log, job.user, job.start === null ? "–" : moment(job.start), job.cause, job.saving]) });

page.start();
new ResizeObserver(drawTreemap).observe(byId("treemap"));
Object.assign(window, { ioprism: { page, axis, store: page.store, pane: page.pane } });
