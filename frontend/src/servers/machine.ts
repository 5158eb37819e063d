// What the page of a machine knows, and which of its jobs are looked at.
import { byId } from "../shared/dom.ts";

export type Direction = "read" | "write";
export const DIRECTIONS: Direction[] = ["read", "write"];
export const MOVED: Record<Direction, string> = { read: "read", write: "written" };
export const TONE: Record<Direction, string> = { read: "--c1", write: "--c2" };
export const MEASURES: Record<string, string> = { intensity: "I/O intensity", burstiness: "burstiness", parallel_intensity: "parallel intensity" };

type Values = (number | null)[];
interface Words { words: string[]; of: number[] }
interface Side { bytes: Values; shared_bytes: Values; max_bandwidth: Values; [measure: string]: Values | Values[] }
interface Totals { bytes: number; attributed: number; shared: number; unattributed: number; outside: number; small: string; sizes: [number, number | null, number, number][] }
interface Jobs {
  id: string[]; start: number[]; end: number[]; servers: number[]; coverage: Values; flags: number[]; flag_names: string[];
  attribution: Words; user: Words; account: Words; partition: Words; name: Words; read: Side; write: Side;
}
export interface MachineData {
  interval: number; thresholds: number[]; settings: Record<string, number | string>; peaks: Record<Direction, number | null>; warnings: string[]; jobs: Jobs;
  load: { servers: string[]; edges: number[]; unattributed: number[][]; read: number[][]; write: number[][] };
  machine: { dominance: string; attribution: string[]; listed: number; users: [string, number, number, number, number][]; accounts: [string, number, number, number, number][]; read: Totals; write: Totals };
  profile: { timezone: string; read: Values[]; write: Values[] };
  trend: { sentence: string; compared: [string, string] | null; months: [string, number, number, number, number | null, number | null][]; accounts: [string, number, number][] };
  interference: { sentence: string; pairs: (string | number)[][] }; contacts: [string, string, number, number, number][];
}
export const NAMES = ["user", "account", "partition"] as const;
export interface Choice { user: string; account: string; partition: string; cell: string }

export const data = JSON.parse(byId("data").textContent ?? "{}") as MachineData;
export const { jobs } = data;
export const ALL = jobs.id.map((_, place) => place);
export const word = (name: "user" | "account" | "partition" | "name" | "attribution", job: number): string => jobs[name].words[jobs[name].of[job]];
export const moved = (job: number): number => (jobs.read.bytes[job] ?? 0) + (jobs.write.bytes[job] ?? 0);
export const flagsOf = (job: number): string => jobs.flag_names.filter((_, bit) => jobs.flags[job] & (1 << bit)).join(" ");
export const measured = (direction: Direction, measure: string, threshold: number): Values => jobs[direction][measure][threshold] as Values;
export const known = (values: Values): number[] => values.filter((value): value is number => value !== null);

// Jobs that run in a stretch of time, of the chosen user, account and partition.
export function pickJobs(low: number, high: number, choice: Choice): number[] {
  const names = NAMES.map((name) => [jobs[name].of, choice[name] === "" ? -1 : jobs[name].words.indexOf(choice[name])] as const).filter(([, wanted]) => wanted >= 0);
  return ALL.filter((job) => jobs.end[job] >= low && jobs.start[job] <= high && names.every(([of, wanted]) => of[job] === wanted));
}

export function eighty(values: Values): number | null {
  const sorted = known(values).sort((a, b) => a - b);
  return sorted.length ? sorted[Math.ceil(0.8 * sorted.length) - 1] : null;
}

// What share of all bytes a fifth of the jobs moves.
export function topShare(values: Values): number | null {
  const sorted = values.map((value) => value ?? 0).sort((a, b) => b - a), total = sorted.reduce((sum, value) => sum + value, 0);
  return total > 0 ? sorted.slice(0, Math.ceil(0.2 * sorted.length)).reduce((sum, value) => sum + value, 0) / total : null;
}

// The range of some values as powers of 2, widened to multiples of 5.
export function powers(values: number[]): [number, number] {
  let low = Infinity, high = -Infinity;
  for (const value of values) { if (value < low) low = value; if (value > high) high = value; }
  if (low === Infinity) return [1, 2 ** 5];
  const from = 5 * Math.floor(Math.log2(low) / 5);
  return [2 ** from, 2 ** Math.max(5 * Math.ceil(Math.log2(high) / 5), from + 5)];
}

// Sorted values and the share of them at or below each, thinned to what a screen can show.
export function distribution(values: number[]): { x: number[]; y: number[] } {
  const sorted = values.slice().sort((a, b) => a - b), step = Math.max(1, Math.floor(sorted.length / 500)), x: number[] = [], y: number[] = [];
  for (let n = 0; n < sorted.length; n += step) { x.push(sorted[n]); y.push((n + 1) / sorted.length); }
  if (sorted.length) { x.push(sorted[sorted.length - 1]); y.push(1); }
  return { x, y };
}
