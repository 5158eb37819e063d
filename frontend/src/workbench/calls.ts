// One call: how a link names it, what came before and after, what is above and below it.
import { bytes, clock, count, duration, rate } from "../shared/units.ts";
import type { Facts } from "../shared/tooltip.ts";
import { busyOf, callsOf, endOf, firstAtLeast, hasBytes, hasPlace, lengthOf, movesBytes, timeOf } from "./marks.ts";
import type { Job } from "./model.ts";

export const callKey = (job: Job, i: number): string => `${job.marks.rank[i]}~${job.data.layers[job.marks.layer[i]]}~${timeOf(job.marks, i)}~${lengthOf(job.marks, i)}`;

export function windowOfCall(key: string): [number, number] | null {
  const [, , start, length] = key.split("~"), from = Number(start), long = Number(length);
  return Number.isFinite(from) && Number.isFinite(long) && start !== undefined ? [from, from + long] : null;
}

// The call that a link names; -1 where the marks do not hold it.
export function findCall(job: Job, key: string): number {
  const [rankText, layerName] = key.split("~"), rank = Number(rankText), span = windowOfCall(key), layer = job.data.layers.indexOf(layerName ?? "");
  if (!span || !Number.isInteger(rank) || layer < 0) return -1;
  const { marks } = job, rows = job.rowsOfRank(rank);
  let best = -1, error = 2 * marks.tick + 1e-12;
  for (const i of rows) {
    if (marks.layer[i] !== layer) continue;
    const off = Math.abs(timeOf(marks, i) - span[0]) + Math.abs(endOf(marks, i) - span[1]);
    if (off < error) { best = i; error = off; }
  }
  return best;
}

// `exact`: the begin to the last digit of the trace, else as the call's length needs it.
export function callFacts(job: Job, i: number, exact = false): Facts {
  const { marks } = job, calls = callsOf(marks, i), file = marks.file[i], host = job.hostOf(marks.rank[i]), targets = job.targetsOf(i);
  const facts: Facts = [["interface", job.layerTitle(marks.layer[i])], job.rankStep > 1 ? ["ranks", job.markRanks(marks.rank[i])] : ["rank", `${marks.rank[i] < 0 ? "all" : marks.rank[i]}${host ? ` on ${host}` : ""}`]];
  if (marks.process) facts.push(["thread", job.threadName(marks.process[i])]);
  facts.push(["from", clock(timeOf(marks, i), exact ? marks.tick : Math.max(marks.tick, lengthOf(marks, i) / 100))], ["took", duration(lengthOf(marks, i))]);
  if (marks.calls && !job.bins) facts.push(["calls", count(calls)], ["time in calls", duration(busyOf(marks, i))]);
  if (hasBytes(marks, i)) facts.push([calls > 1 ? "moved" : "size", bytes(marks.bytes[i])]);
  if (movesBytes(marks, i) && lengthOf(marks, i) > 0 && !job.bins) facts.push(["rate", rate(marks.bytes[i] / lengthOf(marks, i))]);
  if (hasPlace(marks, i)) facts.push(["offset", bytes(marks.offset[i])]);
  if (file >= 0) facts.push(["file", job.fileName(file)]);
  if (targets.length) facts.push(["targets", targets.slice(0, 12).join(", ") + (targets.length > 12 ? " …" : "")]);
  return facts;
}

export const callTitle = (job: Job, i: number): string => job.bins ? "bin of the heat map" : job.counters ? `${job.operationName(job.marks.operation[i])}: first to last` : callsOf(job.marks, i) > 1 ? `${count(callsOf(job.marks, i))} × ${job.functionName(i)}` : job.functionName(i);

export interface Around { before: number; after: number; above: number[]; below: number[] }
const MOST_BELOW = 40;

export function around(job: Job, i: number): Around {
  const { marks } = job, rows = job.rowsOfRank(marks.rank[i]), height = (k: number): number => job.data.heights[job.data.layers[marks.layer[k]]] ?? 0;
  const place = rows.indexOf(i), same = (k: number): boolean => marks.layer[k] === marks.layer[i] && (!marks.process || marks.process[k] === marks.process[i]);
  let before = -1, after = -1;
  for (let n = place - 1; n >= 0; n -= 1) if (same(rows[n])) { before = rows[n]; break; }
  for (let n = place + 1; n < rows.length; n += 1) if (same(rows[n])) { after = rows[n]; break; }
  const start = marks.start[i], end = start + marks.duration[i], above: number[] = [], below: number[] = [];
  const starts = Float64Array.from(rows, (k) => marks.start[k]), last = firstAtLeast(starts, 0, rows.length, end + 1);
  for (let n = 0; n < last; n += 1) {
    const k = rows[n], from = marks.start[k], to = from + marks.duration[k], slack = 1; // tick
    if (k === i || (marks.process && marks.process[k] !== marks.process[i])) continue;
    const holds = from <= start + slack && to >= end - slack, inside = from >= start - slack && to <= end + slack;
    if (holds && (height(k) > height(i) || (marks.layer[k] === marks.layer[i] && to - from > end - start))) above.push(k);
    else if (inside && below.length < MOST_BELOW && (height(k) < height(i) || (marks.layer[k] === marks.layer[i] && to - from < end - start))) below.push(k);
  }
  return { before, after, above: above.sort((a, b) => marks.duration[b] - marks.duration[a]), below };
}
