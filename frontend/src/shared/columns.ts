// Curves over time by columns of pixels: the lowest and the highest value in each, so that no peak is lost.
import { ticks as linearTicks } from "d3-array";
import { colour, css, rgb } from "./colours.ts";
import { acrossOf, drawNote, type Box, type TickName } from "./curves.ts";
import type { Pen } from "./pen.ts";
import { amountTicks, type Amount } from "./ticks.ts";
import { plain } from "./units.ts";

export interface Columns { low: Float64Array; high: Float64Array } // NaN where there is nothing
export type Ranges = readonly (readonly [number, number])[];
export interface Wave { frequency: number; amplitude: number; phase: number }
export interface Sampled { start: number; step: number; values: ArrayLike<number | null> }
export interface ColumnCurve { name: string; tone: string; width?: number; dash?: number[]; columns: (low: number, high: number, count: number) => Columns; at: (time: number) => number | null }

function emptyColumns(count: number): Columns { return { low: new Float64Array(count).fill(NaN), high: new Float64Array(count).fill(NaN) }; }

export function sampledColumns({ start, step, values }: Sampled, low: number, high: number, count: number): Columns {
  const made = emptyColumns(count), wide = (high - low) / count;
  for (let n = 0; n < count; n += 1) {
    const from = Math.floor((low + n * wide - start) / step + 1e-9), to = Math.max(from + 1, Math.ceil((low + (n + 1) * wide - start) / step - 1e-9));
    let least = Infinity, most = -Infinity;
    for (let i = Math.max(0, from); i < Math.min(to, values.length); i += 1) {
      const value = values[i];
      if (value === null) continue;
      if (value < least) least = value;
      if (value > most) most = value;
    }
    if (least <= most) { made.low[n] = least; made.high[n] = most; }
  }
  return made;
}

export function valueAt({ start, step, values }: Sampled, time: number): number | null {
  const place = Math.floor((time - start) / step);
  return place < 0 || place >= values.length ? null : values[place];
}

export const isWithin = (ranges: Ranges, time: number): boolean => ranges.some(([from, to]) => time >= from && time <= to);

export function sumOfWaves(waves: readonly Wave[], time: number): number {
  let sum = 0;
  for (const { frequency, amplitude, phase } of waves) sum += amplitude * Math.cos(2 * Math.PI * frequency * time + phase);
  return sum;
}

// A sum of waves where it holds; where one turns faster than four columns, its columns get its whole reach.
export function waveColumns(waves: readonly Wave[], ranges: Ranges, low: number, high: number, count: number): Columns {
  const made = emptyColumns(count), wide = (high - low) / count, slow = waves.filter((one) => one.frequency * wide < 0.25);
  const reach = waves.reduce((sum, one) => sum + (one.frequency * wide < 0.25 ? 0 : Math.abs(one.amplitude)), 0);
  for (let n = 0; n < count; n += 1) {
    const time = low + (n + 0.5) * wide;
    if (!isWithin(ranges, time)) continue;
    const value = sumOfWaves(slow, time);
    made.low[n] = value - reach;
    made.high[n] = value + reach;
  }
  return made;
}

export const sampledCurve = (name: string, tone: string, sampled: Sampled, more: Partial<ColumnCurve> = {}): ColumnCurve => ({ name, tone, columns: (low, high, count) => sampledColumns(sampled, low, high, count), at: (time) => valueAt(sampled, time), ...more });
export const waveCurve = (name: string, tone: string, waves: readonly Wave[], ranges: Ranges, more: Partial<ColumnCurve> = {}): ColumnCurve => ({ name, tone, columns: (low, high, count) => waveColumns(waves, ranges, low, high, count), at: (time) => isWithin(ranges, time) ? sumOfWaves(waves, time) : null, ...more });

// The lowest and highest of all columns; 0 belongs to it, and a flat line gets room.
export function reachOf(all: readonly Columns[]): [number, number] {
  let least = 0, most = 0;
  for (const { low, high } of all) for (let n = 0; n < low.length; n += 1) { if (low[n] < least) least = low[n]; if (high[n] > most) most = high[n]; }
  return [least, most];
}

export function signedTicks(low: number, high: number, kind: Amount, most: number): { value: number; text: string }[] {
  if (kind === "count") return linearTicks(low, high, Math.max(1, most)).map((value) => ({ value, text: plain(value) }));
  const room = (reach: number): number => Math.max(1, Math.floor(most * reach / (Math.max(0, high) + Math.max(0, -low)))), up = amountTicks(high, kind, room(high)), down = -low > (high - low) / most ? amountTicks(-low, kind, room(-low)) : [];
  return [...down.map(({ value, text }) => ({ value: -value, text: `−${text}` })), ...(low < 0 || up.length ? [{ value: 0, text: "0" }] : []), ...up];
}

const PAD_TOP = 14, PAD_BOTTOM = 3, TICK = 22, NAME = 12, TINY = 40; // pixels: above the curves, below them, between upward ticks, of a name; charts below TINY have no room to lose

// Several curves with one upward axis, which `reach` may fix.
export function drawColumns(pen: Pen, box: Box, height: number, curves: readonly ColumnCurve[], kind: Amount, names: TickName[], reach?: [number, number]): void {
  const count = Math.max(1, Math.round(box.width)), drawn = curves.map((curve) => curve.columns(box.low, box.high, count)), [least, most] = reach ?? reachOf(drawn);
  if (!(most > least)) { drawNote(pen, box, "nothing in view", height); return; }
  const above = height < TINY ? 2 : PAD_TOP, tall = height - above - PAD_BOTTOM, up = (value: number): number => box.top + above + (most - value) / (most - least) * tall;
  const taken: number[] = [];
  for (const { value, text } of signedTicks(least, most, kind, Math.max(1, Math.floor(tall / TICK))).sort((a, b) => Math.abs(a.value) - Math.abs(b.value))) { // 0 first: others make room for it
    const y = Math.round(up(value));
    pen.fillStyle = colour("--line");
    pen.fillRect(box.left, y, box.width, 1);
    if (taken.some((other) => Math.abs(other - y) < NAME)) continue;
    taken.push(y);
    names.push({ text, y });
  }
  curves.forEach((curve, number) => {
    const { low, high } = drawn[number];
    pen.strokeStyle = css(rgb(curve.tone));
    pen.lineWidth = curve.width ?? 1.2;
    pen.setLineDash(curve.dash ?? []);
    pen.beginPath();
    let begun = false;
    for (let n = 0; n < count; n += 1) {
      if (Number.isNaN(low[n])) { begun = false; continue; }
      const x = box.left + n + 0.5;
      if (begun) pen.lineTo(x, up(low[n])); else pen.moveTo(x, up(low[n]));
      if (high[n] > low[n]) pen.lineTo(x, up(high[n]));
      begun = true;
    }
    pen.stroke();
    pen.setLineDash([]);
  });
}

// Stretches of time behind curves, such as where a period holds.
export function shadeRanges(pen: Pen, box: Box, height: number, ranges: Ranges, tone: string, strength: number): void {
  const across = acrossOf(box), [r, g, b] = rgb(tone);
  pen.fillStyle = `rgb(${r} ${g} ${b} / ${strength})`;
  for (const [from, to] of ranges) {
    const left = Math.max(box.left, across(from)), right = Math.min(box.left + box.width, across(to));
    if (right > left) pen.fillRect(left, box.top, right - left, height);
  }
}
