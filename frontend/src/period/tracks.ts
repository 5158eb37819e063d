// The tracks of a period: signal, sums of waves, strength of each period, levels, and where the dominant wave matches.
import { rampAt, css, colour, rgb, type Rgb } from "../shared/colours.ts";
import { drawColumns, sampledCurve, shadeRanges, waveCurve, type ColumnCurve } from "../shared/columns.ts";
import { acrossOf, type Box, type TickName } from "../shared/curves.ts";
import type { Pen } from "../shared/pen.ts";
import { scaleTicks, type Amount } from "../shared/ticks.ts";
import { track, type Tip, type Track } from "../shared/tracks.ts";
import { bytes, clock, duration, plain, rate } from "../shared/units.ts";
import { everywhere, nameOf, type Asynchronous, type Picture, type View } from "./data.ts";

export const SUM_TONES = ["--f3", "--f4", "--f5", "--f7", "--f6"], DASHES = [[], [7, 3], [2, 2], [9, 3, 2, 3], [4, 4]];
const SIGNAL = "--f1", FIT = "--f2", HOLDS = "--c3", NEXT = "--f5";
const TALL = 128, HEAT = 96, LOW = 64; // pixels

export interface Sums { name: string; key: string; tone: string; dash: number[]; explained: number; curve: ColumnCurve }

// The sums of the strongest waves, and the fit; each with the share of the variance that it explains.
export function sumsOf(view: View): Sums[] {
  const { counts, waves, explained } = view.waves, where = everywhere(view.signal);
  const sums = counts.map((n, place): Sums => {
    const name = `n = ${n}`, tone = SUM_TONES[place % SUM_TONES.length], dash = DASHES[place % DASHES.length];
    return { name, key: String(n), tone, dash, explained: explained[place], curve: waveCurve(name, tone, waves.slice(0, n + 1), where, { dash, width: 1.4 }) };
  });
  const name = `fit, n = ${view.fit.waves.length - 1}`;
  return [...sums, { name, key: "fit", tone: FIT, dash: [], explained: view.fit.explained, curve: waveCurve(name, FIT, view.fit.waves, where, { width: 1.2 }) }];
}

// Facts about curves at a time; `step` says how exact a time is.
export function tipOf(title: string, curves: readonly ColumnCurve[], kind: Amount, time: number, step: number): Tip {
  return { title: `${title}, ${clock(time, step)}`, facts: curves.flatMap((curve): [string, string][] => {
    const value = curve.at(time);
    return value === null ? [] : [[curve.name, kind === "count" ? plain(value) : kind === "rate" ? rate(value) : bytes(value)]];
  }) };
}

interface Shown { view: View; kind: Amount; waves: readonly string[]; asynchronous: readonly Asynchronous[] }

function curvesTrack(key: string, label: string, height: number, curves: ColumnCurve[], kind: Amount, more: { behind?: (pen: Pen, box: Box, height: number) => void; above?: (pen: Pen, box: Box, height: number) => void; reach?: [number, number]; open?: boolean; title?: string } = {}): Track {
  return track(key, label, height, (pen, box, tall, names) => {
    more.behind?.(pen, box, tall);
    drawColumns(pen, box, tall, curves, kind, names, more.reach);
    more.above?.(pen, box, tall);
  }, { expandable: true, open: more.open ?? true, title: more.title, tip: (time) => tipOf(label, curves, kind, time, curves.length ? 0.001 : 1) });
}

