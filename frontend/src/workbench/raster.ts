// Marks to pixels without a graphics card: how much of each pixel's time every category takes.
import type { Rgb } from "../shared/colours.ts";
import { eachStretch, movesBytes } from "./marks.ts";
import type { Job } from "./model.ts";

let planes = new Float32Array(0); // kept from picture to picture: fetching memory takes longer than clearing it

function emptyPlanes(length: number): Float32Array {
  if (planes.length < length) planes = new Float32Array(length);
  return planes.subarray(0, length).fill(0);
}

export interface Grid { low: number; high: number; width: number; rows: number; rowOf: Int32Array; streams?: number[] } // rowOf[rank + 1]; -1: not seen; streams: the only ones that are seen

// Time that marks of each category take in each cell; the last plane holds faded marks.
export function rasterise(job: Job, grid: Grid, layers: Set<number>, category: Uint8Array, categories: number, lit: Uint8Array | null, process = -1): Float32Array {
  const { marks } = job, { width, rows, rowOf, low, high } = grid, size = rows * width, cells = emptyPlanes((categories + 1) * size);
  const origin = (low - marks.origin) / marks.tick, scale = width * marks.tick / (high - low), { start, duration, busy, rank } = marks;
  eachStretch(marks, low, high, (from, to) => {
    const row = rowOf[rank[from] + 1] ?? -1;
    if (row < 0 || !layers.has(marks.layer[from]) || (process >= 0 && marks.process![from] !== process)) return;
    for (let i = from; i < to; i += 1) {
      const base = (lit && !lit[i] ? categories : category[i]) * size + row * width;
      const x = (start[i] - origin) * scale, long = duration[i] * scale, dense = busy && duration[i] ? busy[i] / duration[i] : 1;
      const a = x < 0 ? 0 : x, b = Math.min(width, x + long), first = Math.min(width - 1, a | 0), last = Math.min(width - 1, b | 0);
      if (first === last) { cells[base + first] += Math.max(1e-4, (b - a) * dense); continue; }
      cells[base + first] += (first + 1 - a) * dense;
      for (let p = first + 1; p < last; p += 1) cells[base + p] += dense;
      cells[base + last] += Math.max(1e-4, (b - last) * dense);
    }
  }, grid.streams);
  return cells;
}

// The strongest category colours a pixel; the busier the ranks of its row, the fuller the colour.
export function imageOf(cells: Float32Array, grid: Grid, categories: number, colours: Rgb[], share: Float32Array, faded: Rgb): ImageData {
  const { width, rows } = grid, image = new ImageData(width, rows), size = width * rows, out = new Uint32Array(image.data.buffer);
  for (let row = 0; row < rows; row += 1) {
    const most = share[row] || 1;
    for (let p = row * width, end = p + width; p < end; p += 1) {
      let best = -1, strongest = 0, sum = 0;
      for (let k = 0, at = p; k < categories; k += 1, at += size) {
        const value = cells[at];
        if (value > 0) { sum += value; if (value > strongest) { strongest = value; best = k; } }
      }
      let tone = faded, alpha = 0;
      if (best >= 0) { tone = colours[best]; alpha = 60 + 195 * Math.sqrt(Math.min(1, sum / most)); }
      else if (cells[categories * size + p] > 0) alpha = 40 + 60 * Math.sqrt(Math.min(1, cells[categories * size + p] / most));
      if (alpha) out[p] = (Math.min(255, alpha) << 24 | tone[2] << 16 | tone[1] << 8 | tone[0]) >>> 0;
    }
  }
  return image;
}

// Adds up amounts in cells, each spread evenly over its mark's time; `rowOf` says where a mark goes, -1: nowhere.
export function spread(job: Job, low: number, high: number, columns: number, rows: number, rowOf: (first: number) => number, value: (i: number) => number): Float64Array {
  const { marks } = job, sums = new Float64Array(rows * columns), origin = (low - marks.origin) / marks.tick, scale = columns * marks.tick / (high - low);
  const { start, duration } = marks, end = columns - 1;
  eachStretch(marks, low, high, (from, to) => {
    const row = rowOf(from);
    if (row < 0) return;
    const base = row * columns;
    for (let i = from; i < to; i += 1) {
      const amount = value(i);
      if (!(amount > 0)) continue;
      const x = (start[i] - origin) * scale, long = duration[i] * scale + 1e-9, until = x + long, a = x < 0 ? 0 : x, b = until > columns ? columns : until;
      if (b <= a) continue;
      const first = a | 0, last = Math.min(end, b | 0), each = amount / long;
      if (first === last) { sums[base + first] += each * (b - a); continue; }
      sums[base + first] += each * (first + 1 - a);
      for (let p = first + 1; p < last; p += 1) sums[base + p] += each;
      sums[base + last] += each * (b - last);
    }
  });
  return sums;
}

export type Counted = Set<number>[]; // the layers at which reads, and at which writes, count
export const movedBytes = (job: Job, layers: Counted) => (i: number): number => movesBytes(job.marks, i) && layers[job.marks.operation[i]].has(job.marks.layer[i]) ? job.marks.bytes[i] : 0;
