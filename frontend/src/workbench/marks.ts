// Marks: the calls of a job, or runs of them, as columns of numbers; see views/picture/packed.py.
import type { Header } from "./types.ts";

const HAS_BYTES = 1, HAS_PLACE = 2;
type Column = Int32Array | Float64Array;

export interface Marks {
  count: number; origin: number; tick: number; functions: string[];
  start: Float64Array; duration: Float64Array; bytes: Float64Array; offset: Float64Array; until: Float64Array;
  rank: Int32Array; file: Int32Array; layer: Uint8Array; operation: Uint8Array; flags: Uint8Array;
  calls: Column | null; busy: Column | null; extent: Column | null; process: Int32Array | null; fn: Column | null;
  streams: Int32Array;
}

export function fromBase64(text: string): Uint8Array {
  const direct = (Uint8Array as unknown as { fromBase64?: (text: string) => Uint8Array }).fromBase64;
  if (direct) return direct(text);
  const letters = atob(text), made = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i += 1) made[i] = letters.charCodeAt(i);
  return made;
}

export async function inflate(packed: Uint8Array): Promise<Uint8Array> {
  const stream = new Blob([packed as BlobPart]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// Planes: all lowest bytes first, then the next; two's complement. One pass over all planes: this is most of what opening a page costs.
function numbers(raw: Uint8Array, at: number, n: number, width: number): Int32Array {
  const made = new Int32Array(n), a = raw.subarray(at, at + n), b = raw.subarray(at + n, at + 2 * n), c = raw.subarray(at + 2 * n, at + 3 * n), d = raw.subarray(at + 3 * n, at + 4 * n);
  if (width === 1) for (let i = 0; i < n; i += 1) made[i] = a[i] << 24 >> 24;
  else if (width === 2) for (let i = 0; i < n; i += 1) made[i] = (a[i] << 16 | b[i] << 24) >> 16;
  else if (width === 3) for (let i = 0; i < n; i += 1) made[i] = (a[i] << 8 | b[i] << 16 | c[i] << 24) >> 8;
  else for (let i = 0; i < n; i += 1) made[i] = a[i] | b[i] << 8 | c[i] << 16 | d[i] << 24;
  return made;
}

// Up to eight bytes, as far as a number holds them exactly.
function wideNumbers(raw: Uint8Array, at: number, n: number, width: number): Float64Array {
  if (width <= 4) return Float64Array.from(numbers(raw, at, n, width));
  const low = numbers(raw, at, n, 4), high = numbers(raw, at + 4 * n, n, width - 4), made = new Float64Array(n);
  for (let i = 0; i < n; i += 1) made[i] = high[i] * 4294967296 + (low[i] >>> 0);
  return made;
}

const WIDE = new Set(["start", "duration", "bytes", "offset", "busy", "extent"]); // counted on, or summed, beyond 32 bits

export function decodeMarks(header: Header, raw: Uint8Array): Marks {
  const n = header.count, c: Record<string, Column> = {};
  let at = 0;
  for (const [name, width] of header.columns) {
    c[name] = WIDE.has(name) ? wideNumbers(raw, at, n, width) : numbers(raw, at, n, width);
    at += width * n;
  }
  const marks: Marks = {
    count: n, origin: header.origin, tick: header.tick, functions: header.functions ?? [],
    start: c["start"] as Float64Array, duration: c["duration"] as Float64Array, bytes: c["bytes"] as Float64Array, offset: c["offset"] as Float64Array,
    until: new Float64Array(n), rank: new Int32Array(n), file: new Int32Array(n), layer: new Uint8Array(n), operation: new Uint8Array(n),
    flags: Uint8Array.from(c["flags"]), calls: c["calls"] ?? null, busy: c["busy"] ?? null, extent: c["extent"] ?? null,
    process: c["process"] ? new Int32Array(n) : null, fn: c["function"] ?? null, streams: new Int32Array(0),
  };
  accumulate(c["start"], marks.start, 0);
  accumulate(c["rank"], marks.rank, 0);
  accumulate(c["file"], marks.file, -1);
  if (marks.process) accumulate(c["process"], marks.process, -1);
  const kind = c["kind"], { layer, operation, offset, bytes } = marks;
  let reach = 0;
  for (let i = 0; i < n; i += 1) {
    layer[i] = kind[i] >> 4;
    operation[i] = kind[i] & 15;
    offset[i] += reach;
    reach = offset[i] + bytes[i];
  }
  marks.streams = streamsOf(marks);
  return marks;
}

function accumulate(steps: Column, sums: Column, first: number): void {
  let sum = first;
  for (let i = 0; i < steps.length; i += 1) sums[i] = sum += steps[i];
}

// A stream is one layer, rank, process, file and operation: there, starts ascend; `until` is the last end so far.
function streamsOf(marks: Marks): Int32Array {
  const from: number[] = [], { count, layer, rank, file, operation, start, duration, until, process } = marks;
  let last = 0;
  for (let i = 0; i < count; i += 1) {
    const begins = i === 0 || layer[i] !== layer[i - 1] || rank[i] !== rank[i - 1] || file[i] !== file[i - 1]
      || operation[i] !== operation[i - 1] || start[i] < start[i - 1] || (process !== null && process[i] !== process[i - 1]);
    if (begins) { from.push(i); last = 0; }
    const end = start[i] + duration[i];
    if (end > last) last = end;
    until[i] = last;
  }
  from.push(count);
  return Int32Array.from(from);
}

export const timeOf = (marks: Marks, i: number): number => marks.origin + marks.start[i] * marks.tick;
export const endOf = (marks: Marks, i: number): number => marks.origin + (marks.start[i] + marks.duration[i]) * marks.tick;
export const lengthOf = (marks: Marks, i: number): number => marks.duration[i] * marks.tick;
export const busyOf = (marks: Marks, i: number): number => (marks.busy ? marks.busy[i] : marks.duration[i]) * marks.tick;
export const callsOf = (marks: Marks, i: number): number => marks.calls ? marks.calls[i] : 1;
export const extentOf = (marks: Marks, i: number): number => marks.extent ? marks.extent[i] : marks.bytes[i];
export const hasBytes = (marks: Marks, i: number): boolean => (marks.flags[i] & HAS_BYTES) > 0;
export const hasPlace = (marks: Marks, i: number): boolean => (marks.flags[i] & HAS_PLACE) > 0;
export const movesBytes = (marks: Marks, i: number): boolean => marks.operation[i] < 2 && hasBytes(marks, i) && marks.bytes[i] > 0;

export function firstAtLeast(values: ArrayLike<number>, from: number, to: number, wanted: number): number {
  while (from < to) {
    const middle = (from + to) >> 1;
    if (values[middle] < wanted) from = middle + 1; else to = middle;
  }
  return from;
}

// Calls `take(from, to)` for the part of every stream, or of the given ones, that touches the time from low to high.
export function eachStretch(marks: Marks, low: number, high: number, take: (from: number, to: number) => void, some: ArrayLike<number> | null = null): void {
  const a = (low - marks.origin) / marks.tick, b = (high - marks.origin) / marks.tick, { streams, until, start } = marks, all = some ? some.length : streams.length - 1;
  for (let n = 0; n < all; n += 1) {
    const s = some ? some[n] : n, first = firstAtLeast(until, streams[s], streams[s + 1], a), last = firstAtLeast(start, first, streams[s + 1], b + 1e-9);
    if (last > first) take(first, last);
  }
}
