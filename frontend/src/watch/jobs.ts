// What is known of running jobs: who needs attention first, what was predicted, in bounded memory.
import { Recent } from "../shared/live.ts";

export interface PhaseAhead { job: string; start: number; end: number; bytes: number; confidence: number } // seconds from now
export interface Outcome { due: number; came: number | null; on_time: boolean } // seconds from now
export interface Overlap { start: number; end: number; jobs: string[]; rate: number }
export interface Job {
  job: string; ranks: number | null; messages: number; silent_seconds: number; clock: number; period: number | null; spread: number | null; confidence: number | null; direction: string;
  ahead: PhaseAhead[]; predicted: Outcome[]; on_time_share: number | null; likely: [number, number, number][]; // shortest and longest period, probability
}
export interface Fleet { horizon: number; lag_seconds: number; analyses_waiting: number; jobs: Job[]; overlaps: Overlap[] }
export interface Change { time: number; before: number | null; after: number | null }
export interface Prediction { job: string; time: number; period: { seconds: number; confidence: number } | null; change: Change | null }
export interface Turn { job: string; wants: boolean; may_write: boolean; share: number; until: number; set: number | null; period: number | null; waited: number }

export const EMPTY: Fleet = { horizon: 60, lag_seconds: 0, analyses_waiting: 0, jobs: [], overlaps: [] };
const POOR = 0.5, SILENT_PERIODS = 3, SILENT = 60; // share of phases on time; periods or seconds without a message

// A number that sorts jobs by how soon someone should look: overlaps first, then wrong predictions, then the next phase.
export interface Need { urgency: number; text: string; level: string }
export function needOf(job: Job, overlaps: readonly Overlap[]): Need {
  const meeting = overlaps.find((one) => one.jobs.includes(job.job)), next = job.ahead[0];
  if (job.silent_seconds > Math.max(SILENT, SILENT_PERIODS * (job.period ?? 0))) return { urgency: 4e9 + job.silent_seconds, text: "silent, may have ended", level: "" };
  if (meeting) return { urgency: Math.max(0, meeting.start), text: `overlaps with ${othersOf(meeting, job.job)}`, level: "large" };
  if (job.on_time_share !== null && job.on_time_share < POOR) return { urgency: 1e9 + 1e3 * job.on_time_share, text: "phases come at other times than predicted", level: "medium" };
  if (next) return { urgency: 2e9 + Math.max(0, next.start), text: "", level: "" };
  return { urgency: 3e9, text: job.period === null ? "no period yet" : "next phase unknown", level: "" };
}

function othersOf(overlap: Overlap, job: string): string {
  const others = overlap.jobs.filter((name) => name !== job);
  return others.length > 2 ? `${others[0]} and ${others.length - 1} others` : others.join(" and ");
}

export function byNeed(fleet: Fleet): { job: Job; need: Need }[] {
  const soonest = new Map<string, Overlap>();
  for (const one of fleet.overlaps) for (const name of one.jobs) if (!soonest.has(name)) soonest.set(name, one);
  return fleet.jobs.map((job) => ({ job, need: needOf(job, soonest.has(job.job) ? [soonest.get(job.job)!] : []) })).sort((a, b) => a.need.urgency - b.need.urgency || (a.job.job < b.job.job ? -1 : 1));
}

// The periods that were found, by job: the latest of each, of the jobs that spoke last.
export class PeriodLog {
  private readonly jobs = new Map<string, Recent<{ time: number; period: number | null }>>();
  constructor(readonly mostJobs: number, readonly mostEach: number) {}

  add(job: string, time: number, period: number | null): void {
    const log = this.jobs.get(job) ?? new Recent(this.mostEach);
    this.jobs.delete(job);
    this.jobs.set(job, log);
    log.add({ time, period });
    if (this.jobs.size > this.mostJobs) this.jobs.delete(this.jobs.keys().next().value as string);
  }

  of(job: string): readonly { time: number; period: number | null }[] { return this.jobs.get(job)?.all ?? []; }
  get size(): number { return this.jobs.size; }
}

// "now", "in 12 s", "3 s late"
export function whenText(seconds: number, end: number, write: (value: number) => string): string {
  if (seconds > 0.5) return `in ${write(Math.ceil(seconds))}`;
  return end > 0 ? "now" : `${write(Math.max(1, Math.round(-seconds)))} late`;
}
