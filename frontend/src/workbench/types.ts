// What the page's data holds; made by reports/to_html/report.py.
import type { Sheet } from "../shared/tables.ts";

export interface Show {
  layers?: string[]; operations?: string[]; ranks?: number[]; files?: number[]; targets?: number[];
  below?: number; misaligned?: number; times?: [number, number][]; slowest?: [number, number, number][];
}
export interface Advice { text: string; snippet: string | null }
export interface Group { count: number; bytes: number; median_seconds: number | null; rate: number | null }
export interface Cause {
  id: string; code: string; title: string; culprit: Record<string, string>; confidence: number; core_hours: number | null;
  saving: { seconds: number; low: number; high: number; share: number | null };
  contrast: { names: string[]; slow: Group | null; peers: Group | null };
  advice: Advice[]; symptoms: string[]; show: Show | null;
}
export interface Possible { code: string; title: string; upper: number; decide: { text: string; command?: string | null } }
export interface MetricHistory { name: string; unit: string; value: number; median: number; unusual: boolean; earlier: [number, number][] }
export interface History { runs: number; lines: string[]; metrics: MetricHistory[] }
export interface Diagnosis {
  causes: Cause[]; possible: Possible[]; ledger: { what: string; seconds: number }[]; runtime: number | null;
  opportunities: string[]; not_checked: { code: string; needs: string }[]; history?: History | null;
}
export interface Finding {
  id: string; code: string; level: string; title: string; seconds: number | null; cause: string | null;
  evidence: [string, string][]; advice: Advice[]; details: { columns: string[]; rows: string[][] }; show: Show | null;
}
export interface Phase {
  start: number; end: number; kind: string; ranks: number; operations: number; bytes: number; typical: number | null;
  fastest: { rank: number | null; time: number }; slowest: { rank: number | null; time: number };
}
export interface Header { count: number; origin: number; tick: number; columns: [string, number][]; functions: string[] }
export interface Picture extends Partial<Header> { start: number; end: number; calls: number; width: number | null; source: string; count: number; data?: string }
export interface Curve { start: number; step: number; values: (number | null)[] }
export interface Rhythm {
  of: string; signal: Curve; period: { seconds: number; confidence: number } | null; starts: number[];
  next: { start: number; end: number; bytes: number } | null; spectrum: { frequency: (number | null)[]; share: (number | null)[] };
}
export interface PageData {
  source: string[]; warnings: string[]; verdict: { line: string; first: string | null }; facts: [string, string][];
  ranks: number; layers: string[]; titles: Record<string, string>; heights: Record<string, number>; operations: string[];
  hosts: { names: string[]; of: number[] }; threads: Record<string, string>;
  diagnosis: Diagnosis | null; files: Record<string, string>; stripes: Record<string, [number, number[]]>; findings: Finding[];
  sizes: { read: number[]; write: number[] };
  phases: Record<string, { phases: Phase[] }>; rhythm: Rhythm | null; tables: Sheet[]; timeline: Picture; time: [number, number];
  explore: boolean; only?: string;
}
