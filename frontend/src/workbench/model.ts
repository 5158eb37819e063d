// The job as the page knows it: names of things, layers that count, indices by rank.
import { decodeMarks, endOf, movesBytes, timeOf, busyOf, type Marks } from "./marks.ts";
import type { PageData, Phase } from "./types.ts";

export interface PhaseOf extends Phase { layer: string }
const NO_ROWS = new Int32Array(0);
const LEAST_SHARE = 0.02; // of the program's time: functions below do not need a colour
const FEW_RANKS = 8; // tell as well as all which functions of a program take most time

export class Job {
  marks: Marks = decodeMarks({ count: 0, origin: 0, tick: 1, functions: [], columns: [["start", 8], ["duration", 8], ["rank", 4], ["file", 4], ["bytes", 8], ["offset", 8], ["kind", 1], ["flags", 1]] }, new Uint8Array(0));
  rankStep = 1; // so many ranks share a row of a coarse tile
  version = 0; // of the marks: what is computed from them is kept by it
  private byRank: Map<number, Int32Array> = new Map();
  private stats: { time: Float64Array; bytes: Float64Array } | null = null;

  constructor(public data: PageData) {}

  adopt(marks: Marks): void {
    this.marks = marks;
    this.version += 1;
    this.byRank = new Map();
    this.stats = null;
    this.ranked = null;
    this.present = null;
    this.byStream = null;
  }

  get ranks(): number { return Math.max(1, this.data.ranks); }
  get bins(): boolean { return this.data.timeline.source === "heat map"; }
  get counters(): boolean { return this.data.timeline.source === "counters"; }
  get timed(): boolean { return !this.bins && !this.counters; } // whether a mark's length is time in calls
  layerTitle(layer: number): string { return this.data.titles[this.data.layers[layer]] ?? this.data.layers[layer]; }
  operationName(operation: number): string { return this.data.operations[operation] ?? "call"; }

  functionName(i: number): string {
    const code = this.marks.fn ? this.marks.fn[i] : 0;
    return code ? this.marks.functions[code - 1] : this.operationName(this.marks.operation[i]);
  }

  fileName(file: number): string {
    if (file < 0) return "several files, or none";
    return this.data.files[file] ?? `file ${file}`;
  }

  hostOf(rank: number): string {
    const { names, of } = this.data.hosts;
    return rank >= 0 && rank < of.length && of[rank] >= 0 ? names[of[rank]] : "";
  }

  rankName(rank: number): string { return rank < 0 ? "all ranks" : `rank ${rank}`; }

  // Who a mark stands for: in a coarse tile, several ranks.
  markRanks(rank: number): string { return rank >= 0 && this.rankStep > 1 ? `ranks ${rank}–${Math.min(this.ranks, rank + this.rankStep) - 1}` : this.rankName(rank); }

  // Of a trace of any size, marks are there for a part of the time and of the ranks.
  loaded: { low: number; high: number; ranks: [number, number] | null } | null = null;
  get runs(): boolean { return this.marks.calls !== null && this.timed; } // whether marks stand for several calls
  threadName(process: number): string { return this.data.threads[process] ?? `process ${process}`; }

  // Storage targets that a mark's bytes lie on.
  targetsOf(i: number): number[] {
    const { marks } = this, layout = this.data.stripes[marks.file[i]];
    if (!layout || !(marks.flags[i] & 2)) return [];
    const [size, targets] = layout, extent = marks.extent ? marks.extent[i] : marks.bytes[i];
    const first = Math.floor(marks.offset[i] / size), last = Math.floor((marks.offset[i] + Math.max(1, extent) - 1) / size);
    if (last - first + 1 >= targets.length) return targets;
    return Array.from({ length: last - first + 1 }, (_, n) => targets[(first + n) % targets.length]);
  }

  get targets(): number[] {
    const all = new Set<number>();
    for (const [, targets] of Object.values(this.data.stripes)) for (const target of targets) all.add(target);
    return [...all].sort((a, b) => a - b);
  }

  // The layers with marks, highest (closest to the program) first.
  private present: number[] | null = null;
  layersPresent(): number[] {
    if (this.present) return this.present;
    const present = new Set<number>();
    for (let s = 0; s + 1 < this.marks.streams.length; s += 1) present.add(this.marks.layer[this.marks.streams[s]]);
    const height = (layer: number): number => this.data.heights[this.data.layers[layer]] ?? 0;
    this.present = [...present].sort((a, b) => height(b) - height(a) || a - b);
    return this.present;
  }

  // Streams of some ranks: of 100,000, only those of visible rows are drawn.
  private byStream: Map<number, number[]> | null = null;
  streamsOf(ranks: Iterable<number>): number[] {
    const { marks } = this;
    if (!this.byStream) {
      this.byStream = new Map();
      for (let s = 0; s + 1 < marks.streams.length; s += 1) { const rank = marks.rank[marks.streams[s]], list = this.byStream.get(rank); if (list) list.push(s); else this.byStream.set(rank, [s]); }
    }
    const streams: number[] = [];
    for (const rank of ranks) for (const s of this.byStream.get(rank) ?? []) streams.push(s);
    return streams;
  }

