// The page of `ioprism servers watch`: who loads the file system now, and the rates of the last rounds.
import { TimeAxis } from "../shared/axis.ts";
import { drawSteps, stepAt, type Steps } from "../shared/curves.ts";
import { byId, el } from "../shared/dom.ts";
import { json, pauseAfter, Recent } from "../shared/live.ts";
import { factList, fillTop, swatch, TrackPage } from "../shared/shell.ts";
import { sheetTable } from "../shared/tables.ts";
import type { Tab } from "../shared/tabs.ts";
import { moment, type Amount } from "../shared/ticks.ts";
import { track, type Track } from "../shared/tracks.ts";
import { bytes, count, rate, share, wholeSeconds } from "../shared/units.ts";
import { pastOf, spansOf, verdictOf, type Load, type LoadRow, type Past, type Round, type Spans } from "./rounds.ts";

const MOST_ROUNDS = 360, MOST_JOBS = 20, TICK_MS = 1000; // an hour of rounds every 10 s; jobs that are kept of each
const LEAST_SHOWN = 60; // seconds: the axis does not jump with each of the first rounds
const READ = "--c1", WRITTEN = "--c2"; // as on all pages
const SUBJECT = "file system, now";
type Kind = "jobs" | "users" | "targets";

let past = new Recent<Past>(MOST_ROUNDS), spans: Spans = { edges: [], rounds: [] };
let latest: Round | null = null, heard = performance.now(), failures = 0, everHeard = false;

const page: TrackPage = new TrackPage({
  axis: new TimeAxis(Date.now() / 1000 - 60, Date.now() / 1000, true), wholeName: "last rounds",
  top: { subject: SUBJECT, verdict: "Waiting for the first answers", next: "connecting", waits: true },
  story: [el("p", { class: "hint" }, "No round has ended yet.")], storyName: "Load now",
  legend: [swatch("read", READ), swatch("written", WRITTEN)],
  tracks: () => tracks(), overview: (pen, box, height) => drawSteps(pen, box, height, bandwidth((one) => one.whole), "rate", []),
  tabs: [tab("jobs", "job"), tab("users", "user"), tab("targets", "target")],
});

// ---- Words ----

function showState(): void {
  const text = stateText();
  if (byId("next-step").textContent !== text) byId("next-step").textContent = byId("next-step").title = text;
  document.documentElement.dataset["link"] = failures > 1 ? "lost" : "";
}

function stateText(): string {
  if (!everHeard) return failures ? "not connected" : "connecting";
  if (failures > 1) return `Not connected for ${wholeSeconds((performance.now() - heard) / 1000)}: this is what was known then. Trying again.`;
  return latest ? `connected · ${moment(latest.time)} UTC · round ${count(latest.round)} · ${count(latest.counts.answered)} of ${count(latest.counts.sources)} sources answer` : "connected";
}

// Nothing in it takes the focus: it is made anew with every round.
function story({ jobs, users, moved, ...now }: Round): HTMLElement[] {
  const by = (title: string, rows: LoadRow[]): HTMLElement[] => rows.length ? [el("h2", {}, title), factList(rows.slice(0, MOST_JOBS).map((row): [string, string] => [row.name, share(row.share)]))] : [];
  return [...(now.round > 1 && now.counts.answered ? [el("h2", {}, "Now"), factList(loadFacts(now, [["of no job", rate(now.unattributed)]]))] : []),
    el("h2", {}, "Since the watch began"), factList([["read", bytes(moved.read)], ["written", bytes(moved.write)]]), ...by("Jobs by load", jobs), ...by("Users by load", users)];
}

const loadFacts = (load: Load, more: [string, string][] = []): [string, string][] => [["read", rate(load.read)], ["written", rate(load.write)], ["requests/s", count(load.operations)], ["opens/s", count(load.opens)], ...more];

// ---- Tracks ----

const stepsOf = (of: (one: Past) => Load | null | undefined, series: [string, string, (load: Load) => number][]): Steps => ({
  start: 0, step: 1, edges: spans.edges,
  series: series.map(([name, tone, read]) => ({ name, tone, values: spans.rounds.map((n) => { const load = n < 0 ? null : of(past.all[n]); return load ? read(load) : null; }) })),
});
const bandwidth = (of: (one: Past) => Load | null | undefined): Steps => stepsOf(of, [["read", READ, (load) => load.read], ["written", WRITTEN, (load) => load.write]]);

