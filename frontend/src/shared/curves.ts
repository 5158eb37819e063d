// What tracks are drawn with: step curves, areas of colour, bars, upward ticks and notes.
import { colour, css, FONT, inkOn, rampAt, rgb, type Rgb } from "./colours.ts";
import type { Pen } from "./pen.ts";
import { amountTicks, type Amount, type Tick } from "./ticks.ts";

export interface Box { left: number; width: number; top: number; low: number; high: number }
export interface TickName { text: string; y: number }
export interface Series { name: string; tone: string; values: ArrayLike<number | null>; dashed?: boolean; filled?: boolean }
// Values hold from one edge to the next: `edges` has one more than values, or the steps are equal from `start` on.
export interface Steps { start: number; step: number; edges?: ArrayLike<number>; series: Series[]; most?: number }

const PAD = 14; // pixels above the highest value
const LOG_RANGE = 2 ** 20; // of a logarithmic axis that has no lower end

export const acrossOf = (box: Box) => (time: number): number => box.left + (time - box.low) / (box.high - box.low) * box.width;

export function largest(values: ArrayLike<number | null>): number {
  let most = 0;
  for (let i = 0; i < values.length; i += 1) { const value = values[i]; if (value !== null && value > most) most = value; }
  return most;
}

// One or several step curves with one upward axis.
export function drawSteps(pen: Pen, box: Box, height: number, steps: Steps, kind: Amount, names: TickName[], log = false): void {
  const most = steps.most ?? Math.max(0, ...steps.series.map((one) => largest(one.values))), bottom = box.top + height - 2, tall = height - PAD, floor = most / LOG_RANGE;
  if (!(most > 0)) { drawNote(pen, box, "nothing in view", height); return; }
  const up = (value: number): number => value <= 0 ? bottom : log ? bottom - tall * Math.max(0, Math.log(value / floor) / Math.log(LOG_RANGE)) : bottom - tall * value / most;
  drawUpward(pen, box, amountTicks(most, kind, Math.max(1, Math.floor(tall / 20)), log, floor), up, names);
  const across = acrossOf(box), edge = (n: number): number => across(steps.edges ? steps.edges[n] : steps.start + n * steps.step);
  for (const { values, tone, dashed, filled } of steps.series) {
    const [r, g, b] = rgb(tone);
    pen.fillStyle = `rgb(${r} ${g} ${b} / .25)`;
    pen.strokeStyle = css([r, g, b]);
    pen.lineWidth = 1.2;
    pen.setLineDash(dashed ? [5, 3] : []);
    pen.beginPath();
    let down = true; // the pen is up after a gap
    for (let n = 0; n < values.length; n += 1) {
      const from = edge(n), to = edge(n + 1), value = values[n];
      if (to < box.left || from > box.left + box.width) continue;
      if (value === null) { down = true; continue; }
      const y = up(value);
      if (value > 0 && filled !== false && !dashed) pen.fillRect(from, y, to - from, bottom - y);
      if (down) pen.moveTo(from, y); else pen.lineTo(from, y);
      pen.lineTo(to, y);
      down = false;
    }
    pen.stroke();
    pen.setLineDash([]);
  }
}

export function stepAt(steps: Steps, time: number): number {
  const { edges } = steps;
  if (!edges) return Math.floor((time - steps.start) / steps.step);
  let from = 0, to = edges.length;
  while (from < to) { const middle = (from + to) >> 1; if (edges[middle] <= time) from = middle + 1; else to = middle; }
  return from - 1;
}

export function drawUpward(pen: Pen, box: Box, ticks: Tick[], up: (value: number) => number, names: TickName[]): void {
  for (const { value, text } of ticks) {
    const y = Math.round(up(value));
    pen.fillStyle = colour("--line");
    pen.fillRect(box.left, y, box.width, 1);
    names.push({ text, y });
  }
}

const HALF = 6, APART = 11; // pixels: half of a name's height, and between the middles of two
export interface NamedPlace { top: number; bottom: number; until: number; below: number } // a row, and how far its own name reaches to the right and down

