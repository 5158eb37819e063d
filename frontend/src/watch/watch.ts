// The page of `ioprism watch`: all jobs on one time axis around now, and one of them with its signal.
import { TimeAxis } from "../shared/axis.ts";
import { colour, css, FONT, rgb } from "../shared/colours.ts";
import { drawColumns, sampledCurve, shadeRanges, type Sampled } from "../shared/columns.ts";
import { acrossOf, drawSpan, type Box } from "../shared/curves.ts";
import { button, byId, el, select } from "../shared/dom.ts";
import { json, pauseAfter, Recent } from "../shared/live.ts";
import type { Pen } from "../shared/pen.ts";
import { card, factList, swatch, TrackPage } from "../shared/shell.ts";
import { Link, SHELL_VIEW, type ShellView } from "../shared/state.ts";
import { sheetTable } from "../shared/tables.ts";
import type { Tab } from "../shared/tabs.ts";
import { track, type Track } from "../shared/tracks.ts";
import { bytes, count, duration, rate, share, wholeSeconds, withSpread } from "../shared/units.ts";
import { byNeed, EMPTY, PeriodLog, whenText, type Change, type Fleet, type Job, type Prediction, type Turn } from "./jobs.ts";

interface WatchView extends ShellView { job: string; horizon: string }
interface Signal extends Sampled { values: (number | null)[]; end: number }
const MOST_CHANGES = 200, MOST_LOGS = 64, LOG_LENGTH = 400, MOST_CARDS = 12, MOST_OVERLAPS = 200, TICK_MS = 1000, REOPEN_MS = 5000;
const SIGNAL = "--f1", CAME = "--f1", AHEAD = "--f5", MISSED = "--large", HOLDS = "--c3";
const HORIZONS: [string, string][] = [["", "3 periods"], ["60", "1 minute"], ["600", "10 minutes"], ["3600", "1 hour"]];

const options = JSON.parse(byId("data").textContent ?? "{}") as { view: "job" | "machine" };
const link = new Link<WatchView>({ ...SHELL_VIEW, job: "", horizon: "" }, { horizon: HORIZONS.map(([key]) => key) });
const changes = new Recent<Change & { job: string }>(MOST_CHANGES), periods = new PeriodLog(MOST_LOGS, LOG_LENGTH);
let fleet: Fleet = EMPTY, heard = performance.now(), failures = 0, everHeard = false;
let signal: { job: string; messages: number; clock: number; data: Signal } | null = null;
let turns: Turn[] = [];

const page: TrackPage<WatchView> = new TrackPage<WatchView>({
  axis: new TimeAxis(-60, 60), link, wholeName: "around now",
  top: { subject: "running jobs", verdict: "Waiting for jobs", next: "connecting", waits: true },
  story: [], storyName: "Jobs that need attention",
  controls: [jobChooser(), select("look ahead", HORIZONS, "", (horizon) => { page.store.set({ horizon }); void ask(); })],
  legend: [swatch("what happened", CAME), swatch("predicted", AHEAD), swatch("late, missed or overlapping", MISSED), swatch("period found", HOLDS)],
  tracks: () => tracks(), overview: (pen, box, height) => drawOverview(pen, box, height),
  tabs: tabs(),
  changed: (changed) => { if (changed.has("job") || changed.has("horizon")) { signal = null; fill(); void askSignal(); } },
});

const since = (): number => (performance.now() - heard) / 1000; // seconds that have passed since the last answer
const chosen = (): Job | null => fleet.jobs.find((one) => one.job === chosenName()) ?? null;
// The page of one job shows the first until another is chosen.
const chosenName = (): string => page.store.view.job || (options.view === "job" ? fleet.jobs[0]?.job ?? "" : "");
function choose(job: string): void { page.store.set({ job: job || (options.view === "job" ? "~all" : "") }); }

function jobChooser(): HTMLLabelElement {
  const made = select("job", [["", "all jobs"]], "", choose);
  made.querySelector("select")!.id = "job";
  return made;
}

// ---- Words ----