function rateTrack(key: string, label: string, height: number, of: (one: Past) => Load | null | undefined, steps: Steps, kind: Amount): Track {
  return track(key, label, height, (pen, box, tall, names) => drawSteps(pen, box, tall, steps, kind, names), {
    tip: (time) => {
      const n = spans.rounds[stepAt(steps, time)] ?? -1, load = n < 0 ? null : of(past.all[n]);
      return n < 0 ? null : { title: `${label}, ${moment(time)} UTC`, facts: load ? loadFacts(load) : [["rates", "not known"]] };
    },
  });
}

// Keys hold no names: the row of the job that moves most is the first, whatever it is called.
function tracks(): Track[] {
  const whole = (one: Past): Load | null => one.whole;
  return [
    rateTrack("bandwidth", "all bytes", 150, whole, bandwidth(whole), "rate"),
    rateTrack("requests", "requests/s", 60, whole, stepsOf(whole, [["requests/s", "--f3", (load) => load.operations]]), "count"),
    rateTrack("opens", "opens/s", 60, whole, stepsOf(whole, [["opens/s", "--f4", (load) => load.opens]]), "count"),
    ...(latest?.jobs ?? []).slice(0, MOST_JOBS).map(({ name }, n) => { const of = (one: Past): Load | undefined => one.jobs.get(name); return rateTrack(`job-${n}`, name, 44, of, bandwidth(of), "rate"); }),
  ];
}

// ---- Tabs ----

function tab(id: Kind, noun: string): Tab {
  const title = `${id[0].toUpperCase()}${id.slice(1)}`, column = (name: string, kind: string): { name: string; kind: string } => ({ name, kind }), user = id === "jobs";
  const cells = (row: LoadRow): unknown[] => [row.name, ...(user ? [row.user] : []), row.read, row.write, row.operations, row.opens, row.share];
  return { id, title, fill: (panel) => {
    panel.replaceChildren();
    sheetTable(panel, { title, note: latest?.[id].length ? "Rates of the last round; share of all bytes." : `No load by ${noun} in the last round.`, rows: (latest?.[id] ?? []).map(cells),
      columns: [column(noun, "text"), ...(user ? [column("user", "text")] : []), column("read", "rate"), column("written", "rate"), column("requests/s", "count"), column("opens/s", "count"), column("share", "share")] }, () => null);
  } };
}

// ---- What the server says ----

function take(round: Round): void {
  const last = past.all[past.all.length - 1];
  if (last && last.round === round.round && last.time === round.time) return;
  if (last && round.time <= last.time) past = new Recent<Past>(MOST_ROUNDS); // the clock was set back
  latest = round;
  past.add(pastOf(round, MOST_JOBS));
  spans = spansOf(past.all);
  page.setWhole(Math.min(spans.edges[0], round.time - LEAST_SHOWN), round.time);
  page.pane.arrange();
  page.pane.ask();
  fillTop({ subject: SUBJECT, verdict: verdictOf(round), next: stateText(), warnings: round.notes });
  byId("story").replaceChildren(...story(round));
  refillTab();
}

// The table is made anew with every round; who filters or scrolls it goes on.
function refillTab(): void {
  const panel = byId("tab-panel"), active = document.activeElement, name = active && panel.contains(active) ? active.getAttribute("aria-label") : null, caret = active instanceof HTMLInputElement ? active.selectionStart : null;
  page.tabs.show(page.store.view.tab || "jobs");
  const again = name === null ? undefined : [...panel.querySelectorAll<HTMLElement>("[aria-label]")].find((one) => one.getAttribute("aria-label") === name);
  again?.focus({ preventScroll: true });
  if (again instanceof HTMLInputElement) again.setSelectionRange(caret, caret);
}

let asking = 0;
async function ask(): Promise<void> {
  clearTimeout(asking);
  const began = performance.now();
  try {
    const round = await json<Round | Record<string, never>>("load");
    heard = performance.now();
    failures = 0;
    everHeard = true;
    if ("round" in round) take(round as Round);
  } catch { failures += 1; }
  document.documentElement.dataset["filled"] = "";
  showState();
  asking = window.setTimeout(() => void ask(), pauseAfter(performance.now() - began, failures));
}

page.start();
setInterval(showState, TICK_MS);
document.addEventListener("visibilitychange", () => { if (!document.hidden) void ask(); });
void ask();
Object.assign(window, { ioprism: page });
