// The tracks of a job: charts, then hosts, ranks, threads, interfaces and functions.
import type { TimeAxis } from "../shared/axis.ts";
import { colour, rgb } from "../shared/colours.ts";
import { drawHatch, heatImage, largest, imageSheet, type TickName } from "../shared/curves.ts";
import type { Pen } from "../shared/pen.ts";
import { inRanks, writeRanks, type Selection, type Store } from "../shared/state.ts";
import { OVERVIEW, TrackPane, type Hit, type RowLayout } from "../shared/tracks.ts";
import { chartsOf, countedOf, drawChart } from "./charts.ts";
import { callInLanes, drawLanes, lanesOf } from "./lanes.ts";
import { endOf, timeOf } from "./marks.ts";
import type { Job } from "./model.ts";
import type { Paint } from "./paint.ts";
import { buildRows, LANE, rowTitle, type Row } from "./rows.ts";
import { imageOf, movedBytes, rasterise, spread, type Grid } from "./raster.ts";
import type { View } from "./state.ts";

export interface Excess { rank: number; from: number; to: number }

export class Pane extends TrackPane<Row, View> {
  paint: Paint | null = null;
  lit: Uint8Array | null = null;
  excess: Excess | null = null;
  pinnedCall = -1;
  file = -1; // whose offsets are drawn
  private overview: { key: string; sheet: HTMLCanvasElement } | null = null;

  constructor(readonly job: Job, store: Store<View>, axis: TimeAxis) {
    super(store, axis, job.data.explore || job.data.timeline.count ? "whole run" : "");
  }

  protected rowsFor(room: number): Row[] {
    const { job, store: { view } } = this, wanted = job.data.only ? only(job.data.only) : "", charts = chartsOf(job);
    if (!wanted) return buildRows(job, view, charts, room);
    if (wanted === "ranks") return buildRows(job, view, [], room);
    const alone = charts.filter((one) => one.id === wanted).map((one) => ({ ...one, open: true, height: 2.5 * one.height }));
    return buildRows(job, view, alone, room).filter((row) => row.kind === "chart");
  }

  // A pinned rank stays pinned where its host is closed.
  protected rowFor(key: string): Row | null {
    const rank = key.match(/^rank:(-?\d+)$/);
    if (!rank || Number(rank[1]) >= this.job.ranks) return null;
    return { key, kind: "rank", label: this.job.rankName(Number(rank[1])), depth: 0, height: 18, expandable: true, open: false, ranks: [Number(rank[1])], process: -1, layer: -1, fn: "", chart: "" };
  }

  protected titleOf(row: Row): string { return rowTitle(this.job, row); }
  protected canPin(row: Row): boolean { return row.kind === "rank" || row.kind === "chart" || row.kind === "host"; }
  protected selects(row: Row, select: Selection): boolean { return !isOpenBlock(row) && row.ranks.some(inRanks(select.ranks)); }

  draw(): void { if (this.paint) super.draw(); }

  protected paintOverview(pen: Pen): void {
    const { axis, left, job } = this, columns = 400, key = `${job.data.explore ? "" : job.version} ${this.store.view.colour} ${this.paint!.colours.join()}`;
    if (job.marks.count && (!this.overview || (this.overview.key !== key && (!job.data.explore || axis.whole)))) {
      const grid: Grid = { low: axis.first, high: axis.last, width: columns, rows: 1, rowOf: new Int32Array(job.ranks + 2).fill(0) };
      this.overview = { key, sheet: imageSheet(this.picture(grid, null, this.paint!, null, -1), document.createElement("canvas")) };
    }
    pen.imageSmoothingEnabled = false;
    if (this.overview) pen.drawImage(this.overview.sheet, 0, 0, columns, 1, left, 2, this.width, OVERVIEW - 4);
  }

