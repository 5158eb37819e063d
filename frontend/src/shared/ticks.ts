// Where an axis has ticks and what they are called: time, bytes, counts, linear or logarithmic.
import { ticks as linearTicks } from "d3-array";
import { BINARY, bytes, count, duration, plain, rate, share } from "./units.ts";

export interface Tick { value: number; text: string }
export interface Ticks { ticks: Tick[]; base: string | null; step: number } // `base`: what relative ticks count from

const CLOCK_STEPS = [60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400];
const UNITS: [number, string][] = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]];
const RELATIVE = 2000; // ticks a 2000th of the time or less apart read better from a common start

export function timeStep(span: number, most: number): number {
  if (!(span > 0)) return 1;
  if (span / most > 30) return CLOCK_STEPS.find((step) => span / step <= most) ?? 86400 * Math.ceil(span / most / 86400);
  const rough = span / most, power = 10 ** Math.floor(Math.log10(rough));
  return power * ([1, 2, 5, 10].find((factor) => factor * power >= rough * 0.999) ?? 10);
}

function clockText(value: number, step: number): string {
  const whole = Math.round(Math.abs(value)), two = (n: number): string => String(n).padStart(2, "0"), sign = value < 0 ? "−" : "";
  const hours = Math.floor(whole / 3600), minutes = Math.floor(whole / 60) % 60, rest = whole % 60;
  if (!whole) return "0";
  if (step % 3600 === 0) return `${sign}${hours} h`;
  if (hours) return `${sign}${hours} h ${two(minutes)} min`;
  return rest || step % 60 ? `${sign}${minutes} min ${two(rest)} s` : `${sign}${minutes} min`;
}

const unitOf = (reach: number): [number, string] => UNITS.find(([size]) => reach >= size * 0.999) ?? UNITS[3];

function shortText(value: number, step: number, [unit, name] = unitOf(step)): string {
  return `${(value / unit).toFixed(Math.max(0, Math.ceil(-Math.log10(step / unit) - 1e-6))).replace("-", "−")} ${name}`;
}

// Ticks of seconds between low and high; far from 0 and close together, they count from a base.
export function timeTicks(low: number, high: number, most: number): Ticks {
  const span = high - low, step = timeStep(span, Math.max(2, most)), first = Math.ceil(low / step - 1e-9);
  const relative = step < 1 && Math.abs(low) / step > RELATIVE;
  const places = Math.max(0, Math.min(9, Math.ceil(-Math.log10(step) - 1e-9)));
  const base = first * step, ticks: Tick[] = [];
  const unit = unitOf(Math.max(Math.abs(low), Math.abs(high))); // one for all: 0.5 s, 1.0 s, 1.5 s
  for (let n = 0; base + n * step <= high + step * 1e-6 && n <= 2 * most + 2; n += 1) {
    const value = base + n * step;
    ticks.push({ value, text: relative ? `+${shortText(n * step, step)}` : step >= 60 ? clockText(value, step) : shortText(value, step, unit) });
  }
  return { ticks, base: relative ? `${base.toFixed(places)} s` : null, step };
}

export type Amount = "bytes" | "rate" | "count";
const NAME: Record<Amount, (value: number) => string> = { bytes, rate, count };

// Ticks of an upward axis that starts at 0 (or at `low` where it is logarithmic).
export function amountTicks(high: number, kind: Amount, most: number, log = false, low = 0): Tick[] {
  if (!(high > 0)) return [];
  const binary = kind !== "count";
  if (log) return logTicks(Math.max(low, high / 1e12), high, binary ? 2 : 10, most).map((value) => ({ value, text: NAME[kind](value) }));
  const values = binary ? binaryTicks(high, most) : countTicks(high, most);
  return values.filter((value) => value > 0 && value <= high).map((value) => ({ value, text: tidy(value, kind) }));
}

function tidy(value: number, kind: Amount): string {
  if (kind === "count") return count(value);
  const power = Math.min(6, Math.floor(Math.log2(value) / 10 + 1e-9)), amount = value / 1024 ** Math.max(0, power);
  return `${+amount.toPrecision(4)} ${BINARY[Math.max(0, power)]}${kind === "rate" ? "/s" : ""}`;
}

// Steps of 1, 2, 5, … 500 of a binary unit, or a half or quarter of one, so that ticks read 20 MiB, not 19.1 MiB.
function binaryTicks(high: number, most: number): number[] {
  const unit = 1024 ** Math.max(0, Math.floor(Math.log2(high) / 10 + 1e-9));
  const steps = [0.25, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500].map((factor) => factor * unit).filter((step) => step >= 1 && step <= high);
  const step = steps.find((one) => Math.floor(high / one) <= most);
  if (step === undefined) return [steps.length ? steps[steps.length - 1] : high]; // room for one only
  return Array.from({ length: Math.floor(high / step) + 1 }, (_, n) => n * step);
}

// Whole numbers; where there is room for one only, the largest round one.
function countTicks(high: number, most: number): number[] {
  const whole = linearTicks(0, high, most).filter((value) => Number.isInteger(value) && value > 0), power = 10 ** Math.floor(Math.log10(high));
  return whole.length || high < 1 ? whole : [power * Math.max(...[1, 2, 5].filter((factor) => factor * power <= high))];
}

function logTicks(low: number, high: number, base: number, most: number): number[] {
  const first = Math.ceil(Math.log(low) / Math.log(base) - 1e-9), last = Math.floor(Math.log(high) / Math.log(base) + 1e-9);
  const unit = base === 2 ? 5 : 1, step = unit * Math.max(1, Math.ceil((last - first) / unit / Math.max(1, most))), values: number[] = [];
  for (let power = Math.ceil(first / step) * step; power <= last; power += step) values.push(base ** power);
  return values;
}

