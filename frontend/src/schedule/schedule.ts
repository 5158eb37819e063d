// The page of `ioprism schedule`: policies beside each other, and whose turn it is when.
import { TimeAxis } from "../shared/axis.ts";
import { css, rgb } from "../shared/colours.ts";
import { acrossOf, type Box } from "../shared/curves.ts";
import { byId, el } from "../shared/dom.ts";
import type { Pen } from "../shared/pen.ts";
import { Plot } from "../shared/plot.ts";
import { card, factList, swatch, TrackPage } from "../shared/shell.ts";
import { sheetTable } from "../shared/tables.ts";
import type { Tab } from "../shared/tabs.ts";
import { isOpen, track, type Track } from "../shared/tracks.ts";
import { count, duration, plain, plural, rate, share } from "../shared/units.ts";
import { countAt, type Turn } from "./turns.ts";

interface Interval { mean: number; low: number; high: number }
interface Outcome { name: string; policy: string; utilisation: Interval; io_slowdown: Interval; max_stretch: Interval; gain: { utilisation: number; io_slowdown: number } | null; jobs: { name: string; nodes: number; phases: number; io_slowdown: number; stretch: number }[] }
interface ScheduleData { verdict: string; workload: { source: string; bandwidth: number; horizon: number; seeds: number; load: number }; outcomes: Outcome[]; lanes: { policy: string; jobs: { job: string; turns: Turn[] }[] }[] }

const data = JSON.parse(byId("data").textContent ?? "{}") as ScheduleData, work = data.workload;
const TONES = ["--f1", "--f2", "--f3", "--f4", "--f5", "--f7", "--f8"], WAITS = "--f5", SERVED = "--f1";
const last = Math.max(1, ...data.lanes.flatMap((lane) => lane.jobs.flatMap((one) => one.turns.map((turn) => turn[2]))));
const baseline = data.outcomes[0]?.name, best = [...data.outcomes].filter((one) => one.policy !== "clairvoyant").sort((a, b) => b.utilisation.mean - a.utilisation.mean)[0]?.name;
const signed = (value: number): string => `${value >= 0 ? "+" : "−"}${share(Math.abs(value))}`, factor = (value: number): string => value.toFixed(2);

const page: TrackPage = new TrackPage({
  axis: new TimeAxis(0, last), wholeName: "first seed",
  top: { subject: work.source, verdict: data.verdict, next: `${count(data.outcomes[0]?.jobs.length ?? 0)} jobs on a file system of ${rate(work.bandwidth)}, load ${share(work.load)}, ${duration(work.horizon)} simulated, ${plural(work.seeds, "seed")}.` },
  story: [el("h2", {}, "Policies"), ...data.outcomes.map(policyCard), el("p", { class: "hint" }, "Means over seeds. Utilisation: share of node time spent computing. I/O slowdown: I/O time over that without other jobs.")], storyName: "Policies",
  legend: [swatch("served", SERVED), swatch("waits for the file system", WAITS)],
  tracks: () => data.lanes.flatMap(policyTracks), overview: (pen, box, height) => { const lane = data.lanes.find((one) => one.policy === best) ?? data.lanes[0]; if (lane) drawCounts(pen, box, height, lane.jobs.flatMap((one) => one.turns), lane.jobs.length); },
  tabs: tabs(),
});

function measure(name: string, value: number, most: number, text: string): HTMLElement {
  const bar = el("span", { class: "bar" });
  bar.style.setProperty("width", `${100 * value / most}%`);
  return el("div", { class: "measure" }, el("span", {}, name), bar, el("span", { class: "value" }, text));
}

