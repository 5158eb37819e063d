"use strict";
// Marks: the calls of a job, or runs of them, as columns of numbers; see views/packed.py.
const HAS_BYTES = 1, HAS_PLACE = 2;

function fromBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const letters = atob(text), made = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i += 1) made[i] = letters.charCodeAt(i);
  return made;
}

async function inflate(packed) {
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// Columns stand one after the other, each as planes: all lowest bytes first.
function columnsOf(header, raw) {
  const found = {}, n = header.count;
  let at = 0;
  for (const [name, width] of header.columns) {
    found[name] = width === 8 ? wideNumbers(raw, at, n) : numbers(raw, at, n, width);
    at += width * n;
  }
  return found;
}

function numbers(raw, at, n, width) {
  const made = new Uint32Array(n);
  for (let plane = 0; plane < width; plane += 1) {
    const from = at + plane * n, shift = 8 * plane;
    for (let i = 0; i < n; i += 1) made[i] |= raw[from + i] << shift;
  }
  return made;
}

// Eight bytes, as far as a number can hold them exactly; negative ones in two's complement.
function wideNumbers(raw, at, n) {
  const low = numbers(raw, at, n, 4), high = numbers(raw, at + 4 * n, n, 4), made = new Float64Array(n);
  for (let i = 0; i < n; i += 1) made[i] = (high[i] | 0) * 4294967296 + low[i];
  return made;
}

function marksOf(header, raw) {
  const n = header.count, c = columnsOf(header, raw);
  const marks = {
    count: n, origin: header.origin, tick: header.tick,
    start: c.start, duration: c.duration, bytes: c.bytes, offset: c.offset, flags: c.flags,
    rank: new Int32Array(n), file: new Int32Array(n), layer: new Uint8Array(n), operation: new Uint8Array(n),
    calls: c.calls || null, busy: c.busy || null, extent: c.extent || null, until: new Float64Array(n),
  };
  let start = 0, rank = 0, file = 0, reach = 0;
  for (let i = 0; i < n; i += 1) {
    start += c.start[i]; marks.start[i] = start;
    rank = (rank + c.rank[i]) | 0; marks.rank[i] = rank;
    file = (file + c.file[i]) | 0; marks.file[i] = file - 1;
    marks.layer[i] = c.kind[i] >> 4; marks.operation[i] = c.kind[i] & 15;
    const offset = reach + c.offset[i];
    marks.offset[i] = offset; reach = offset + c.bytes[i];
  }
  marks.streams = streamsOf(marks);
  return marks;
}

// A stream is one layer, rank, file and operation: there, starts ascend; `until` is the last end so far.
function streamsOf(marks) {
  const from = [], { count, layer, rank, file, operation, start, duration, until } = marks;
  let last = 0;
  for (let i = 0; i < count; i += 1) {
    const begins = i === 0 || layer[i] !== layer[i - 1] || rank[i] !== rank[i - 1]
      || file[i] !== file[i - 1] || operation[i] !== operation[i - 1] || start[i] < start[i - 1];
    if (begins) { from.push(i); last = 0; }
    last = Math.max(last, start[i] + duration[i]);
    until[i] = last;
  }
  from.push(count);
  return Int32Array.from(from);
}

const timeOf = (marks, i) => marks.origin + marks.start[i] * marks.tick;
const lengthOf = (marks, i) => marks.duration[i] * marks.tick;
const busyOf = (marks, i) => (marks.busy ? marks.busy[i] : marks.duration[i]) * marks.tick;
const callsOf = (marks, i) => marks.calls ? marks.calls[i] : 1;
const extentOf = (marks, i) => marks.extent ? marks.extent[i] : marks.bytes[i];
const movesBytes = (marks, i) => marks.operation[i] < 2 && (marks.flags[i] & HAS_BYTES) > 0 && marks.bytes[i] > 0;

function firstAtLeast(values, from, to, wanted) {
  while (from < to) {
    const middle = (from + to) >> 1;
    if (values[middle] < wanted) from = middle + 1; else to = middle;
  }
  return from;
}

// Calls `take(from, to)` for the stretch of every stream that touches the time from low to high.
function eachStretch(marks, low, high, take) {
  const a = (low - marks.origin) / marks.tick, b = (high - marks.origin) / marks.tick, { streams, until, start } = marks;
  for (let s = 0; s + 1 < streams.length; s += 1) {
    const first = firstAtLeast(until, streams[s], streams[s + 1], a);
    const last = firstAtLeast(start, first, streams[s + 1], b + 1e-9);
    if (last > first) take(first, last);
  }
}