  protected paintContent(pen: Pen, layout: RowLayout<Row>, first: number, last: number, shift: number, names: TickName[]): void {
    const { rows, tops } = layout, { job } = this, lit = layout === this.pinned && this.store.view.proof ? null : this.lit; // a peer keeps its colours: it does not take part in what is slow
    this.paintDensity(pen, layout, first, last, shift, lit);
    for (let n = first; n < last; n += 1) {
      const row = rows[n], top = tops[n] + shift;
      if (row.kind === "chart" && row.open) drawChart(pen, row.chart, this.box(top), { job, log: this.store.view.log, file: this.file, height: row.height, names });
      if (row.kind === "layer" || row.kind === "function") drawLanes(pen, job, lanesOf(job, row.ranks[0], row.process, row.layer, row.fn), this.paint!, lit, this.box(top));
      if (this.excess && row.kind === "rank" && row.ranks[0] === this.excess.rank) drawHatch(pen, this.box(top), this.excess.from, this.excess.to, row.height - 1, "--ink");
    }
  }

  // Rows without lanes of their own: the busier their ranks, the fuller the colour.
  private paintDensity(pen: Pen, layout: RowLayout<Row>, first: number, last: number, shift: number, lit: Uint8Array | null): void {
    const { job, paint } = this, { low, high, width } = this.box(0), step = job.data.explore ? job.rankStep : 1, seen = new Set<number>(), rowOf = new Int32Array(job.ranks + 2).fill(-1), places: [number, number][] = [], share: number[] = [];
    for (let n = first; n < last; n += 1) {
      const row = layout.rows[n];
      if (row.kind !== "rank" && ((row.kind !== "host" && row.kind !== "group") || row.open)) continue;
      const base = row.ranks.length === 1 ? baseOf(row.ranks[0], step) : -2, shared = base > -2 ? rowOf[base + 1] : -1;
      const index = shared >= 0 && row.kind === "rank" && layout.rows[places.find(([, k]) => k === shared)?.[0] ?? n].kind === "rank" ? shared : share.push(base > -2 ? Math.min(step, job.ranks) : row.ranks.length) - 1;
      if (index !== shared) for (const rank of row.ranks) { const base = baseOf(rank, step); rowOf[base + 1] = index; seen.add(base); }
      places.push([n, index]);
    }
    if (places.length) this.paintGrid(pen, { low, high, width: Math.round(width), rows: share.length, rowOf, streams: 4 * seen.size < job.ranks ? job.streamsOf(seen) : undefined }, share, places.map(([n, index]) => ({ index, top: layout.tops[n] + shift, height: layout.rows[n].height })), paint!, lit, -1);
    for (let n = first; n < last; n += 1) {
      const row = layout.rows[n];
      if (row.kind !== "thread") continue;
      const only = new Int32Array(job.ranks + 2).fill(-1);
      only[row.ranks[0] + 1] = 0;
      this.paintGrid(pen, { low, high, width: Math.round(width), rows: 1, rowOf: only }, [1], [{ index: 0, top: layout.tops[n] + shift, height: row.height }], paint!, lit, row.process);
    }
  }

  // What the rows of a grid look like; without a share, each is as full as the fullest pixel.
  private picture(grid: Grid, share: number[] | null, paint: Paint, lit: Uint8Array | null, process: number): ImageData {
    const { job } = this, layers = new Set(job.ioLayers().length ? job.ioLayers() : job.layersPresent()), kinds = paint.colours.length;
    if (this.store.view.colour === "bytes" || job.bins) {
      const sums = spread(job, grid.low, grid.high, grid.width, grid.rows, (from) => grid.rowOf[job.marks.rank[from] + 1] ?? -1, movedBytes(job, countedOf(job)));
      if (share) for (let p = 0; p < sums.length; p += 1) sums[p] /= share[Math.floor(p / grid.width)];
      const most = largest(sums);
      if (share) this.onHeat(most * grid.width / (grid.high - grid.low));
      return heatImage(sums, grid.width, grid.rows, most || 1);
    }
    const cells = rasterise(job, grid, layers, paint.category, kinds, lit, process);
    return imageOf(cells, grid, kinds, paint.colours, Float32Array.from(share ?? [largest(cells) || 1]), rgb("--faded"));
  }