function policyCard(one: Outcome): HTMLElement {
  const slowest = Math.max(...data.outcomes.map((other) => other.io_slowdown.mean)), reach = ({ low, high }: Interval, write: (value: number) => string): string => `${write(low)} to ${write(high)}`;
  return card(one.name, one.gain && one.name !== baseline ? `utilisation ${signed(one.gain.utilisation)}, I/O slowdown ${signed(-one.gain.io_slowdown)}` : one.name === baseline ? "what file systems do without a scheduler" : "",
    [measure("utilisation", one.utilisation.mean, 1, `${(100 * one.utilisation.mean).toFixed(1)}%`), measure("I/O slowdown", one.io_slowdown.mean, slowest, factor(one.io_slowdown.mean)),
      factList([...(work.seeds > 1 ? [["95% interval", `${reach(one.utilisation, (value) => `${(100 * value).toFixed(1)}%`)}; ${reach(one.io_slowdown, factor)}`] as [string, string]] : []), ["max stretch", factor(one.max_stretch.mean)]])], { open: true, kind: one.name === best ? "best" : "" });
}

function policyTracks(lane: ScheduleData["lanes"][number], number: number): Track[] {
  const key = `policy-${number}`, open = lane.policy === baseline || lane.policy === best, turns = lane.jobs.flatMap((one) => one.turns);
  const head = track(key, lane.policy, 44, (pen, box, tall, names) => { drawCounts(pen, box, tall, turns, lane.jobs.length); names.push({ text: `${lane.jobs.length} jobs`, y: box.top + 16 }); },
    { kind: "host", expandable: true, open, title: `${lane.policy}: jobs that are served or wait`, tip: (time) => { const [served, waiting] = countAt(turns, time); return { title: `${lane.policy}, ${duration(time)}`, facts: [["served", count(served)], ["wait", count(waiting)]] }; } });
  if (!isOpen(page.store.view, key, open)) return [head];
  return [head, ...lane.jobs.map((one, n) => track(`${key}-${n}`, one.job, 20, (pen, box, tall) => drawTurns(pen, box, tall, one.turns), {
    depth: 1, tip: (time) => { const turn = one.turns.find(([asked, , end]) => time >= asked && time <= end); return turn ? { title: one.job, facts: [["asked at", duration(turn[0])], ["waited", duration(turn[1] - turn[0])], ["served for", duration(turn[2] - turn[1])]] } : null; } }))];
}

function drawTurns(pen: Pen, box: Box, tall: number, turns: readonly Turn[]): void {
  const across = acrossOf(box), bar = (from: number, to: number, tone: string): void => {
    const left = Math.max(box.left, across(from)), right = Math.min(box.left + box.width, across(to));
    if (right <= left) return;
    pen.fillStyle = css(rgb(tone));
    pen.fillRect(left, box.top + 3, Math.max(0.8, right - left), tall - 7);
  };
  for (const [asked, served, end] of turns) { if (served > asked) bar(asked, served, WAITS); bar(served, end, SERVED); }
}

// How many jobs are served and wait, in columns of two pixels.
function drawCounts(pen: Pen, box: Box, tall: number, turns: readonly Turn[], jobs: number): void {
  const columns = Math.max(1, Math.floor(box.width / 2)), step = (box.high - box.low) / columns, served = new Float64Array(columns), waiting = new Float64Array(columns);
  const add = (into: Float64Array, from: number, to: number): void => {
    const first = Math.max(0, (from - box.low) / step), end = Math.min(columns, (to - box.low) / step);
    for (let n = Math.floor(first); n < end; n += 1) into[n] += Math.min(end, n + 1) - Math.max(first, n);
  };
  for (const [asked, begun, end] of turns) { if (begun > asked) add(waiting, asked, begun); add(served, begun, end); }
  const high = tall - 6, bottom = box.top + tall - 3;
  for (let n = 0; n < columns; n += 1) {
    const a = served[n] / jobs * high, b = waiting[n] / jobs * high;
    pen.fillStyle = css(rgb(SERVED)); if (a > 0) pen.fillRect(box.left + 2 * n, bottom - a, 2, a);
    pen.fillStyle = css(rgb(WAITS)); if (b > 0) pen.fillRect(box.left + 2 * n, bottom - a - b, 2, b);
  }
}