// ---- Calendar time: seconds since 1970, named in UTC ----
const MINUTE = 60, HOUR = 3600, DAY = 86400;
const CALENDAR_STEPS = [1, 5, 15, 30, MINUTE, 5 * MINUTE, 15 * MINUTE, 30 * MINUTE, HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 7 * DAY, 14 * DAY];
const MONTH_STEPS = [1, 3, 6, 12, 24, 60, 120];

export function calendarTicks(low: number, high: number, most: number): Ticks {
  const step = CALENDAR_STEPS.find((one) => (high - low) / one <= most + 1), ticks: Tick[] = [];
  if (step === undefined) return monthTicks(low, high, most);
  for (let value = Math.ceil(low / step) * step; value <= high && ticks.length <= 2 * most; value += step) ticks.push({ value, text: step < DAY && value % DAY ? moment(value).slice(11, step < MINUTE ? 19 : 16) : moment(value).slice(0, 10) });
  return { ticks, base: step < DAY && !ticks.some(({ value }) => value % DAY === 0) ? moment(low).slice(0, 10) : null, step };
}

function monthTicks(low: number, high: number, most: number): Ticks {
  const months = (high - low) / (30.44 * DAY), step = MONTH_STEPS.find((one) => months / one <= most) ?? 120, first = new Date(low * 1000), ticks: Tick[] = [];
  for (let number = Math.ceil((first.getUTCFullYear() * 12 + first.getUTCMonth()) / step) * step; ticks.length <= 2 * most; number += step) {
    const value = Date.UTC(Math.floor(number / 12), number % 12) / 1000;
    if (value > high) break;
    if (value >= low) ticks.push({ value, text: moment(value).slice(0, 7) });
  }
  return { ticks, base: null, step: step * 30.44 * DAY };
}

// "2024-03-01 12:30:00", in UTC.
export const moment = (seconds: number): string => new Date(seconds * 1000).toISOString().slice(0, 19).replace("T", " ");

// ---- Any axis ----
// 1, 2, 5 of each power of ten while there is room, else powers alone.
export function logSteps(low: number, high: number, most: number): number[] {
  const first = Math.floor(Math.log10(low)), last = Math.ceil(Math.log10(high)), inside = (value: number): boolean => value >= low * 0.999 && value <= high * 1.001;
  for (const factors of [[1, 2, 5], [1, 3], [1]]) {
    const values: number[] = [];
    for (let power = first; power <= last; power += 1) for (const factor of factors) if (inside(factor * 10 ** power)) values.push(+(factor * 10 ** power).toPrecision(3));
    if (values.length <= most) return values;
  }
  const step = Math.ceil((last - first + 1) / Math.max(1, most)), values: number[] = [];
  for (let power = first; power <= last; power += step) if (inside(10 ** power)) values.push(10 ** power);
  return values;
}

export type ScaleKind = Amount | "seconds" | "number" | "share" | "calendar" | "names";

const LOG_CLOCK = [60, 120, 300, 600, 1800, 3600, 7200, 18000, 36000, 86400, 172800, 432000, 864000]; // what people call round above a minute
function logSeconds(low: number, high: number, most: number): number[] {
  const every = [...logSteps(Math.min(low, 59), 59, 99), ...LOG_CLOCK].filter((value) => value >= low && value <= high), short = high <= 60 ? logSteps(low, high, most) : null;
  return short ?? every.filter((_, n) => n % Math.ceil(every.length / Math.max(1, most)) === 0);
}

// Ticks are round numbers, so that they need no zeros behind the point: 20 s, 2 min, 10 %.
function roundText(value: number, kind: ScaleKind, name: (value: number) => string): string {
  if (kind === "share") return `${+(100 * value).toPrecision(3)}%`.replace("-", "−");
  if (kind !== "seconds") return name(value);
  return value >= 3600 ? `${+(value / 3600).toPrecision(3)} h` : value >= 60 ? `${+(value / 60).toPrecision(3)} min` : name(value).replace(/\.0+ /, " ");
}

export function scaleTicks(scale: { low: number; high: number; kind: ScaleKind; log?: boolean; names?: string[] }, most: number): Tick[] {
  const { low, high, kind, log } = scale;
  if (kind === "names") return (scale.names ?? []).map((text, n) => ({ value: n + 0.5, text })); // each in the middle of its unit
  if (kind === "calendar") return calendarTicks(low, high, most).ticks;
  const name = kind === "seconds" ? duration : kind === "share" ? share : kind === "number" ? plain : NAME[kind];
  const binary = kind === "bytes" || kind === "rate";
  if (log && binary) return logTicks(low, high, 2, most).map((value) => ({ value, text: value >= 1 ? tidy(value, kind) : name(value) }));
  if (log) return (kind === "seconds" ? logSeconds(low, high, most) : logSteps(low, high, most)).map((value) => ({ value, text: roundText(value, kind, name) }));
  if (kind === "seconds") return timeTicks(low, high, most).ticks;
  if (kind === "bytes" || kind === "rate") return [...(low <= 0 ? [{ value: 0, text: "0" }] : []), ...amountTicks(high, kind, most).filter(({ value }) => value >= low)];
  return linearTicks(low, high, most).filter((value) => kind !== "count" || Number.isInteger(value)).map((value) => ({ value, text: roundText(value, kind, name) }));
}
