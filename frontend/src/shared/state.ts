// What a page shows, as one value that a link holds exactly; every step can be undone with Back.
export interface Selection { low: number; high: number; ranks: string } // ranks such as "0-3,8"; empty: all
export interface ShellView {
  low: number | null; high: number | null; // null: all of the time
  select: Selection | null;
  tab: string;
  theme: string;
  pins: string[];
  open: string[]; // rows that differ from their standard: expanded or collapsed
}
export const SHELL_VIEW: ShellView = { low: null, high: null, select: null, tab: "", theme: "", pins: [], open: [] };

const LONGEST = 400; // letters of a text in a link
const MOST_KEYS = 200;
const KEY = /^[\w:.~-]{1,80}$/;
const THEMES = ["", "light", "dark"];

// How a view is written as a link: texts, flags and lists of keys by the type of their standard value.
export class Link<V extends ShellView> {
  constructor(readonly standard: V, private readonly choices: Partial<Record<keyof V, readonly string[]>> = {}) {}

  // JavaScript writes the shortest text that reads back as the same number: links are exact.
  write(view: V): string {
    const parts: string[] = [], put = (key: string, text: string): void => { parts.push(`${key}=${encodeURIComponent(text)}`); };
    if (view.low !== null && view.high !== null) put("t", `${view.low}~${view.high}`);
    if (view.select) put("select", `${view.select.low}~${view.select.high}~${view.select.ranks}`);
    for (const [key, standard] of Object.entries(this.standard)) {
      const value: unknown = view[key as keyof V];
      if (typeof standard === "string" && value !== standard) put(key, value as string);
      if (typeof standard === "boolean" && value !== standard) put(key, value ? "1" : "0");
      if (Array.isArray(standard) && (value as string[]).length) put(key, (value as string[]).join(","));
    }
    return parts.join("&");
  }

  read(text: string): V {
    const parts = new URLSearchParams(text.replace(/^#/, "")), view = { ...this.standard }, span = numbersOf(parts.get("t"));
    if (span && span[1] > span[0]) [view.low, view.high] = span;
    const select = parts.get("select")?.split("~"), times = numbersOf(select?.slice(0, 2).join("~") ?? null);
    if (select && times && times[1] >= times[0]) view.select = { low: times[0], high: times[1], ranks: rankSpans(select[2] ?? "") ? (select[2] ?? "") : "" };
    for (const [key, standard] of Object.entries(this.standard)) {
      const value = parts.get(key), allowed = key === "theme" ? THEMES : this.choices[key as keyof V];
      if (Array.isArray(standard)) view[key as keyof V] = (value ?? "").split(",").filter((one) => KEY.test(one)).slice(0, MOST_KEYS) as V[keyof V];
      else if (typeof standard === "boolean" && value !== null) view[key as keyof V] = (value === "1") as V[keyof V];
      else if (typeof standard === "string" && value !== null && value.length <= LONGEST && (!allowed || allowed.includes(value))) view[key as keyof V] = value as V[keyof V];
    }
    return view;
  }
}

function numbersOf(text: string | null): [number, number] | null {
  const parts = (text ?? "").split("~");
  if (parts.length !== 2 || parts.some((part) => part === "")) return null;
  const [low, high] = parts.map(Number);
  return Number.isFinite(low) && Number.isFinite(high) ? [low, high] : null;
}

// "0-3, 8" to spans; null where a part of it is no rank.
export function rankSpans(text: string): [number, number][] | null {
  const parts = text.split(",").map((part) => part.trim()).filter(Boolean).map((part) => part.match(/^(-1|\d+)(?:\s*-\s*(\d+))?$/));
  return parts.every((part): part is RegExpMatchArray => part !== null) ? parts.map(([, a, b]) => [Number(a), b === undefined ? Number(a) : Number(b)]) : null;
}

export function inRanks(text: string): (rank: number) => boolean {
  const spans = rankSpans(text);
  if (!spans || !spans.length) return () => true;
  return (rank) => spans.some(([a, b]) => rank >= a && rank <= b);
}

export function writeRanks(ranks: number[]): string {
  const sorted = [...new Set(ranks)].sort((a, b) => a - b), parts: string[] = [];
  for (let i = 0; i < sorted.length;) {
    let last = i;
    while (last + 1 < sorted.length && sorted[last + 1] === sorted[last] + 1) last += 1;
    parts.push(last > i ? `${sorted[i]}-${sorted[last]}` : String(sorted[i]));
    i = last + 1;
  }
  return parts.join(",");
}

export class Store<V extends ShellView> {
  view: V;
  private readonly listeners = new Set<(changed: Set<string>) => void>();
  private pending = 0;

  constructor(readonly link: Link<V>) { this.view = { ...link.standard }; }

  onChange(listener: (changed: Set<string>) => void): void { this.listeners.add(listener); }

  // Changes the view; `soon` waits until a movement ends before it becomes a step of the history.
  set(change: Partial<V>, soon = false): void {
    const changed = new Set(Object.keys(change).filter((key) => JSON.stringify(this.view[key as keyof V]) !== JSON.stringify(change[key as keyof V])));
    if (!changed.size) return;
    this.view = { ...this.view, ...change };
    this.listeners.forEach((listener) => listener(changed));
    clearTimeout(this.pending);
    if (soon) this.pending = window.setTimeout(() => this.remember(), 250);
    else this.remember();
  }

  private remember(): void {
    const link = `#${this.link.write(this.view)}`;
    if (link === (location.hash || "#")) return;
    try { history.pushState(null, "", link === "#" ? location.pathname + location.search : link); } catch { /* a frame without an address: nothing to remember */ }
  }

  restore(): void {
    clearTimeout(this.pending);
    this.view = this.link.read(location.hash);
    this.listeners.forEach((listener) => listener(new Set(Object.keys(this.view))));
  }
}
