// The one formatter of numbers on pages. Every text keeps the digits that a reader can use.
import { format } from "d3-format";

export const BINARY = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
const grouped = format(",.0f");

function digits(value: number): string {
  const size = Math.abs(value);
  return value.toFixed(size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
}

export type Maybe = number | null | undefined;
const missing = (value: Maybe): value is null | undefined => value === null || value === undefined || Number.isNaN(value);

export function bytes(value: Maybe): string {
  if (missing(value)) return "–";
  let unit = 0, amount = value;
  while (Math.abs(amount) >= 1023.5 && unit < BINARY.length - 1) { amount /= 1024; unit += 1; }
  if (Math.abs(amount) < 0.005) return "0 B"; // what differences of large numbers leave
  if (amount < 0) return `−${bytes(-value)}`;
  if (unit) return `${digits(amount)} ${BINARY[unit]}`;
  return `${Number.isInteger(amount) || Math.abs(amount) >= 10 ? amount.toFixed(0) : String(+amount.toPrecision(2))} B`;
}

export const rate = (value: Maybe): string => missing(value) ? "–" : `${bytes(value)}/s`;
export const count = (value: Maybe): string => missing(value) ? "–" : grouped(Math.round(value));
// Nearly nothing and nearly all keep a digit more: 99.6 % is not all.
export function share(value: Maybe): string {
  if (missing(value)) return "–";
  const size = Math.abs(value), fine = (size > 0 && size < 0.1) || (size > 0.99 && size < 1);
  return `${value < 0 ? "−" : ""}${fine ? Math.min(99.9, 100 * size).toFixed(1) : (100 * size).toFixed(0)}%`;
}
export const plural = (number: number, noun: string): string => `${count(number)} ${noun}${number === 1 ? "" : "s"}`;

// A length of time: 12 ns, 3.40 ms, 43.2 s, 2 min 20 s, 1 h 05 min.
export function duration(value: Maybe): string {
  if (missing(value)) return "–";
  const size = Math.abs(value);
  if (size === 0) return "0 s";
  if (value < 0) return `−${duration(size)}`;
  if (size < 0.9995e-6) return `${digits(value * 1e9)} ns`;
  if (size < 0.9995e-3) return `${digits(value * 1e6)} µs`;
  if (size < 0.9995) return `${digits(value * 1e3)} ms`;
  if (size < 99.95) return `${digits(value)} s`;
  const whole = Math.round(size), two = (n: number): string => String(n).padStart(2, "0");
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${two(whole % 60)} s`;
  const minutes = Math.round(size / 60);
  return `${Math.floor(minutes / 60)} h ${two(minutes % 60)} min`;
}

// A length and its standard deviation with the digits that the deviation leaves: 10.18 s, standard deviation 0.79 s.
export function withSpread(value: number, spread: number): string {
  if (!(spread > 1e-6 * value)) return duration(value);
  if (value >= 99.95 || value < 1) return `${duration(value)}, standard deviation ${duration(spread)}`;
  const places = Math.max(0, Math.min(3 - Math.floor(Math.log10(+value.toPrecision(4))), 1 - Math.floor(Math.log10(spread))));
  return `${value.toFixed(places)} s, standard deviation ${spread < 10 ** -places ? duration(spread) : `${spread.toFixed(places)} s`}`;
}

// Whole seconds without zeros behind the point, for what counts down: 4 s, 2 min 05 s.
export const wholeSeconds = (value: number): string => duration(Math.round(value)).replace(/\.0+(?= )/, "");

// A point in time, in seconds since the start, with as many digits as `step` needs.
export function clock(seconds: number, step = 0.001): string {
  const places = Math.max(0, Math.min(9, Math.ceil(-Math.log10(Math.max(step, 1e-9)) - 1e-9)));
  return `${seconds.toFixed(places)} s`;
}

// From one point in time to another, with the digits that tell the two apart: 0 to 39.5 ms, 4.64 s to 6.97 s, 0 to 10 h 25 min.
export function span(from: number, to: number): string {
  const step = Math.max((to - from) / 100, 1e-9), reach = Math.max(Math.abs(from), Math.abs(to)), [unit, name] = reach < 1e-3 ? [1e-6, "µs"] : reach < 1 ? [1e-3, "ms"] : [1, "s"];
  const places = Math.max(0, Math.min(9, Math.ceil(-Math.log10(step / unit) - 1e-9)));
  const text = (seconds: number): string => seconds === 0 ? "0" : step >= 1 && reach >= 100 ? dialText(seconds, step < 60) : `${(seconds / unit).toFixed(places).replace("-", "−")} ${name}`;
  return `${text(from)} to ${text(to)}`;
}

// Hours, minutes and, where they count, seconds.
function dialText(seconds: number, exact: boolean): string {
  if (seconds < 0) return `−${dialText(-seconds, exact)}`;
  const whole = Math.round(exact ? seconds : 60 * Math.round(seconds / 60)), hours = Math.floor(whole / 3600), minutes = Math.floor(whole / 60) % 60, two = (n: number): string => String(n).padStart(2, "0");
  const rest = exact ? ` ${two(whole % 60)} s` : "";
  return hours ? `${hours} h ${two(minutes)} min${rest}` : minutes ? `${minutes} min${rest}` : `${whole} s`;
}

export type Kind = "bytes" | "rate" | "seconds" | "count" | "share" | "time" | "number" | "rank" | "text";
export const plain = (value: Maybe): string => missing(value) ? "–" : (Number.isInteger(value) ? String(value) : String(+value.toPrecision(4))).replace("-", "−");
export const TEXT_OF: Record<Kind, (value: never) => string> = {
  bytes, rate, seconds: duration, count, share, time: (value: number) => clock(value), number: plain, rank: String, text: String,
} as Record<Kind, (value: never) => string>;

export function cellText(kind: string, value: unknown): string {
  if (value === null || value === undefined) return "–";
  const write = Object.hasOwn(TEXT_OF, kind) ? TEXT_OF[kind as Kind] : String;
  return (write as (value: unknown) => string)(value);
}
