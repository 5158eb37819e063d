// Parts of plots: distributions, dots, stems, bands, and marks whose names do not cover each other.
import { bisectRight } from "d3-array";
import { colour, css, FONT, rgb } from "./colours.ts";
import type { Pen } from "./pen.ts";
import type { Frame } from "./plot.ts";

export interface Distribution { x: number[]; y: number[] } // ascending values, and the share of all up to each
export function distributionOf(values: Iterable<number>, points = 600): Distribution {
  const sorted = [...values].filter((value) => Number.isFinite(value)).sort((a, b) => a - b), every = Math.max(1, Math.ceil(sorted.length / points)), x: number[] = [], y: number[] = [];
  for (let n = every - 1; n < sorted.length; n += every) { x.push(sorted[n]); y.push((n + 1) / sorted.length); }
  if (sorted.length && x[x.length - 1] !== sorted[sorted.length - 1]) { x.push(sorted[sorted.length - 1]); y.push(1); }
  return { x, y };
}

export function shareUpTo({ x, y }: Distribution, value: number): number { const place = bisectRight(x, value); return place ? y[place - 1] : 0; }

export function drawDistribution(pen: Pen, frame: Frame, { x, y }: Distribution, tone: string, dash: number[] = []): void {
  pen.strokeStyle = css(rgb(tone));
  pen.lineWidth = 1.6;
  pen.setLineDash(dash);
  pen.beginPath();
  let level = frame.y(0);
  pen.moveTo(frame.left, level);
  x.forEach((value, n) => { const at = frame.x(value); pen.lineTo(at, level); level = frame.y(y[n]); pen.lineTo(at, level); });
  if (x.length) pen.lineTo(frame.left + frame.width, level);
  pen.stroke();
  pen.setLineDash([]);
}

export function drawDots(pen: Pen, frame: Frame, x: ArrayLike<number>, y: ArrayLike<number>, tone: string, { low = -Infinity, high = Infinity, strength = 0.6 } = {}): void {
  const [r, g, b] = rgb(tone);
  pen.fillStyle = `rgb(${r} ${g} ${b} / ${strength})`;
  for (let n = 0; n < x.length; n += 1) pen.fillRect(frame.x(x[n]) - 1.5, frame.y(Math.min(high, Math.max(low, y[n]))) - 1.5, 3, 3);
}

export function drawStems(pen: Pen, frame: Frame, x: ArrayLike<number>, y: ArrayLike<number>, tone: string): void {
  const bottom = frame.y(0);
  pen.fillStyle = css(rgb(tone));
  let column = -1, top = bottom;
  for (let n = 0; n <= x.length; n += 1) { // one stem for each column of pixels, as high as the highest in it
    const at = n < x.length ? Math.round(frame.x(x[n])) : Infinity;
    if (at !== column) { if (column >= 0 && top < bottom) pen.fillRect(column, top, 1.4, bottom - top); column = at; top = bottom; }
    if (n < x.length) top = Math.min(top, frame.y(y[n]));
  }
}

export function drawBand(pen: Pen, frame: Frame, along: "x" | "y", low: number, high: number): void {
  const [r, g, b] = rgb("--rest");
  pen.fillStyle = `rgb(${r} ${g} ${b} / .18)`;
  const from = along === "x" ? Math.max(frame.left, frame.x(low)) : Math.max(frame.top, frame.y(high)), to = along === "x" ? Math.min(frame.left + frame.width, frame.x(high)) : Math.min(frame.top + frame.height, frame.y(low));
  if (to > from) { if (along === "x") pen.fillRect(from, frame.top, to - from, frame.height); else pen.fillRect(frame.left, from, frame.width, to - from); }
}

const ROW = 13, ROWS = 4; // pixels of a row of names, and how many there are
// In which row the name of each mark stands without covering another; null where there is no room.
export function markRows(spans: readonly { from: number; to: number }[]): (number | null)[] {
  const ends: number[] = new Array<number>(ROWS).fill(-Infinity), order = spans.map((_, n) => n).sort((a, b) => spans[a].from - spans[b].from), rows: (number | null)[] = spans.map(() => null);
  for (const n of order) {
    const row = ends.findIndex((end) => spans[n].from > end + 4);
    if (row < 0) continue;
    ends[row] = spans[n].to;
    rows[n] = row;
  }
  return rows;
}

export interface Mark { x: number; text: string; tone: string; dashed?: boolean }
export function drawMarks(pen: Pen, frame: Frame, marks: readonly Mark[]): void {
  const right = frame.left + frame.width;
  pen.font = FONT;
  const placed = marks.map((mark) => {
    const at = frame.x(mark.x), wide = pen.measureText(mark.text).width + 6, turned = at + wide > right;
    return { ...mark, at, turned, from: turned ? at - wide : at, to: turned ? at : at + wide };
  }).filter(({ at }) => at >= frame.left - 0.5 && at <= right + 0.5), rows = markRows(placed);
  placed.forEach(({ at, text, tone, dashed, turned }, n) => {
    const row = rows[n];
    pen.strokeStyle = css(rgb(tone));
    pen.lineWidth = 1.3;
    pen.setLineDash(dashed ? [4, 3] : []);
    pen.beginPath(); pen.moveTo(at, frame.top); pen.lineTo(at, frame.top + frame.height); pen.stroke();
    pen.setLineDash([]);
    if (row === null) return;
    pen.fillStyle = colour("--ink");
    pen.textAlign = turned ? "right" : "left";
    pen.fillText(text, at + (turned ? -4 : 4), frame.top + 10 + ROW * row);
  });
}
