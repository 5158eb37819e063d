// The rows of the track list: charts, then the tree host › rank › thread › interface › function.
import type { Job } from "./model.ts";
import type { View } from "./state.ts";
import { inRanks, rankSpans } from "../shared/state.ts";
import { narrowScreen } from "../shared/dom.ts";
import { isOpen, ROW, type TrackRow } from "../shared/tracks.ts";
import { lanesOf } from "./lanes.ts";
import { count, plural } from "../shared/units.ts";

export type RowKind = "chart" | "host" | "group" | "rank" | "thread" | "layer" | "function";
export interface Row extends TrackRow {
  kind: RowKind;
  ranks: number[]; // whose calls it shows; empty for charts
  process: number; layer: number; fn: string; chart: string;
}
export interface Chart { id: string; title: string; height: number; open: boolean }

export const LANE = 14;
const LEAST = 2; // pixels of a rank's row: a single slow rank of 1,024 can still be seen
const MOST_OPEN_RANKS = 4096; // more are grouped, hosts are closed
const GROUPS = 256;
const CURVES = new Set(["bandwidth", "concurrency"]);
const FEW_RANKS = 4; // that are open from the start: their interfaces fit on a screen

const plainRow = (kind: RowKind, key: string, label: string, depth: number, height: number): Row =>
  ({ key, kind, label, depth, height, expandable: false, open: false, ranks: [], process: -1, layer: -1, fn: "", chart: "" });


export function buildRows(job: Job, view: View, charts: Chart[], room: number): Row[] {
  const rows: Row[] = charts.map((chart) => {
    const open = isOpen(view, `chart:${chart.id}`, chart.open);
    return { ...plainRow("chart", `chart:${chart.id}`, chart.title, 0, open ? chart.height : ROW), expandable: true, open, chart: chart.id };
  });
  if (!job.marks.count) return rows;
  const ranks = sortedRanks(job, view), blocks = blocksOf(job, view, ranks, room - rows.reduce((sum, row) => sum + row.height, 0));
  const shown = blocks.reduce((sum, block) => sum + (block.open ? block.ranks.length : 0), 0);
  const used = rows.reduce((sum, row) => sum + row.height, 0) + (blocks.length > 1 ? blocks.length * ROW : 0);
  const height = view.rows === "tall" ? ROW : view.rows === "thin" ? LEAST : Math.max(LEAST, Math.min(ROW, Math.floor((room - used) / Math.max(1, shown))));
  for (const block of blocks) {
    if (block.key) rows.push({ ...plainRow(block.kind, block.key, block.label, 0, ROW), expandable: true, open: block.open, ranks: block.ranks });
    if (block.open) for (const rank of block.ranks) pushRank(rows, job, view, rank, block.key ? 1 : 0, height, ranks);
  }
  return stretchCurves(rows, room);
}

// Curves take the room that is left over.
function stretchCurves(rows: Row[], room: number): Row[] {
  const spare = room - rows.reduce((sum, row) => sum + row.height, 0), curves = rows.filter((row) => row.open && CURVES.has(row.chart));
  for (const row of spare > 0 ? curves : []) row.height += Math.min(row.height, Math.floor(spare / curves.length));
  return rows;
}

interface Block { key: string; kind: "host" | "group"; label: string; ranks: number[]; open: boolean }

// Names of hosts that take more room than the ranks below them are left out, unless everything fits.
export const hostsFit = (hosts: number, ranks: number, room: number): boolean => hosts * ROW <= ranks * LEAST || hosts * ROW + ranks * LEAST <= room;

function blocksOf(job: Job, view: View, ranks: number[], room: number): Block[] {
  const hosts = job.data.hosts.names;
  if (hosts.length > 1 && (view.group === "host" || (view.group === "auto" && hostsFit(hosts.length, ranks.length, room)))) {
    const by = new Map<number, number[]>();
    for (const rank of ranks) { const host = rank >= 0 ? job.data.hosts.of[rank] ?? -1 : -1; by.set(host, [...(by.get(host) ?? []), rank]); }
    const list = ranks.length > 2000 ? groupedByHost(job, ranks) : by;
    return [...list].map(([host, members]) => ({ key: `host:${host}`, kind: "host", label: host < 0 ? "no host known" : hosts[host], ranks: members, open: isOpen(view, `host:${host}`, ranks.length <= MOST_OPEN_RANKS) }));
  }
  if (ranks.length <= MOST_OPEN_RANKS) return [{ key: "", kind: "group", label: "", ranks, open: true }];
  const size = Math.ceil(ranks.length / GROUPS), blocks: Block[] = [];
  for (let from = 0; from < ranks.length; from += size) {
    const members = ranks.slice(from, from + size), key = `group:${from}`;
    const label = view.sort === "rank" ? `ranks ${members[0]}–${members[members.length - 1]}` : `${count(from + 1)} to ${count(from + members.length)} by ${view.sort}`;
    blocks.push({ key, kind: "group", label, ranks: members, open: isOpen(view, key, false) });
  }
  return blocks;
}

function groupedByHost(job: Job, ranks: number[]): Map<number, number[]> {
  const by = new Map<number, number[]>();
  for (const rank of ranks) {
    const host = rank >= 0 ? job.data.hosts.of[rank] ?? -1 : -1, list = by.get(host);
    if (list) list.push(rank); else by.set(host, [rank]);
  }
  return by;
}