  private paintGrid(pen: Pen, grid: Grid, share: number[], places: { index: number; top: number; height: number }[], paint: Paint, lit: Uint8Array | null, process: number): void {
    const image = this.picture(grid, share, paint, lit, process);
    const sheet = imageSheet(image);
    pen.imageSmoothingEnabled = false;
    for (const { index, top, height } of places) pen.drawImage(sheet, 0, index, grid.width, 1, this.left, top, grid.width, height >= 6 ? height - 2 : height);
  }

  // The pinned call has a frame.
  protected paintOver(pen: Pen, layout: RowLayout<Row>, first: number, last: number, shift: number): void {
    const call = this.pinnedCall, { axis, left, width } = this;
    if (call < 0) return;
    const { marks } = this.job, a = left + axis.across(timeOf(marks, call), width), b = left + axis.across(endOf(marks, call), width);
    for (let n = first; n < last; n += 1) {
      const row = layout.rows[n];
      if (row.kind === "chart" || isOpenBlock(row) || !row.ranks.includes(marks.rank[call]) || (row.layer >= 0 && row.layer !== marks.layer[call])) continue;
      pen.strokeStyle = colour("--ink");
      pen.lineWidth = 2;
      const lane = row.layer >= 0 ? laneOf(this.job, row, call) : -1;
      if (row.layer >= 0 && lane < 0) continue;
      pen.strokeRect(a - 1, layout.tops[n] + shift + 1 + Math.max(0, lane) * LANE, Math.max(3, b - a + 2), lane < 0 ? row.height - 2 : LANE);
      pen.lineWidth = 1;
    }
  }

  onHeat: (rate: number) => void = () => undefined; // bytes per second of the darkest pixel of a rank

  hit(x: number, y: number, pinned: boolean): Hit<Row> {
    const hit = super.hit(x, y, pinned), { row, time } = hit;
    if (!row || x < this.left) return hit;
    const slack = 4 * this.axis.span / this.width;
    if (row.kind === "layer" || row.kind === "function") return { ...hit, mark: callInLanes(this.job, lanesOf(this.job, row.ranks[0], row.process, row.layer, row.fn), time, Math.floor((hit.y - 2) / LANE), slack) };
    if ((row.kind === "rank" || row.kind === "thread") && row.ranks.length === 1) return { ...hit, mark: this.nearest(row, time, slack) };
    return hit;
  }

  private nearest(row: Row, time: number, slack: number): number {
    for (const layer of [this.job.mainLayer(), ...this.job.ioLayers()]) {
      const mark = callInLanes(this.job, lanesOf(this.job, row.ranks[0], row.process, layer, ""), time, -1, slack);
      if (mark >= 0) return mark;
    }
    return -1;
  }

  // The ranks whose rows lie between two heights; empty: all of them, or charts only.
  ranksBetween(from: number, to: number, pinned: boolean): string {
    const layout = pinned ? this.pinned : this.layout, [first, last] = layout.visible(Math.min(from, to), Math.max(from, to) + 1);
    const ranks = new Set(layout.rows.slice(first, last).filter((row) => !isOpenBlock(row)).flatMap((row) => row.ranks));
    return ranks.size >= this.job.ranks ? "" : writeRanks([...ranks]);
  }

  visibleRanks(): [number, number] | null {
    const [first, last] = this.layout.visible(this.scroll.scrollTop, this.scroll.scrollTop + this.scroll.clientHeight);
    let low = Infinity, high = -Infinity;
    for (const row of [...this.layout.rows.slice(first, last), ...this.pinned.rows]) for (const rank of row.ranks) { low = Math.min(low, rank); high = Math.max(high, rank); }
    return low <= high ? [Math.max(0, low), high] : null;
  }
}

function laneOf(job: Job, row: Row, call: number): number {
  const lanes = lanesOf(job, row.ranks[0], row.process, row.layer, row.fn), place = lanes.rows.indexOf(call);
  return place < 0 ? -1 : lanes.lane[place];
}

const isOpenBlock = (row: Row): boolean => row.open && (row.kind === "host" || row.kind === "group");
const baseOf = (rank: number, step: number): number => rank < 0 ? rank : Math.floor(rank / step) * step;
export const only = (name: string): string => ({ timeline: "ranks", heat: "ranks", space: "offsets" })[name] ?? name;