function fill(): void {
  const job = chosen(), name = chosenName(), chooser = byId<HTMLSelectElement>("job"), wanted = ["", ...fleet.jobs.map((one) => one.job)];
  if (document.activeElement !== chooser && wanted.join("\n") !== [...chooser.options].map((one) => one.value).join("\n")) chooser.replaceChildren(...wanted.map((one) => el("option", { value: one }, one || "all jobs")));
  chooser.value = job ? job.job : "";
  byId("verdict").textContent = job ? jobVerdict(job) : name && name !== "~all" && everHeard ? `${name} is not heard of` : machineVerdict();
  byId("next-step").textContent = stateText();
  byId("warnings").replaceChildren(...(fleet.lag_seconds > 1 ? [el("p", { class: "warning" }, `The service lags: ${count(fleet.analyses_waiting)} jobs wait for their analysis, the first for ${duration(fleet.lag_seconds)}. Predictions are those of before.`)] : []));
  byId("warnings").hidden = fleet.lag_seconds <= 1;
  document.documentElement.dataset["link"] = failures > 1 ? "lost" : "";
  const story = byId("story");
  if (!story.contains(document.activeElement) || document.activeElement === story) story.replaceChildren(...(job ? jobStory(job) : machineStory()));
  else { const clock = story.querySelector(".countdown"); if (clock && job) clock.textContent = countdown(job); }
}

function stateText(): string {
  if (!everHeard) return failures ? "not connected" : "connecting";
  if (failures > 1) return `Not connected for ${wholeSeconds(since())}: this is what was known then. Trying again.`;
  return `connected · ${count(fleet.jobs.length)} ${fleet.jobs.length === 1 ? "job" : "jobs"} · ${count(fleet.jobs.reduce((sum, one) => sum + one.messages, 0))} messages`;
}

function jobVerdict(job: Job): string {
  if (job.period === null) return `${job.job}: no period yet`;
  return `${job.job}: ${job.direction === "both" ? "I/O" : `${job.direction}s`} every ${duration(job.period)}${job.ahead.length ? `, next phase ${countdown(job)}` : ""}`;
}

function machineVerdict(): string {
  const next = fleet.overlaps.find((one) => one.end > since());
  if (!next) return fleet.jobs.length ? `No overlap of I/O phases within ${duration(fleet.horizon)}` : "Waiting for jobs";
  const names = next.jobs.length > 3 ? `${next.jobs.slice(0, 2).join(", ")} and ${next.jobs.length - 2} more jobs` : next.jobs.join(" and ");
  return `${names} will do I/O at the same time ${whenText(next.start - since(), next.end - since(), wholeSeconds)}`;
}

function countdown(job: Job): string {
  const next = job.ahead.find((one) => one.end > since()) ?? job.ahead[0];
  return next ? whenText(next.start - since(), next.end - since(), wholeSeconds) : "unknown";
}

function jobStory(job: Job): HTMLElement[] {
  const next = job.ahead[0], facts: [string, string][] = [];
  if (job.period !== null) facts.push(["period", withSpread(job.period, job.spread ?? 0)], ["confidence", share(job.confidence)]);
  if (next) facts.push(["next phase", `${bytes(next.bytes)} within ${duration(next.end - next.start)}`], ["on time with", `${share(next.confidence)} probability`]);
  if (job.on_time_share !== null) facts.push(["so far on time", `${share(job.on_time_share)} of the last ${count(job.predicted.length)}`]);
  facts.push(["last heard", `${wholeSeconds(job.silent_seconds + since())} ago`], ["messages", count(job.messages)]);
  if (job.ranks !== null) facts.push(["ranks", count(job.ranks)]);
  return [el("h2", {}, "Next phase"), el("p", { class: "countdown" }, countdown(job)), factList(facts),
    ...(job.likely.length ? [el("h2", {}, "Likely periods"), factList(job.likely.map(([low, high, probability]): [string, string] => [share(probability), high - low < 0.01 * low ? duration(low) : `${duration(low)} to ${duration(high)}`]))] : []),
    el("div", { class: "actions" }, button("Show all jobs", () => choose("")))];
}

function machineStory(): HTMLElement[] {
  const listed = byNeed(fleet);
  if (!listed.length) return [el("p", { class: "hint" }, "No job has sent anything yet.")];
  return [el("h2", {}, "Jobs by need"), ...listed.slice(0, MOST_CARDS).map(({ job, need }) => card(job.job, [need.text, job.ahead.length ? `next phase ${countdown(job)}` : ""].filter(Boolean).join(" · "), [factList([["period", job.period === null ? "none" : duration(job.period)], ["on time", share(job.on_time_share)]]), el("div", { class: "actions" }, button("Show this job", () => choose(job.job)))], { level: need.level })),
    ...(listed.length > MOST_CARDS ? [el("p", { class: "hint" }, `${count(listed.length - MOST_CARDS)} more in the table below.`)] : [])];
}