// Names of ticks stay within their row, clear of its name and of one another; the one that a row must have stands below its name.
export function clearNames(names: TickName[], placeOf: (y: number) => NamedPlace, wide: (text: string) => number, left: number): TickName[] {
  const rows = new Map<number, TickName[]>(), kept: TickName[] = [];
  for (const name of names) { const { top } = placeOf(name.y); rows.set(top, [...(rows.get(top) ?? []), name]); }
  for (const list of rows.values()) {
    const { top, bottom, until, below } = placeOf(list[0].y), here: TickName[] = [];
    const covers = ({ text, y }: TickName): boolean => y - HALF < below && left - 5 - wide(text) < until;
    for (const name of list.map(({ text, y }) => ({ text, y: Math.max(top + HALF, Math.min(bottom - HALF, y)) }))) if (!covers(name) && here.every((other) => Math.abs(other.y - name.y) >= APART)) here.push(name);
    if (!here.length && below + 2 * HALF <= bottom) here.push({ text: list[0].text, y: Math.max(list[0].y, below + HALF) });
    kept.push(...here);
  }
  return kept;
}

// Names of upward ticks stand left of the charts, where no data is.
export function paintTickNames(pen: Pen, names: TickName[], left: number): void {
  pen.font = FONT;
  pen.textAlign = "right";
  pen.fillStyle = colour("--dim");
  for (const { text, y } of names) pen.fillText(text, left - 5, y + 4);
}

export function drawNote(pen: Pen, box: Box, text: string, height: number): void {
  pen.font = FONT;
  pen.textAlign = "left";
  pen.fillStyle = colour("--dim");
  pen.fillText(text, box.left + 6, box.top + height / 2 + 4);
}

// A bar from one time to another, with its name where there is room.
export function drawSpan(pen: Pen, box: Box, from: number, to: number, top: number, height: number, tone: Rgb, text = ""): void {
  const across = acrossOf(box), a = Math.max(box.left, across(from)), b = Math.min(box.left + box.width, across(to));
  if (b < box.left || a > box.left + box.width) return;
  pen.fillStyle = css(tone);
  pen.fillRect(a, top, Math.max(1.5, b - a - 1), height);
  if (!text || b - a < 8 + 6.2 * text.length) return;
  pen.font = FONT;
  pen.textAlign = "left";
  pen.fillStyle = inkOn(tone);
  pen.fillText(text, a + 4, top + height - 2);
}

// Amounts as one colour from little to much; on a square root, so that small values stay visible but quiet.
export function heatImage(sums: ArrayLike<number>, width: number, rows: number, most: number): ImageData {
  const image = new ImageData(width, rows), out = new Uint32Array(image.data.buffer), table = Array.from({ length: 256 }, (_, n) => rampAt(n / 255));
  for (let p = 0; p < out.length; p += 1) {
    if (!(sums[p] > 0)) continue;
    const tone = table[Math.min(255, Math.round(255 * Math.sqrt(sums[p] / most)))];
    out[p] = (255 << 24 | tone[2] << 16 | tone[1] << 8 | tone[0]) >>> 0;
  }
  return image;
}

let shared: HTMLCanvasElement | null = null;

// An image that pens can draw parts of: on a sheet to keep, or on one where the next image takes its place.
export function imageSheet(image: ImageData, sheet = shared ??= document.createElement("canvas")): HTMLCanvasElement {
  sheet.width = image.width; sheet.height = image.height;
  sheet.getContext("2d")!.putImageData(image, 0, 0);
  return sheet;
}

export function drawImage(pen: Pen, image: ImageData, x: number, y: number, w: number, h: number): void {
  pen.imageSmoothingEnabled = false;
  pen.drawImage(imageSheet(image), 0, 0, image.width, image.height, x, y, w, h);
}

const HATCH = 7; // pixels between hatch lines

// Time that one has and another has not.
export function drawHatch(pen: Pen, box: Box, low: number, high: number, height: number, tone: string): void {
  const across = acrossOf(box), from = Math.max(box.left, across(low)), to = Math.min(box.left + box.width, across(high)), { top } = box;
  if (to - from < 1.5) return;
  pen.clipTo(from, top, to - from, height);
  pen.strokeStyle = colour(tone);
  pen.lineWidth = 1.4;
  pen.beginPath();
  for (let x = from - height; x < to; x += HATCH) { pen.moveTo(x, top + height); pen.lineTo(x + height, top); }
  pen.stroke();
  pen.unclip();
  pen.strokeRect(from + 0.5, top + 0.5, to - from - 1, height - 1);
}