export function tracksOf({ view, kind, waves, asynchronous }: Shown): Track[] {
  const { signal, period, hybrid } = view, ranges = period?.valid_ranges ?? [], label = kind === "rate" ? `${view.direction === "both" ? "" : `${view.direction} `}bandwidth` : "signal";
  const sampled = sampledCurve("sampled signal", SIGNAL, signal), mean = { frequency: 0, amplitude: signal.mean, phase: 0 };
  const ahead = view.ahead.map(([from, to]): [number, number] => [from, to]);
  const wave = period ? [waveCurve(`wave of ${duration(period.seconds)}`, FIT, [mean, period], ranges, { width: 1.6 })] : [];
  const made: Track[] = [curvesTrack("signal", label, TALL, [sampled, ...wave], kind, {
    behind: (pen, box, tall) => { shadeRanges(pen, box, tall, ranges, HOLDS, 0.12); shadeRanges(pen, box, tall, ahead, NEXT, 0.3); },
    above: (pen, box, tall) => drawPhases(pen, box, tall, view), title: `Sampled ${label}; shaded where the period holds` })];
  for (const one of asynchronous) {
    const curves = [sampledCurve("required (B)", FIT, one.b, { width: 1.8 }), sampledCurve("measured (T)", SIGNAL, one.t)];
    made.push(curvesTrack(`async-${one.direction}`, `async ${nameOf(one.direction)}`, TALL - 24, curves, "rate", { title: "Required (B): bytes over the time until the program waited. Measured (T): bytes over the time they took." }));
  }
  const sums = sumsOf(view).filter((one) => waves.includes(one.key)), drawn = sums.map((one) => one.curve).reverse(); // the smoothest on top
  made.push(curvesTrack("waves", "sums of waves", TALL, [sampledCurve("sampled signal", "--rest", signal), ...drawn], kind, { title: "Sums of the strongest waves of the spectrum, and waves fitted by least squares" }));
  if (sums.length) made.push(curvesTrack("sums", "waves alone", LOW + 16, drawn, kind, { title: "The same sums without the signal, on their own scale" }));
  if (view.scalogram) made.push(pictureTrack("scalogram", "scalogram", view.scalogram, period?.seconds ?? null, "Strength of each period over time, by wavelets: sharp in time for short periods"));
  if (view.spectrogram) made.push(pictureTrack("spectrogram", "spectrogram", view.spectrogram, period?.seconds ?? null, "Strength of each period over time, in windows of a few periods", false));
  if (hybrid) {
    const smooth = sampledCurve(`approximation, level ${hybrid.level}`, SIGNAL, hybrid.approximation), dominant = waveCurve(`wave of ${duration(1 / hybrid.frequency)}`, FIT, [mean, hybrid], hybrid.ranges, { width: 1.6 });
    const behind = (pen: Pen, box: Box, tall: number): void => shadeRanges(pen, box, tall, hybrid.ranges, HOLDS, 0.12);
    made.push(curvesTrack("approximation", "approximation", 84, [smooth, dominant], kind, { behind, title: "The smoothed signal and its dominant wave (hybrid method); shaded where they match" }));
    made.push(curvesTrack("correlation", "correlation", LOW, [sampledCurve("correlation", "--f7", hybrid.correlation)], "count", { behind, reach: [-1, 1], title: "Correlation of the wave and the approximation over one period" }));
  }
  for (const one of view.levels) made.push(levelTrack(one, kind));
  return made;
}

function levelTrack(level: View["levels"][number], kind: Amount): Track {
  const shown = level.details ?? level.approximation!, details = level.details !== null;
  const name = details ? `level ${level.level}` : `rest of level ${level.level}`, reach = details ? `periods of ${duration(level.shortest)} to ${duration(level.longest)}` : "";
  const above = (pen: Pen, box: Box): void => { pen.fillStyle = colour("--ink"); pen.textAlign = "left"; pen.fillText(reach, box.left + 4, box.top + 11); };
  const most = Math.max(1e-12, ...Array.from(shown.values, (value) => Math.abs(value ?? 0)));
  return curvesTrack(details ? `level-${level.level}` : "rest", name, LOW, [sampledCurve(details ? "details" : "approximation", details ? "--f4" : SIGNAL, shown)], kind, { reach: details ? [-most, most] : undefined, open: false, above, title: details ? "What changes within this range of periods (discrete wavelet transform)" : "What is left: the smooth approximation" });
}

// Phases of the period stand as bars at the bottom, predicted ones with their name above.
function drawPhases(pen: Pen, box: Box, tall: number, view: View): void {
  const across = acrossOf(box), bottom = box.top + tall - 6;
  const bar = (from: number, to: number, tone: string): void => { const x = across(from), end = across(to); if (end < box.left || x > box.left + box.width) return; pen.fillStyle = css(rgb(tone)); pen.fillRect(Math.max(box.left, x), bottom, Math.max(2, Math.min(end, box.left + box.width) - Math.max(box.left, x) - 1), 5); };
  for (const [from, to] of view.phases) bar(from, to, HOLDS);
  view.ahead.forEach(([from, to], n) => {
    bar(from, to, NEXT);
    const x = across(from);
    if (n || x < box.left || x > box.left + box.width - 40) return;
    pen.fillStyle = colour("--ink");
    pen.textAlign = "left";
    pen.fillText(box.left + box.width - x > 70 ? "predicted" : "next", x + 3, box.top + 11);
  });
}

