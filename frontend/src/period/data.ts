// What the page of `ioprism period` is given.
import type { Ranges, Sampled, Wave } from "../shared/columns.ts";

export interface Curve extends Sampled { values: (number | null)[]; end: number; mean: number }
export interface Period extends Wave { seconds: number; spread: number; false_alarm_probability: number; confidence: number; method: string; valid_ranges: [number, number][]; repetitions: number; bytes_share: number | null; time_share: number | null }
export interface Picture { periods: number[]; columns: number; start: number; end: number; power: string }
export interface Level { level: number; shortest?: number; longest?: number; details: Sampled | null; approximation?: Sampled }
export interface Hybrid extends Wave { level: number; approximation: Curve; correlation: Curve; ranges: [number, number][] }
export interface Candidate { frequency: number; power_share: number; score: number; confidence: number }
export interface NamedPeriod { seconds: number; direction: string; part: string | null; valid_ranges: [number, number][]; false_alarm_probability: number; confidence: number; bytes_share: number | null; time_share: number | null }
export interface Asynchronous { direction: string; requests: number; hidden: number; waited: number; required: { peak: number }; measured: { peak: number }; b: Curve; t: Curve }
export interface View {
  direction: string; verdict: string; signal: Curve; period: Period | null; candidates: Candidate[];
  waves: { counts: number[]; waves: Wave[]; explained: number[] };
  fit: { explained_before: number; explained: number; waves: Wave[] };
  burst: { width: number; duty_cycle: number; bytes: number } | null;
  ahead: [number, number, number][]; phases: Ranges;
  spectrum: { frequency: number[]; share: number[] }; autocorrelation: Sampled | null;
  scalogram: Picture | null; spectrogram: Picture | null; levels: Level[]; hybrid: Hybrid | null;
}
export interface PeriodData { source: string[]; warnings: string[]; metric: string | null; views: View[]; periods: NamedPeriod[]; asynchronous: Asynchronous[] }

export const NAMES: Record<string, string> = { both: "all I/O", read: "reads", write: "writes" };
export const nameOf = (direction: string): string => Object.hasOwn(NAMES, direction) ? NAMES[direction] : direction;
export const everywhere = (signal: Curve): Ranges => [[signal.start, signal.end]];
