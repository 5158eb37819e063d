// Totals of a window of time and ranks on one layer; what a call does outside of the window does not count.
import { busyOf, callsOf, eachStretch, endOf, lengthOf, movesBytes, timeOf } from "./marks.ts";
import type { Job } from "./model.ts";
import { classOf, SIZE_LIMITS, SIZE_NAMES } from "./paint.ts";

export interface Amounts { busy: number; bytes: number; calls: number }
export interface Summary {
  seconds: number; ranks: number; calls: number; requests: number; busy: number; read: number; written: number;
  wall: number | null; // seconds with at least one rank in a call; null: too many calls to tell
  byRank: Map<number, Amounts>; byFile: Map<number, Amounts>; byTarget: Map<number, Amounts>; byFunction: Map<string, Amounts>;
  sizes: { read: number[]; write: number[] }; // requests per class of size
}

const MOST_MERGED = 300000; // intervals that are sorted for the wall time; more take longer than a step should

export function empty(seconds: number, ranks: number): Summary {
  const zeros = (): number[] => new Array<number>(SIZE_NAMES.length).fill(0);
  return { seconds, ranks, calls: 0, requests: 0, busy: 0, read: 0, written: 0, wall: null, byRank: new Map(), byFile: new Map(), byTarget: new Map(), byFunction: new Map(), sizes: { read: zeros(), write: zeros() } };
}

function add<K>(map: Map<K, Amounts>, key: K, busy: number, bytes: number, calls: number): void {
  const sums = map.get(key);
  if (sums) { sums.busy += busy; sums.bytes += bytes; sums.calls += calls; } else map.set(key, { busy, bytes, calls });
}

export function summarise(job: Job, layer: number, low: number, high: number, ranks: (rank: number) => boolean): Summary {
  const { marks } = job, counted = Array.from({ length: job.ranks }, (_, rank) => rank).filter(ranks).length, sum = empty(high - low, Math.max(1, counted));
  const from: number[] = [], to: number[] = [];
  eachStretch(marks, low, high, (first, last) => {
    if (marks.layer[first] !== layer || job.isOutside(first) || !ranks(marks.rank[first])) return;
    for (let i = first; i < last; i += 1) {
      const start = timeOf(marks, i), end = endOf(marks, i), long = lengthOf(marks, i), a = Math.max(low, start), b = Math.min(high, end);
      const part = long > 0 ? Math.max(0, b - a) / long : 1;
      if (long > 0 && b - a < 0.5 * marks.tick) continue; // an edge that was computed may miss the call's own by a rounding error
      include(job, sum, i, part);
      if (from.length <= MOST_MERGED) { from.push(a); to.push(b); }
    }
  });
  sum.wall = from.length > MOST_MERGED || marks.busy ? null : union(from, to);
  return sum;
}

function include(job: Job, sum: Summary, i: number, part: number): void {
  const { marks } = job, busy = busyOf(marks, i) * part, moved = movesBytes(marks, i) ? marks.bytes[i] * part : 0, calls = callsOf(marks, i);
  sum.calls += calls;
  sum.busy += busy;
  if (marks.operation[i] === 0) sum.read += moved; else if (marks.operation[i] === 1) sum.written += moved;
  if (moved > 0) { sum.requests += calls; sum.sizes[marks.operation[i] === 0 ? "read" : "write"][classOf(SIZE_LIMITS, marks.bytes[i] / Math.max(1, calls))] += calls; }
  add(sum.byRank, marks.rank[i], busy, moved, calls);
  add(sum.byFunction, job.functionName(i), busy, moved, calls);
  if (marks.file[i] >= 0) {
    add(sum.byFile, marks.file[i], busy, moved, calls);
    const targets = moved > 0 ? job.targetsOf(i) : [];
    for (const target of targets) add(sum.byTarget, target, busy / targets.length, moved / targets.length, calls);
  }
}

export function union(from: number[], to: number[]): number {
  const order = Float64Array.from(from.keys()).sort((a, b) => from[a] - from[b]);
  let covered = 0, until = -Infinity;
  for (const n of order) {
    if (to[n] <= until) continue;
    covered += to[n] - Math.max(from[n], until);
    until = to[n];
  }
  return covered;
}

// What is left of a whole without a part of it.
export function without(whole: Summary, part: Summary): Summary {
  const left = empty(Math.max(0, whole.seconds - part.seconds), whole.ranks);
  for (const key of ["calls", "requests", "busy", "read", "written"] as const) left[key] = Math.max(0, whole[key] - part[key]);
  left.wall = whole.wall === null || part.wall === null ? null : Math.max(0, whole.wall - part.wall);
  for (const key of ["byRank", "byFile", "byTarget"] as const) for (const [name, sums] of whole[key]) {
    const gone = part[key].get(name);
    add(left[key], name, sums.busy - (gone?.busy ?? 0), sums.bytes - (gone?.bytes ?? 0), sums.calls - (gone?.calls ?? 0));
  }
  for (const way of ["read", "write"] as const) left.sizes[way] = whole.sizes[way].map((value, n) => Math.max(0, value - part.sizes[way][n]));
  return left;
}

// The average of several summaries, for a window that is compared with others of its kind.
export function average(parts: Summary[]): Summary {
  const n = parts.length, of = (pick: (part: Summary) => number): number => parts.reduce((sum, part) => sum + pick(part), 0) / n;
  const mean = empty(of((part) => part.seconds), parts[0].ranks);
  for (const key of ["calls", "requests", "busy", "read", "written"] as const) mean[key] = of((part) => part[key]);
  mean.wall = parts.some((part) => part.wall === null) ? null : of((part) => part.wall ?? 0);
  for (const part of parts) for (const [rank, sums] of part.byRank) add(mean.byRank, rank, sums.busy / n, sums.bytes / n, sums.calls / n);
  for (const way of ["read", "write"] as const) mean.sizes[way] = mean.sizes[way].map((_, size) => of((part) => part.sizes[way][size]));
  return mean;
}

export const top = <K>(map: Map<K, Amounts>, most: number, size: (sums: Amounts) => number): [K, Amounts][] => [...map].sort((a, b) => size(b[1]) - size(a[1])).slice(0, most);