// ---- Tracks ----

function tracks(): Track[] {
  const job = chosen();
  if (!job) return [overlapTrack(), ...byNeed(fleet).map(({ job: one }) => jobTrack(one, 24))];
  const made: Track[] = [];
  if (signal && signal.job === job.job) made.push(signalTrack(job, signal));
  made.push(jobTrack(job, 34, "phases"));
  if (periods.of(job.job).some((one) => one.period !== null)) made.push(periodTrack(job));
  return [...made, overlapTrack(), ...byNeed(fleet).filter((one) => one.job !== job).slice(0, 50).map(({ job: one }) => jobTrack(one, 22))];
}

function signalTrack(job: Job, { data, clock }: NonNullable<typeof signal>): Track {
  const now = clock + (job.clock - clock) + since(), moved: Sampled = { start: data.start - now, step: data.step, values: data.values }, curve = sampledCurve("bandwidth", SIGNAL, moved);
  const ahead = job.ahead.map((one): [number, number] => [one.start - since(), one.end - since()]);
  return track("signal", "bandwidth", 150, (pen, box, tall, names) => { shadeRanges(pen, box, tall, ahead, AHEAD, 0.3); drawColumns(pen, box, tall, [curve], "rate", names); drawNow(pen, box, tall); },
    { tip: (time) => ({ title: `${time <= 0 ? `${duration(-time)} ago` : `in ${duration(time)}`}`, facts: [["bandwidth", rate(curve.at(time))]] }) });
}

function jobTrack(job: Job, height: number, label = job.job): Track {
  return track(label === job.job ? keyOf(job.job) : "phases", label, height, (pen, box, tall) => drawPhases(pen, box, tall, job), {
    title: job.job, click: () => choose(job.job),
    tip: (time) => {
      const next = job.ahead.find((one) => time >= one.start - since() && time <= one.end - since()), past = job.predicted.find((one) => Math.abs(time - (one.came ?? one.due) + since()) < 0.25 * (job.period ?? 1));
      if (next) return { title: job.job, facts: [["expected", whenText(next.start - since(), next.end - since(), wholeSeconds)], ["bytes", bytes(next.bytes)], ["on time with", `${share(next.confidence)} probability`]] };
      return { title: job.job, facts: past ? [["predicted", `${duration(since() - past.due)} ago`], ["came", past.came === null ? "never" : `${duration(Math.abs(past.came - past.due))} ${past.came > past.due ? "late" : "early"}`]] : [["period", job.period === null ? "none" : duration(job.period)]] };
    },
  });
}

// Row keys hold no names: links and attributes stay short whatever jobs are called.
const keyNumbers = new Map<string, number>();
function keyOf(name: string): string {
  if (keyNumbers.size > 5000) keyNumbers.clear();
  if (!keyNumbers.has(name)) keyNumbers.set(name, keyNumbers.size);
  return `job:${keyNumbers.get(name)}`;
}

function drawPhases(pen: Pen, box: Box, tall: number, job: Job): void {
  const shift = since(), wide = job.ahead.length ? job.ahead[0].end - job.ahead[0].start : 0.1 * (job.period ?? 1), top = box.top + 4, height = tall - 9, across = acrossOf(box);
  for (const one of job.predicted) {
    if (one.came !== null) drawSpan(pen, box, one.came - shift, one.came - shift + wide, top, height, rgb(one.on_time ? CAME : MISSED));
    const from = Math.max(box.left, across(one.due - shift)), to = Math.min(box.left + box.width, across(one.due - shift + wide));
    if (to <= from) continue;
    pen.strokeStyle = css(rgb(one.came === null ? MISSED : "--ink"));
    pen.lineWidth = 1;
    pen.strokeRect(from, top - 2, Math.max(2, to - from), height + 4);
  }
  for (const one of job.ahead) {
    const [r, g, b] = rgb(AHEAD), from = Math.max(box.left, across(one.start - shift)), to = Math.min(box.left + box.width, across(one.end - shift));
    if (to <= from) continue;
    pen.fillStyle = `rgb(${r} ${g} ${b} / ${0.25 + 0.75 * one.confidence})`;
    pen.fillRect(from, top, Math.max(2, to - from - 1), height);
  }
  drawNow(pen, box, tall);
}