let sortedFor = "", sortedList: number[] = [];

// Ranks in the chosen order. "late" is judged in the view at the moment it is chosen: rows must not jump while one pans.
export function sortedRanks(job: Job, view: View): number[] {
  const key = JSON.stringify([job.data.explore ? 0 : job.version, view.sort, view.filter, job.ranks]);
  if (key === sortedFor) return sortedList;
  const present = ranksPresent(job), kept = matches(job, view.filter), listed: number[] = present.has(-1) && kept(-1) ? [-1] : [];
  // Counters of all ranks together are one row; rows of single ranks without a record would be empty.
  for (let rank = 0; rank < job.ranks; rank += 1) if (kept(rank) && (!job.counters || present.has(rank))) listed.push(rank);
  if (view.sort !== "rank") {
    const low = view.low ?? job.data.time[0], high = view.high ?? job.data.time[1];
    const by = view.sort === "late" ? job.lateness(low, high) : view.sort === "bytes" ? job.rankStats().bytes : job.rankStats().time;
    listed.sort((a, b) => (by[b] ?? 0) - (by[a] ?? 0) || a - b);
  }
  sortedFor = key;
  sortedList = listed;
  return listed;
}

function ranksPresent(job: Job): Set<number> {
  const present = new Set<number>();
  for (let s = 0; s + 1 < job.marks.streams.length; s += 1) present.add(job.marks.rank[job.marks.streams[s]]);
  return present;
}

function matches(job: Job, filter: string): (rank: number) => boolean {
  const wanted = filter.trim().toLowerCase();
  if (!wanted) return () => true;
  if (rankSpans(wanted)) return inRanks(wanted);
  return (rank) => job.hostOf(rank).toLowerCase().includes(wanted);
}

function pushRank(rows: Row[], job: Job, view: View, rank: number, depth: number, height: number, all: number[]): void {
  const program = job.data.timeline.source === "calls" && all.length <= 64 && rank === all[0] && job.layersPresent().some((layer) => job.isProgram(layer));
  const open = isOpen(view, `rank:${rank}`, all.length <= FEW_RANKS || program);
  rows.push({ ...plainRow("rank", `rank:${rank}`, job.rankName(rank), depth, open ? ROW : height), expandable: true, open, ranks: [rank] });
  if (open) pushParts(rows, job, view, rank, depth + 1);
}

// Threads of a rank where there are several, then interfaces, then functions.
function pushParts(rows: Row[], job: Job, view: View, rank: number, depth: number): void {
  const { marks } = job, mine = job.rowsOfRank(rank), threads = marks.process ? busiestFirst(job, mine) : [];
  if (threads.length < 2) { pushLayers(rows, job, view, rank, -1, depth); return; }
  for (const thread of threads) {
    const key = `thread:${rank}.${thread}`, open = isOpen(view, key, threads.length <= 4 || thread === threads[0]);
    rows.push({ ...plainRow("thread", key, job.threadName(thread), depth, ROW), expandable: true, open, ranks: [rank], process: thread });
    if (open) pushLayers(rows, job, view, rank, thread, depth + 1);
  }
}

function busiestFirst(job: Job, rows: Int32Array): number[] {
  const time = new Map<number, number>();
  for (const i of rows) { const process = job.marks.process![i]; time.set(process, (time.get(process) ?? 0) + job.marks.duration[i]); }
  return [...time].sort((a, b) => b[1] - a[1]).map(([process]) => process);
}

// The only interface of a rank or thread has no row: it would show the same calls again.
function pushLayers(rows: Row[], job: Job, view: View, rank: number, process: number, depth: number): void {
  const mine = job.rowsOfRank(rank), present = new Set<number>();
  for (const i of mine) if (process < 0 || job.marks.process![i] === process) present.add(job.marks.layer[i]);
  for (const layer of job.layersPresent()) {
    if (!present.has(layer)) continue;
    if (present.size === 1) { pushFunctions(rows, job, rank, process, layer, depth, narrowScreen() ? "" : `${job.layerTitle(layer)} `); continue; }
    const key = `layer:${rank}.${process}.${layer}`, lanes = lanesOf(job, rank, process, layer, ""), open = isOpen(view, key, false);
    rows.push({ ...plainRow("layer", key, job.layerTitle(layer), depth, Math.max(ROW, lanes.count * LANE + 4)), expandable: true, open, ranks: [rank], process, layer });
    if (open) pushFunctions(rows, job, rank, process, layer, depth + 1, "");
  }
}

function pushFunctions(rows: Row[], job: Job, rank: number, process: number, layer: number, depth: number, prefix: string): void {
  lanesOf(job, rank, process, layer, "").names.forEach((name, number) => {
    const part = lanesOf(job, rank, process, layer, name);
    rows.push({ ...plainRow("function", `fn:${rank}.${process}.${layer}.${number}`, prefix + name, depth, Math.max(ROW, part.count * LANE + 4)), ranks: [rank], process, layer, fn: name });
  });
}

export function rowTitle(job: Job, row: Row): string {
  const host = row.kind === "rank" ? job.hostOf(row.ranks[0]) : "";
  if (row.kind === "host" || row.kind === "group") return `${row.label}: ${plural(row.ranks.length, "rank")}`;
  return host ? `${row.label} on ${host}` : row.label;
}
