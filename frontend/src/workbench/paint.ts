// What colour a mark has: by operation, function, file, size, duration or bytes. Ordered things get ordered colours.
import { inkOn, ramp, rgb, type Rgb } from "../shared/colours.ts";
import { busyOf, callsOf, movesBytes } from "./marks.ts";
import { shortNames } from "../shared/paths.ts";
import type { Job } from "./model.ts";

export interface Paint { names: string[]; colours: Rgb[]; inks: string[]; category: Uint8Array; present: Set<number> }

// Darshan's own classes of request sizes.
export const SIZE_LIMITS = [100, 1024, 10240, 102400, 1048576, 4194304, 10485760, 104857600, 1073741824];
export const SIZE_NAMES = ["0–100 B", "1 KiB", "10 KiB", "100 KiB", "1 MiB", "4 MiB", "10 MiB", "100 MiB", "1 GiB", "larger"];
const TIME_LIMITS = [1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1, 10];
const TIME_NAMES = ["up to 10 µs", "100 µs", "1 ms", "10 ms", "100 ms", "1 s", "10 s", "longer"];
const OPERATION_GROUPS = ["read", "write", "open, close, stat", "sync", "seek, other"];
const PROGRAM_TONES = ["--f5", "--f6", "--f7"]; // of the functions in which the program itself spends most time; no operation has these
const GROUP_OF: Record<string, number> = { read: 0, write: 1, open: 2, close: 2, stat: 2, metadata: 2, sync: 3 };
const SERIES = 8; // colours that can be told apart

export function classOf(limits: number[], value: number): number {
  let bin = 0;
  while (bin < limits.length && value > limits[bin]) bin += 1;
  return bin;
}

const series = (): Rgb[] => Array.from({ length: SERIES }, (_, n) => rgb(`--f${n + 1}`));

export function paintOf(job: Job, by: string): Paint {
  const { marks } = job, program = job.data.layers.indexOf("application");
  const made = by === "function" ? frequent(job, "function") : by === "file" ? frequent(job, "file") : by === "size" ? sizes(job) : by === "duration" ? lengths(job) : operations(job, program);
  const category = new Uint8Array(marks.count), present = new Set<number>(), { streams } = marks;
  for (let n = 0; n + 1 < streams.length; n += 1) {
    const from = streams[n], to = streams[n + 1];
    if (made.byStream(from)) { const tone = made.of(from); present.add(tone); category.fill(tone, from, to); }
    else for (let i = from; i < to; i += 1) { const tone = made.of(i); category[i] = tone; present.add(tone); }
  }
  return { names: made.names, colours: made.colours, inks: made.colours.map(inkOn), category, present };
}

interface Scheme { names: string[]; colours: Rgb[]; of: (i: number) => number; byStream: (first: number) => boolean } // byStream: whether calls of one rank, interface, file and operation look alike

function operations(job: Job, program: number): Scheme {
  const group = job.data.operations.map((name) => GROUP_OF[name] ?? 4);
  const { layer, operation, fn, functions } = job.marks, own = job.programFunctions(PROGRAM_TONES.length), rest = OPERATION_GROUPS.length + own.length;
  const place = functions.map((name) => own.indexOf(name)), ofProgram = (i: number): number => { const n = fn && fn[i] ? place[fn[i] - 1] : -1; return n < 0 ? rest : OPERATION_GROUPS.length + n; };
  return { names: [...OPERATION_GROUPS, ...own, own.length ? "rest of the program" : "program"], colours: ["--c1", "--c2", "--c3", "--c4", "--c5", ...PROGRAM_TONES.slice(0, own.length), "--c6"].map(rgb), of: (i) => layer[i] === program ? ofProgram(i) : job.isOutside(i) ? rest : group[operation[i]], byStream: (i) => layer[i] !== program };
}

function sizes(job: Job): Scheme {
  const of = (i: number): number => movesBytes(job.marks, i) ? classOf(SIZE_LIMITS, job.marks.bytes[i] / Math.max(1, callsOf(job.marks, i))) : SIZE_NAMES.length;
  return { names: [...SIZE_NAMES, "no data"], colours: [...ramp(SIZE_NAMES.length), rgb("--rest")], of, byStream: () => false };
}

function lengths(job: Job): Scheme {
  return { names: TIME_NAMES, colours: ramp(TIME_NAMES.length), of: (i) => classOf(TIME_LIMITS, busyOf(job.marks, i) / Math.max(1, callsOf(job.marks, i))), byStream: () => false };
}

// The files or functions that take most time have colours of their own.
function frequent(job: Job, what: "file" | "function"): Scheme {
  const { marks } = job, spent = new Map<number, number>();
  const key = what === "file" ? (i: number): number => marks.file[i] : (i: number): number => marks.fn && marks.fn[i] ? marks.fn[i] : -1 - marks.operation[i];
  for (let i = 0; i < marks.count; i += 1) { const k = key(i); if (what === "function" || k >= 0) spent.set(k, (spent.get(k) ?? 0) + busyOf(marks, i)); }
  const top = [...spent].sort((a, b) => b[1] - a[1]).slice(0, SERIES).map(([k]) => k), place = new Map(top.map((k, n) => [k, n]));
  const short = shortNames(what === "file" ? top.map((k) => job.fileName(k)) : []), name = (k: number): string => what === "file" ? short(job.fileName(k)) : k > 0 ? marks.functions[k - 1] : job.operationName(-1 - k);
  return { names: [...top.map(name), what === "file" ? "other files" : "other functions"], colours: [...series().slice(0, top.length), rgb("--rest")], of: (i) => place.get(key(i)) ?? top.length, byStream: () => what === "file" };
}