function drawNow(pen: Pen, box: Box, tall: number): void {
  const x = acrossOf(box)(0);
  pen.fillStyle = colour("--ink");
  if (x >= box.left && x <= box.left + box.width) pen.fillRect(Math.round(x), box.top, 1, tall);
}

function overlapTrack(): Track {
  const shift = since(), ahead = fleet.overlaps.slice(0, MOST_OVERLAPS);
  return track("overlaps", "overlaps", 26, (pen, box, tall) => { for (const one of ahead) drawSpan(pen, box, one.start - shift, one.end - shift, box.top + 4, tall - 9, rgb(MISSED), `${one.jobs.length} jobs`); drawNow(pen, box, tall); if (!ahead.length) note(pen, box, tall, "none expected"); },
    { title: "Several jobs at once", tip: (time) => { const one = ahead.find((other) => time >= other.start - shift && time <= other.end - shift); return one ? { title: `${one.jobs.length} jobs at once`, facts: [["jobs", one.jobs.slice(0, 8).join(", ")], ["together", rate(one.rate)], ["from", whenText(one.start - shift, one.end - shift, wholeSeconds)]] } : null; } });
}

function note(pen: Pen, box: Box, tall: number, text: string): void {
  pen.font = FONT;
  pen.textAlign = "left";
  pen.fillStyle = colour("--dim");
  pen.fillText(text, box.left + 6, box.top + tall / 2 + 4);
}

// Which period each answer named, over the last answers.
function periodTrack(job: Job): Track {
  const log = periods.of(job.job), shift = job.clock + since(), most = 1.25 * Math.max(...log.map((one) => one.period ?? 0));
  return track("periods", "period found", 60, (pen, box, tall, names) => {
    const across = acrossOf(box), up = (value: number): number => box.top + tall - 4 - value / most * (tall - 12);
    pen.fillStyle = css(rgb(HOLDS));
    for (const one of log) { const x = across(one.time - shift); if (one.period !== null && x >= box.left && x <= box.left + box.width) pen.fillRect(x - 2, up(one.period) - 2, 4, 4); }
    const last = log.findLast((one) => one.period !== null)?.period;
    if (last) names.push({ text: duration(last), y: up(last) });
    drawNow(pen, box, tall);
  });
}

function drawOverview(pen: Pen, box: Box, height: number): void {
  const job = chosen(), shift = since();
  if (signal && job && signal.job === job.job) drawColumns(pen, box, height, [sampledCurve("", SIGNAL, { ...signal.data, start: signal.data.start - job.clock - shift })], "rate", []);
  for (const one of fleet.overlaps.slice(0, MOST_OVERLAPS)) drawSpan(pen, box, one.start - shift, one.end - shift, box.top, height, rgb(MISSED));
  drawNow(pen, box, height);
}

// ---- Tabs ----

function tabs(): Tab[] {
  const text = (name: string): { name: string; kind: string } => ({ name, kind: "text" });
  return [
    { id: "jobs", title: "Jobs", fill: (panel) => {
      panel.replaceChildren();
      sheetTable(panel, { title: "Jobs by need", note: "Overlaps first, then jobs whose phases come at other times than predicted, then the next phase.", columns: [text("job"), text("needs attention"), { name: "period", kind: "seconds" }, { name: "confidence", kind: "share" }, text("next phase"), { name: "probability", kind: "share" }, { name: "bytes", kind: "bytes" }, { name: "on time", kind: "share" }, { name: "messages", kind: "count" }],
        rows: byNeed(fleet).map(({ job, need }) => [job.job, need.text, job.period, job.confidence, job.ahead.length ? countdown(job) : "", job.ahead[0]?.confidence ?? null, job.ahead[0]?.bytes ?? null, job.on_time_share, job.messages]) }, (row) => ({ run: () => choose(String(row[0])), chosen: false })); // a chosen row would be scrolled to with every answer
    } },
    { id: "predictions", title: "Predictions", fill: (panel) => {
      panel.replaceChildren();
      const job = chosen();
      if (!job) { panel.append(el("p", { class: "hint" }, "Choose a job to see what was predicted for it and what came.")); return; }
      sheetTable(panel, { title: `Phases of ${job.job}`, note: "Latest first.", columns: [text("predicted for"), text("came"), text("off by"), text("on time")], rows: [...job.predicted].reverse().map((one) => [`${duration(since() - one.due)} ago`, one.came === null ? "never" : `${duration(since() - one.came)} ago`, one.came === null ? "" : `${one.came >= one.due ? "+" : "−"}${duration(Math.abs(one.came - one.due))}`, one.on_time ? "yes" : "no"]) }, () => null);
    } },
    { id: "overlaps", title: "Overlaps", fill: (panel) => {
      panel.replaceChildren();
      sheetTable(panel, { title: "Overlaps ahead", note: "", columns: [text("when"), { name: "lasts", kind: "seconds" }, text("jobs"), { name: "together", kind: "rate" }], rows: fleet.overlaps.slice(0, MOST_OVERLAPS).map((one) => [whenText(one.start - since(), one.end - since(), wholeSeconds), one.end - one.start, one.jobs.join(", "), one.rate]) }, () => null);
    } },
    { id: "turns", title: "Turns", fill: (panel) => {
      panel.replaceChildren();
      sheetTable(panel, { title: "Whose turn it is", note: turns.length ? "Jobs that ask /schedule for the file system; those of the shortest periods go first (Set-10)." : "No job asks /schedule for the file system now.", columns: [text("job"), text("may do I/O"), { name: "share", kind: "share" }, { name: "period", kind: "seconds" }, { name: "set", kind: "number" }, { name: "waited", kind: "seconds" }], rows: turns.map((one) => [one.job, one.may_write ? "yes" : "waits", one.share, one.period, one.set, one.waited]) }, () => null);
    } },
    { id: "changes", title: "Changes", fill: (panel) => panel.replaceChildren(el("h3", {}, "What happened"), el("ol", { id: "changes" }, ...[...changes.all].reverse().map((one) => el("li", {}, changeText(one))))) },
  ];
}