  // The functions in which the program itself, without what it calls, spends most time; chosen once, so that colours stay.
  private ownFunctions: string[] | null = null;
  programFunctions(most: number): string[] {
    if (this.ownFunctions) return this.ownFunctions;
    const { marks } = this, ranks = new Set<number>(), own = new Map<string, number>();
    if (!marks.fn) return [];
    for (let s = 0; s + 1 < marks.streams.length && ranks.size < FEW_RANKS; s += 1) if (this.isProgram(marks.layer[marks.streams[s]])) ranks.add(marks.rank[marks.streams[s]]);
    for (const rank of ranks) {
      const callers = new Map<number, { name: string; end: number }[]>(), add = (name: string, time: number): void => { own.set(name, (own.get(name) ?? 0) + time); };
      for (const i of this.rowsOfRank(rank)) {
        if (!this.isProgram(marks.layer[i])) continue;
        const start = marks.start[i], process = marks.process ? marks.process[i] : 0, open = callers.get(process) ?? [], name = this.functionName(i);
        while (open.length && open[open.length - 1].end <= start) open.pop();
        if (open.length) add(open[open.length - 1].name, -marks.duration[i]);
        add(name, marks.duration[i]);
        open.push({ name, end: start + marks.duration[i] });
        callers.set(process, open);
      }
    }
    const least = LEAST_SHARE * [...own.values()].reduce((sum, time) => sum + time, 0), names = [...own].filter(([, time]) => time > least).sort((a, b) => b[1] - a[1]).slice(0, most).map(([name]) => name);
    if (names.length) this.ownFunctions = names;
    return names;
  }

  isProgram(layer: number): boolean { return this.data.layers[layer] === "application"; }
  // Whether a stream is I/O: a program's own functions are none, nor is starting other processes or waiting for them.
  isIo(first: number): boolean { return !this.isProgram(this.marks.layer[first]) && !this.isOutside(first); }
  isOutside(i: number): boolean { return this.data.operations[this.marks.operation[i]] === "other" && !this.marks.bytes[i]; }
  ioLayers(): number[] { return this.layersPresent().filter((layer) => !this.isProgram(layer)); }

  // The one layer on which totals are taken: what the program itself calls, the layer with most time.
  private ranked: number | null = null;
  mainLayer(): number {
    if (this.ranked !== null) return this.ranked;
    const time = new Map<number, number>();
    const { marks } = this;
    const spent = marks.busy ?? marks.duration, { streams } = marks; // a stream is of one layer
    for (let s = 0; s + 1 < streams.length; s += 1) {
      const layer = marks.layer[streams[s]];
      if (this.isProgram(layer)) continue;
      let sum = 0;
      for (let i = streams[s]; i < streams[s + 1]; i += 1) sum += spent[i];
      time.set(layer, (time.get(layer) ?? 0) + sum);
    }
    this.ranked = [...time].sort((a, b) => b[1] - a[1])[0]?.[0] ?? 0;
    return this.ranked;
  }

  layerNumber(name: string): number {
    const number = this.data.layers.indexOf(name);
    return number >= 0 && this.layersPresent().includes(number) ? number : this.mainLayer();
  }

  // The marks of a rank in order of time, longer ones first where they begin together.
  rowsOfRank(rank: number): Int32Array {
    const kept = this.byRank.get(rank);
    if (kept) return kept;
    const { marks } = this, rows: number[] = [];
    for (let s = 0; s + 1 < marks.streams.length; s += 1) {
      if (marks.rank[marks.streams[s]] !== rank) continue;
      for (let i = marks.streams[s]; i < marks.streams[s + 1]; i += 1) rows.push(i);
    }
    const sorted = rows.length ? Int32Array.from(rows).sort((a, b) => marks.start[a] - marks.start[b] || marks.duration[b] - marks.duration[a]) : NO_ROWS;
    if (this.byRank.size > 400) this.byRank.clear(); // of 100,000 ranks only what is looked at is kept
    this.byRank.set(rank, sorted);
    return sorted;
  }

  // Time in calls and bytes of each rank, on one layer.
  rankStats(): { time: Float64Array; bytes: Float64Array } {
    if (this.stats) return this.stats;
    const time = new Float64Array(this.ranks), bytes = new Float64Array(this.ranks), main = this.mainLayer(), { marks } = this;
    for (let i = 0; i < marks.count; i += 1) {
      const rank = marks.rank[i];
      if (rank < 0 || rank >= time.length || marks.layer[i] !== main || !this.isIo(i)) continue;
      time[rank] += busyOf(marks, i);
      if (movesBytes(marks, i)) bytes[rank] += marks.bytes[i];
    }
    this.stats = { time, bytes };
    return this.stats;
  }

  // When each rank's last I/O call within a window ends, by how much after the window's begin.
  lateness(low: number, high: number): Float64Array {
    const late = new Float64Array(this.ranks), { marks } = this;
    for (let i = 0; i < marks.count; i += 1) {
      const rank = marks.rank[i];
      if (rank < 0 || rank >= late.length || !this.isIo(i) || timeOf(marks, i) > high) continue;
      const end = Math.min(high, endOf(marks, i)) - low;
      if (end > late[rank]) late[rank] = end;
    }
    return late;
  }

  // The phases of the layer that has most I/O time, in order.
  phases(): PhaseOf[] {
    const layers = Object.entries(this.data.phases).filter(([layer, { phases }]) => layer !== "application" && phases.length);
    const main = this.data.layers[this.mainLayer()], spent = (list: Phase[]): number => list.reduce((sum, one) => sum + one.end - one.start, 0);
    layers.sort((a, b) => Number(b[0] === main) - Number(a[0] === main) || spent(b[1].phases) - spent(a[1].phases));
    return layers.length ? layers[0][1].phases.map((phase) => ({ ...phase, layer: layers[0][0] })) : [];
  }

  allPhases(): PhaseOf[] {
    return Object.entries(this.data.phases).flatMap(([layer, { phases }]) => phases.map((phase) => ({ ...phase, layer })));
  }
}
