// What the page shows, as one value that a link holds exactly; every step can be undone with Back.
export interface Selection { low: number; high: number; ranks: string } // ranks such as "0-3,8"; empty: all
export interface View {
  low: number | null; high: number | null; // null: the whole run
  select: Selection | null;
  show: string; // a cause, finding, file, function, rank or target that is highlighted
  call: string; // the pinned call
  tab: string;
  colour: string;
  layer: string; // on which details are summed; empty: the main one
  log: boolean;
  theme: string;
  sort: string;
  group: string;
  rows: string; // height of rank rows
  filter: string; // ranks that have rows
  pins: string[];
  open: string[]; // rows that differ from their standard: expanded or collapsed
  proof: string; // the cause whose slow group is shown beside a peer
}

export const COLOURS = ["operation", "function", "file", "size", "duration", "bytes"] as const;
const CHOICES: Partial<Record<keyof View, readonly string[]>> = {
  colour: COLOURS, sort: ["rank", "time", "late", "bytes"], group: ["host", "none"], rows: ["auto", "thin", "tall"], theme: ["", "light", "dark"],
};
export const STANDARD: View = {
  low: null, high: null, select: null, show: "", call: "", tab: "details", colour: "operation", layer: "", log: false, theme: "",
  sort: "rank", group: "host", rows: "auto", filter: "", pins: [], open: [], proof: "",
};

const LONGEST = 400; // letters of a text in a link
const KEY = /^[\w:.~-]{1,80}$/;

// JavaScript writes the shortest text that reads back as the same number: links are exact.
export function writeLink(view: View): string {
  const parts: string[] = [], put = (key: string, text: string): void => { parts.push(`${key}=${encodeURIComponent(text)}`); };
  if (view.low !== null && view.high !== null) put("t", `${view.low}~${view.high}`);
  if (view.select) put("select", `${view.select.low}~${view.select.high}~${view.select.ranks}`);
  for (const key of ["show", "call", "tab", "colour", "layer", "theme", "sort", "group", "rows", "filter", "proof"] as const) if (view[key] !== STANDARD[key]) put(key, view[key]);
  if (view.log) put("log", "1");
  for (const key of ["pins", "open"] as const) if (view[key].length) put(key, view[key].join(","));
  return parts.join("&");
}

export function readLink(text: string): View {
  const parts = new URLSearchParams(text.replace(/^#/, "")), view: View = { ...STANDARD, pins: [], open: [] };
  const span = numbersOf(parts.get("t"));
  if (span && span[1] > span[0]) [view.low, view.high] = span;
  const select = parts.get("select")?.split("~"), times = numbersOf(select?.slice(0, 2).join("~") ?? null);
  if (select && times && times[1] >= times[0]) view.select = { low: times[0], high: times[1], ranks: rankSpans(select[2] ?? "") ? (select[2] ?? "") : "" };
  for (const key of ["show", "call", "tab", "colour", "layer", "theme", "sort", "group", "rows", "filter", "proof"] as const) {
    const value = parts.get(key), allowed = CHOICES[key];
    if (value !== null && value.length <= LONGEST && (!allowed || allowed.includes(value))) view[key] = value;
  }
  view.log = parts.get("log") === "1";
  for (const key of ["pins", "open"] as const) view[key] = (parts.get(key) ?? "").split(",").filter((one) => KEY.test(one)).slice(0, 200);
  return view;
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

export type Change = Partial<View>;

export class Store {
  view: View = { ...STANDARD };
  private readonly listeners = new Set<(changed: Set<string>) => void>();
  private pending = 0;

  onChange(listener: (changed: Set<string>) => void): void { this.listeners.add(listener); }

  // Changes the view; `soon` waits until a movement ends before it becomes a step of the history.
  set(change: Change, soon = false): void {
    const changed = new Set(Object.keys(change).filter((key) => JSON.stringify(this.view[key as keyof View]) !== JSON.stringify(change[key as keyof View])));
    if (!changed.size) return;
    this.view = { ...this.view, ...change };
    this.listeners.forEach((listener) => listener(changed));
    clearTimeout(this.pending);
    if (soon) this.pending = window.setTimeout(() => this.remember(), 250);
    else this.remember();
  }

  remember(): void {
    const link = `#${writeLink(this.view)}`;
    if (link === (location.hash || "#")) return;
    try { history.pushState(null, "", link === "#" ? location.pathname + location.search : link); } catch { /* a frame without an address: nothing to remember */ }
  }

  restore(): void {
    clearTimeout(this.pending);
    this.view = readLink(location.hash);
    this.listeners.forEach((listener) => listener(new Set(Object.keys(this.view))));
  }
}