// A picture in columns of time and rows of periods, on a logarithmic axis of periods.
export class PeriodPicture {
  readonly levels: Uint8Array;
  private painted: HTMLCanvasElement | null = null;
  private dark: Rgb | null = null;

  constructor(readonly data: Picture) { this.levels = Uint8Array.from(atob(data.power), (letter) => letter.charCodeAt(0)); }

  get rows(): number { return this.data.periods.length; }

  // Where a period is between the bottom (0) and the top (1).
  placeOf(period: number): number {
    const { periods } = this.data, first = periods[0], last = periods[periods.length - 1];
    if (!(last > first)) return 0.5;
    return (Math.log(period / first) / Math.log(last / first) * (this.rows - 1) + 0.5) / this.rows;
  }

  at(time: number, place: number): { period: number; strength: number } | null {
    const { start, end, columns, periods } = this.data, column = Math.floor((time - start) / (end - start) * columns), row = Math.floor(place * this.rows);
    if (column < 0 || column >= columns || row < 0 || row >= this.rows) return null;
    return { period: periods[row], strength: (this.levels[row * columns + column] / 255) ** 2 };
  }

  image(): HTMLCanvasElement {
    const ground = rampAt(0);
    if (this.painted && this.dark?.join() === ground.join()) return this.painted;
    const { columns } = this.data, made = document.createElement("canvas"), table = Array.from({ length: 256 }, (_, n) => rampAt(n / 255));
    made.width = columns;
    made.height = this.rows;
    const context = made.getContext("2d")!, image = context.createImageData(columns, this.rows), out = new Uint32Array(image.data.buffer);
    for (let row = 0; row < this.rows; row += 1) for (let column = 0; column < columns; column += 1) {
      const [r, g, b] = table[this.levels[row * columns + column]];
      out[(this.rows - 1 - row) * columns + column] = (255 << 24 | b << 16 | g << 8 | r) >>> 0;
    }
    context.putImageData(image, 0, 0);
    this.painted = made;
    this.dark = ground;
    return made;
  }
}

function pictureTrack(key: string, label: string, data: Picture, answer: number | null, title: string, open = true): Track {
  const picture = new PeriodPicture(data);
  return track(key, label, HEAT, (pen, box, tall, names) => drawPicture(pen, box, tall, picture, answer, names), {
    expandable: true, open, title,
    tip: (time, y, tall) => {
      const at = picture.at(time, 1 - (y - 4) / (tall - 8));
      return at && { title: `${label}, ${clock(time, 0.01)}`, facts: [["period", duration(at.period)], ["power", `${plain(+(100 * at.strength).toPrecision(2))}% of the highest`]] };
    },
  });
}

function drawPicture(pen: Pen, box: Box, height: number, picture: PeriodPicture, answer: number | null, names: TickName[]): void {
  const { start, end, columns, periods } = picture.data, top = box.top + 4, tall = height - 8, across = acrossOf(box), perSecond = columns / (end - start);
  const from = Math.max(start, box.low), to = Math.min(end, box.high), level = (period: number): number => top + (1 - picture.placeOf(period)) * tall;
  if (!(to > from)) return;
  pen.imageSmoothingEnabled = true;
  pen.drawImage(picture.image(), (from - start) * perSecond, 0, Math.max(0.01, (to - from) * perSecond), picture.rows, across(from), top, across(to) - across(from), tall);
  let free = -Infinity;
  for (const { value, text } of scaleTicks({ low: periods[0], high: periods[periods.length - 1], kind: "seconds", log: true }, Math.max(2, Math.floor(tall / 18))).reverse()) {
    const y = level(value);
    if (y < free || y < top + 2) continue;
    names.push({ text, y });
    free = y + 13;
  }
  if (answer === null || answer < periods[0] || answer > periods[periods.length - 1]) return;
  pen.strokeStyle = css(rgb(FIT));
  pen.lineWidth = 1.5;
  pen.setLineDash([6, 4]);
  pen.beginPath(); pen.moveTo(across(from), level(answer)); pen.lineTo(across(to), level(answer)); pen.stroke();
  pen.setLineDash([]);
}