function tabs(): Tab[] {
  return [
    { id: "compare", title: "Gain", fill: fillGain },
    { id: "policies", title: "Policies", fill: (panel) => { panel.replaceChildren(); sheetTable(panel, { title: "Policies", note: "Gain and change are against fair share.", columns: [{ name: "policy", kind: "text" }, { name: "utilisation", kind: "share" }, { name: "gain", kind: "text" }, { name: "I/O slowdown", kind: "number" }, { name: "change", kind: "text" }, { name: "max stretch", kind: "number" }], rows: data.outcomes.map((one) => [one.name, one.utilisation.mean, one.gain ? signed(one.gain.utilisation) : "", +factor(one.io_slowdown.mean), one.gain ? signed(-one.gain.io_slowdown) : "", +factor(one.max_stretch.mean)]) }, () => null); } },
    { id: "jobs", title: "Stretch of each job", fill: (panel) => { panel.replaceChildren(); sheetTable(panel, { title: "Stretch of each job", note: "Run time over that without other jobs; 1 is undisturbed.", columns: [{ name: "job", kind: "text" }, { name: "nodes", kind: "count" }, ...data.outcomes.map((one) => ({ name: one.name, kind: "text" }))], rows: (data.outcomes[0]?.jobs ?? []).map((job, n) => [job.name, job.nodes, ...data.outcomes.map((one) => factor(one.jobs[n].stretch))]) }, () => null); } },
  ];
}

// Utilisation against slowdown: up and right is better.
function fillGain(panel: HTMLElement): void {
  const all = data.outcomes, ends = (read: (one: Outcome) => Interval): [number, number] => { const low = Math.min(...all.map((one) => read(one).low)), high = Math.max(...all.map((one) => read(one).high)), room = 0.15 * (high - low) || 0.05; return [low - room, high + 2 * room]; };
  const [left, right] = ends((one) => one.utilisation), [bottom, top] = ends((one) => one.io_slowdown);
  const plot = new Plot({
    label: "Utilisation against I/O slowdown of each policy, with 95% intervals", title: "Lower right is better; lines are 95% intervals", height: Math.max(160, panel.clientHeight - 60),
    x: () => ({ low: left, high: Math.min(1, right), kind: "share", title: "utilisation" }), y: () => ({ low: Math.max(0, bottom), high: top, kind: "number", title: "I/O slowdown" }),
    draw: (pen, frame) => all.forEach((one, n) => {
      const x = frame.x(one.utilisation.mean), y = frame.y(one.io_slowdown.mean), across = frame.x(one.utilisation.high) - frame.x(one.utilisation.low), tall = frame.y(one.io_slowdown.low) - frame.y(one.io_slowdown.high);
      pen.fillStyle = css(rgb(TONES[n % TONES.length]));
      pen.fillRect(frame.x(one.utilisation.low), y - 0.75, across, 1.5);
      pen.fillRect(x - 0.75, frame.y(one.io_slowdown.high), 1.5, tall);
      const over = all.slice(n + 1).filter((later) => Math.hypot(frame.x(later.utilisation.mean) - x, frame.y(later.io_slowdown.mean) - y) < 7).length, half = 3.5 + 3 * over; // larger beneath those that would hide it
      pen.fillRect(x - half, y - half, 2 * half, 2 * half);
    }),
    tip: (x, y) => { const near = [...all].sort((a, b) => distance(a, x, y) - distance(b, x, y))[0]; return near ? { title: near.name, facts: [["utilisation", `${(100 * near.utilisation.mean).toFixed(1)}%`], ["I/O slowdown", factor(near.io_slowdown.mean)], ["max stretch", plain(+factor(near.max_stretch.mean))]] } : null; },
  });
  const distance = (one: Outcome, x: number, y: number): number => ((one.utilisation.mean - x) / (right - left)) ** 2 + ((one.io_slowdown.mean - y) / (top - bottom)) ** 2;
  page.plots.clear();
  page.plots.add(plot);
  panel.replaceChildren(el("div", { class: "legend" }, ...all.map((one, n) => swatch(one.name, TONES[n % TONES.length]))), plot.element);
}

page.start();
Object.assign(window, { ioprism: page });
