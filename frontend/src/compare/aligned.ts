// Two runs on one axis: stretches of the same work begin together, and the shorter one leaves a gap.
export type Span = [number, number];
export interface Segment { kind: string; before: Span; after: Span }
export interface Placed extends Segment { at: number; long: number; saved: number; name: string }
export type Side = "before" | "after";
export const SIDES: Side[] = ["before", "after"];

const lengthOf = ([from, to]: Span): number => Math.max(0, to - from);

// By clock, both runs are one stretch that begins at the same second.
export function placeSegments(segments: Segment[], byPhase: boolean): Placed[] {
  const whole: Segment = { kind: "", before: [segments[0].before[0], segments[segments.length - 1].before[1]], after: [segments[0].after[0], segments[segments.length - 1].after[1]] };
  const counts = new Map<string, number>(), placed: Placed[] = [];
  let at = Math.min(0, whole.before[0], whole.after[0]);
  for (const segment of byPhase ? segments : [whole]) {
    const long = Math.max(lengthOf(segment.before), lengthOf(segment.after)), number = (counts.get(segment.kind) ?? 0) + 1;
    counts.set(segment.kind, number);
    const name = segment.kind ? `${segment.kind} phase ${number}` : byPhase ? nameBetween(segments, segment) : "whole run";
    if (long > 0) placed.push({ ...segment, at, long, saved: lengthOf(segment.before) - lengthOf(segment.after), name });
    at += long;
  }
  return placed;
}

function nameBetween(segments: Segment[], segment: Segment): string {
  const place = segments.indexOf(segment);
  return segments.length === 1 ? "whole run" : place === 0 ? "before the first phase" : place === segments.length - 1 ? "after the last phase" : `between phases ${place / 2} and ${place / 2 + 1}`;
}

export const endOfAll = (placed: Placed[]): number => placed.length ? placed[placed.length - 1].at + placed[placed.length - 1].long : 1;

export function segmentAt(placed: Placed[], position: number): Placed | null {
  let from = 0, to = placed.length;
  while (from < to) { const middle = (from + to) >> 1; if (placed[middle].at + placed[middle].long <= position) from = middle + 1; else to = middle; }
  return placed[from] && position >= placed[from].at ? placed[from] : null;
}

// The second of a run at a position of the axis; in a gap, the end of the stretch before it.
export function secondAt(placed: Placed[], side: Side, position: number): number {
  const segment = segmentAt(placed, position) ?? (position <= (placed[0]?.at ?? 0) ? placed[0] : placed[placed.length - 1]);
  if (!segment) return 0;
  const [from, to] = segment[side];
  return Math.max(from, Math.min(to, from + position - segment.at));
}

export interface Slice { from: number; to: number; at: number } // seconds of the run, and the position of `from`

// The parts of a run between two positions.
export function slicesOf(placed: Placed[], side: Side, low: number, high: number): Slice[] {
  const slices: Slice[] = [];
  for (const segment of placed) {
    if (segment.at + segment.long <= low || segment.at >= high) continue;
    const [start, end] = segment[side], from = Math.max(start, start + low - segment.at), to = Math.min(end, start + high - segment.at);
    if (to > from) slices.push({ from, to, at: segment.at + from - start });
  }
  return slices;
}

// Values per equal step of a run's time as steps of the axis, with nothing in the gaps.
export function stepsOnAxis(slices: Slice[], low: number, step: number, values: ArrayLike<number>): { edges: number[]; numbers: number[] } {
  const edges: number[] = [], numbers: number[] = []; // numbers of values; -1: nothing
  for (const { from, to, at } of slices) {
    if (edges.length) numbers.push(-1);
    edges.push(at);
    for (let n = Math.max(0, Math.floor((from - low) / step)); n < values.length && low + n * step < to; n += 1) {
      numbers.push(n);
      edges.push(at + Math.min(to, low + (n + 1) * step) - from);
    }
  }
  return { edges, numbers };
}
