// Rounds of counters as steps over time, and who loads the file system in the last one.
import { count, plural, rate, share } from "../shared/units.ts";

const UNKNOWN = "unknown"; // who a job belongs to
export interface Load { read: number; write: number; operations: number; opens: number }
export interface LoadRow extends Load { name: string; user: string; share: number }
export interface Round extends Load {
  time: number; round: number; moved: { read: number; write: number }; unattributed: number; jobs: LoadRow[]; users: LoadRow[]; targets: LoadRow[];
  counts: { jobs: number; users: number; targets: number; sources: number; answered: number }; notes: string[];
}
// What is kept of a round; the first one of a watch has no rates, and none where no source answers.
export interface Past { time: number; round: number; whole: Load | null; jobs: ReadonlyMap<string, Load> }

export const pastOf = ({ time, round, read, write, operations, opens, jobs, counts }: Round, most: number): Past =>
  ({ time, round, whole: round > 1 && counts.answered ? { read, write, operations, opens } : null, jobs: new Map(jobs.slice(0, most).map((row) => [row.name, { read: row.read, write: row.write, operations: row.operations, opens: row.opens }])) });

export function verdictOf({ round, read, write, jobs, targets, counts }: Round): string {
  if (!counts.answered) return `No answer from ${counts.sources === 1 ? "the source" : `any of ${count(counts.sources)} sources`}: who loads the file system is not known`;
  if (round < 2) return "First answers are in; rates follow with the next round";
  if (!(read + write > 0)) return `No bytes move on ${plural(counts.targets, "target")}`;
  const first = [...jobs, ...targets][0], who = jobs.length ? `job ${first.name}${first.user && first.user !== UNKNOWN ? ` of ${first.user}` : ""}` : first ? `target ${first.name}` : "";
  return `${rate(read)} read and ${rate(write)} written${counts.jobs ? ` by ${plural(counts.jobs, "job")}` : ""} on ${plural(counts.targets, "target")}${first && first.share > 0 ? `; most by ${who} (${share(first.share)})` : ""}`;
}

// A rate holds since the round before. Where rounds between were not heard of, it holds for one round, and a gap (-1) is before it.
export interface Spans { edges: number[]; rounds: number[] }
export function spansOf(past: readonly Past[]): Spans {
  const edges: number[] = [], rounds: number[] = [];
  let step = Infinity;
  for (let n = 1; n < past.length; n += 1) step = Math.min(step, (past[n].time - past[n - 1].time) / Math.max(1, past[n].round - past[n - 1].round));
  past.forEach(({ time, round }, n) => {
    const before = past[n - 1], from = before?.round === round - 1 ? before.time : Math.max(before?.time ?? -Infinity, time - (Number.isFinite(step) ? step : 1));
    if (!edges.length) edges.push(from);
    else if (from > edges[edges.length - 1]) { edges.push(from); rounds.push(-1); }
    edges.push(time);
    rounds.push(n);
  });
  return { edges, rounds };
}
