// Calls of one rank and interface, side by side: nested calls lie below the call that made them.
import { colour, css, FONT } from "../shared/colours.ts";
import type { Box } from "../shared/curves.ts";
import type { Pen } from "../shared/pen.ts";
import { firstAtLeast } from "./marks.ts";
import type { Job } from "./model.ts";
import type { Paint } from "./paint.ts";

export interface Lanes { rows: Int32Array; lane: Uint8Array; until: Float64Array; starts: Float64Array; count: number; names: string[] }

const MOST_LANES = 8;
const MOST_KEPT = 300;
const HEIGHT = 14;
let kept = new Map<string, Lanes>(), keptFor: Job | null = null, keptVersion = -1;

export function lanesOf(job: Job, rank: number, process: number, layer: number, fn: string): Lanes {
  if (keptFor !== job || keptVersion !== job.version || kept.size > MOST_KEPT) { kept = new Map(); keptFor = job; keptVersion = job.version; }
  const key = `${rank}.${process}.${layer}.${fn}`, known = kept.get(key);
  if (known) return known;
  const { marks } = job;
  const rows = job.rowsOfRank(rank).filter((i) => marks.layer[i] === layer && (process < 0 || marks.process![i] === process) && (!fn || job.functionName(i) === fn));
  const made = stacked(job, rows);
  kept.set(key, made);
  return made;
}

function stacked(job: Job, rows: Int32Array): Lanes {
  const { marks } = job, lane = new Uint8Array(rows.length), until = new Float64Array(rows.length), starts = new Float64Array(rows.length), ends: number[] = [];
  const names = new Map<string, number>();
  let last = 0, deepest = 1;
  for (let n = 0; n < rows.length; n += 1) {
    const i = rows[n], start = marks.start[i], end = start + marks.duration[i];
    while (ends.length && ends[ends.length - 1] <= start) ends.pop();
    lane[n] = Math.min(MOST_LANES - 1, ends.length);
    ends.push(end);
    deepest = Math.max(deepest, lane[n] + 1);
    last = Math.max(last, end);
    until[n] = last;
    starts[n] = start;
    const name = job.functionName(i);
    names.set(name, (names.get(name) ?? 0) + marks.duration[i]);
  }
  return { rows, lane, until, starts, count: deepest, names: [...names].sort((a, b) => b[1] - a[1]).map(([name]) => name) };
}


// Draws the calls in view; those that share a pixel are drawn once.
export function drawLanes(pen: Pen, job: Job, lanes: Lanes, paint: Paint, lit: Uint8Array | null, box: Box): void {
  const { marks } = job, scale = box.width * marks.tick / (box.high - box.low), origin = (box.low - marks.origin) / marks.tick;
  const from = firstAtLeast(lanes.until, 0, lanes.rows.length, origin), to = firstAtLeast(lanes.starts, from, lanes.rows.length, (box.high - marks.origin) / marks.tick);
  const last = new Float64Array(MOST_LANES).fill(-1), tones = paint.colours.map(css), faded = colour("--faded");
  pen.font = FONT;
  pen.textAlign = "left";
  for (let n = from; n < to; n += 1) {
    const i = lanes.rows[n], row = lanes.lane[n], bright = !lit || lit[i] === 1;
    const x = Math.max(0, (marks.start[i] - origin) * scale), end = Math.min(box.width, (marks.start[i] + marks.duration[i] - origin) * scale);
    if (end <= last[row] && end - x < 1 && !(lit && bright)) continue;
    const wide = Math.max(1, end - x), top = box.top + 2 + row * HEIGHT;
    last[row] = x + wide;
    pen.fillStyle = bright ? tones[paint.category[i]] : faded;
    pen.fillRect(box.left + x, top, wide > 3 ? wide - 0.5 : wide, HEIGHT - 2);
    if (wide < 34) continue;
    const text = job.functionName(i), room = Math.floor((wide - 6) / 6.2);
    pen.fillStyle = bright ? paint.inks[paint.category[i]] : colour("--ink");
    pen.fillText(text.length > room ? `${text.slice(0, Math.max(1, room - 1))}…` : text, box.left + x + 3, top + 9.5);
  }
}

// The innermost call at a time and a lane; -1: none.
export function callInLanes(job: Job, lanes: Lanes, time: number, lane: number, slack: number): number {
  const { marks } = job, at = (time - marks.origin) / marks.tick, room = slack / marks.tick;
  const from = firstAtLeast(lanes.until, 0, lanes.rows.length, at - room), to = firstAtLeast(lanes.starts, from, lanes.rows.length, at + room + 1e-9);
  let best = -1, distance = Infinity;
  for (let n = to - 1; n >= from; n -= 1) {
    if (lane >= 0 && lanes.lane[n] !== lane) continue;
    const i = lanes.rows[n], away = Math.max(0, marks.start[i] - at, at - marks.start[i] - marks.duration[i]);
    if (away <= room && away < distance) { best = i; distance = away; if (!away) break; }
  }
  return best;
}
