// The time axis that all charts of a page share: what is seen, how it moves, how it is drawn.
import { calendarTicks, timeTicks } from "./ticks.ts";
import { colour, FONT } from "./colours.ts";
import type { Pen } from "./pen.ts";

export const SHORTEST = 2e-9; // seconds in view: two nanoseconds, the finest that traces record
const SHORTEST_DATED = 1; // seconds since 1970 have no nanoseconds as a number

export class TimeAxis {
  low: number;
  high: number;
  private readonly listeners = new Set<() => void>();

  // `calendar`: times are seconds since 1970, named by their date.
  constructor(public first: number, public last: number, readonly calendar = false) {
    this.low = first;
    this.high = last;
  }

  get span(): number { return this.high - this.low; }
  get whole(): boolean { return this.low <= this.first && this.high >= this.last; }
  onChange(listener: () => void): void { this.listeners.add(listener); }

  show(low: number, high: number): void {
    if (!(Number.isFinite(low) && Number.isFinite(high))) return;
    const whole = this.last - this.first, span = Math.min(whole, Math.max(this.calendar ? SHORTEST_DATED : SHORTEST, high - low));
    const from = Math.max(this.first, Math.min(this.last - span, high - low < span ? (low + high - span) / 2 : low));
    const to = span === high - low && from === low ? high : from + span;
    if (from === this.low && to === this.high) return;
    this.low = from;
    this.high = Math.min(this.last, to);
    this.listeners.forEach((listener) => listener());
  }

  // Another whole, for time that grows or is arranged anew; all of it is shown, or what was seen of it.
  setWhole(first: number, last: number, keepView = false): void {
    const { low, high, whole } = this;
    [this.first, this.last] = [first, last];
    if (keepView && !whole) this.show(low, high);
    else { [this.low, this.high] = [first, last]; this.listeners.forEach((listener) => listener()); }
  }

  reset(): void { this.show(this.first, this.last); }
  zoom(factor: number, around: number): void { this.show(around - (around - this.low) * factor, around + (this.high - around) * factor); }
  pan(share: number): void { const by = share * this.span; this.show(this.low + by, this.high + by); }
  across(time: number, width: number): number { return (time - this.low) / this.span * width; }
  timeAt(x: number, width: number): number { return this.low + x / width * this.span; }
}

// Draws ticks and their names along the top of a chart; vertical lines reach down by `lines`.
export function drawTimeAxis(pen: Pen, axis: { low: number; high: number; calendar?: boolean }, left: number, width: number, top: number, lines: number): void {
  const { ticks, base } = (axis.calendar ? calendarTicks : timeTicks)(axis.low, axis.high, Math.max(4, Math.floor(width / 110)));
  pen.font = FONT;
  pen.textAlign = "center";
  let free = left - 4;
  if (base) {
    pen.textAlign = "left";
    pen.fillStyle = colour("--ink");
    pen.fillText(base, left + 2, top + 13);
    free = left + 8 + pen.measureText(base).width;
    pen.textAlign = "center";
  }
  for (const { value, text } of ticks) {
    const x = left + (value - axis.low) / (axis.high - axis.low) * width, half = pen.measureText(text).width / 2;
    const middle = Math.max(left + half, Math.min(left + width - half, x)); // names at the edges stay inside
    pen.fillStyle = colour("--line");
    pen.fillRect(Math.round(x), top + 18, 1, lines);
    if (middle - half < free) continue;
    pen.fillStyle = colour("--dim");
    pen.fillText(text, middle, top + 13);
    free = middle + half + 12;
  }
}