function changeText({ job, before, after, time }: Change & { job: string }): string {
  const what = after === null ? `the period of ${duration(before)} ended` : before === null ? `a period of ${duration(after)} began` : `the period changed from ${duration(before)} to ${duration(after)}`;
  return `${job}: ${what} at ${duration(time)}`;
}

// ---- What the server says ----

let asking = 0;
async function ask(): Promise<void> {
  clearTimeout(asking);
  const began = performance.now(), { horizon } = page.store.view;
  try {
    fleet = await json<Fleet>(horizon ? `fleet?horizon=${horizon}` : "fleet");
    heard = performance.now();
    failures = 0;
    everHeard = true;
    if (page.store.view.tab === "turns") ({ turns } = await json<{ turns: Turn[] }>("schedule"));
    await askSignal();
  } catch { failures += 1; }
  refresh(true);
  document.documentElement.dataset["filled"] = "";
  asking = window.setTimeout(() => void ask(), document.hidden ? 10000 : pauseAfter(performance.now() - began, failures));
}

async function askSignal(): Promise<void> {
  const job = chosen();
  if (!job || document.hidden || (signal && signal.job === job.job && signal.messages === job.messages)) return;
  try { signal = { job: job.job, messages: job.messages, clock: job.clock, data: await json<Signal>(`signal?job=${encodeURIComponent(job.job)}`) }; } catch { signal = null; }
}

function refresh(refill: boolean): void {
  if (document.hidden) return;
  const job = chosen(), past = job && signal ? Math.max(fleet.horizon / 2, Math.min(job.clock - signal.data.start, 8 * fleet.horizon)) : fleet.horizon / 2;
  page.setWhole(-past, fleet.horizon);
  fill();
  page.pane.arrange();
  page.pane.ask();
  const panel = byId("tab-panel"), busy = panel !== document.activeElement && panel.contains(document.activeElement);
  if (refill && !busy) page.tabs.show(page.store.view.tab || "jobs");
}

let events: EventSource | null = null;
function listen(): void {
  events?.close();
  events = new EventSource("events");
  events.addEventListener("message", (event) => hear(JSON.parse(event.data as string) as Prediction));
  events.addEventListener("error", () => { if (events?.readyState === EventSource.CLOSED) setTimeout(listen, REOPEN_MS); }); // else the browser tries again itself
}

function hear(prediction: Prediction): void {
  periods.add(prediction.job, prediction.time, prediction.period?.seconds ?? null);
  if (prediction.change) changes.add({ ...prediction.change, job: prediction.job });
}

page.start();
setInterval(() => refresh(fleet.jobs.length <= MOST_CARDS && Boolean(getSelection()?.isCollapsed)), TICK_MS); // tables count down as the list does
document.addEventListener("visibilitychange", () => { if (!document.hidden) void ask(); });
listen();
void ask();
Object.assign(window, { ioprism: page });
