// The track list: an overview, a time axis, pinned rows, and rows of which only the visible ones exist.
import { drawTimeAxis, type TimeAxis } from "../shared/axis.ts";
import { colour, FONT, rgb } from "../shared/colours.ts";
import { byId, el, reducedMotion } from "../shared/dom.ts";
import { canvasPen, type Pen } from "../shared/pen.ts";
import { chartsOf, countedOf, drawChart, drawImage, paintTickNames, type TickName } from "./charts.ts";
import { callInLanes, drawLanes, lanesOf, type Box } from "./lanes.ts";
import { endOf, timeOf } from "./marks.ts";
import type { Job } from "./model.ts";
import type { Paint } from "./paint.ts";
import { buildRows, hasName, LANE, RowLayout, rowTitle, type Row } from "./rows.ts";
import { heatImage, imageOf, largest, movedBytes, rasterise, spread, type Grid } from "./raster.ts";
import { inRanks, type Selection, type Store } from "./state.ts";


export const OVERVIEW = 30, AXIS = 22;
const BUSY = 250000; // marks from which curves wait until a movement ends
const HATCH = 7; // pixels between hatch lines

export interface Hit { row: Row | null; time: number; mark: number; y: number; top: number }
export interface Excess { rank: number; from: number; to: number }

interface Sheet { canvas: HTMLCanvasElement; labels: HTMLElement; nodes: Map<string, HTMLElement> }

export class Pane {
  layout = new RowLayout([]);
  pinned = new RowLayout([]);
  paint: Paint | null = null;
  lit: Uint8Array | null = null;
  excess: Excess | null = null;
  file = -1; // whose offsets are drawn
  draft: Selection | null = null; // while dragging
  cursor: number | null = null; // seconds under the pointer
  private asked = 0;
  private settling = 0;
  private hurry = false;
  private readonly head = byId<HTMLCanvasElement>("overview");
  private readonly top: Sheet;
  private readonly main: Sheet;
  readonly scroll = byId("scroll");
  readonly stage = byId("stage");
  readonly pinStage = byId("pinned");
  private overview: { key: string; image: ImageData } | null = null;

  constructor(readonly job: Job, readonly store: Store, readonly axis: TimeAxis, readonly onToggle: (row: Row) => void, readonly onPin: (row: Row) => void) {
    this.top = { canvas: this.pinStage.querySelector("canvas")!, labels: this.pinStage.querySelector(".labels")!, nodes: new Map() };
    this.main = { canvas: this.stage.querySelector("canvas")!, labels: this.stage.querySelector(".labels")!, nodes: new Map() };
    this.scroll.addEventListener("scroll", () => this.ask());
    new ResizeObserver(() => { this.arrange(); this.ask(); }).observe(byId("tracks"));
  }

  get left(): number { return byId("tracks").clientWidth < 600 ? 96 : 176; }
  get width(): number { return Math.max(50, this.scroll.clientWidth - this.left); }
  get narrow(): boolean { return window.matchMedia("(max-width: 899px)").matches; }

  // Which rows there are, and how tall.
  arrange(): void {
    const { job, store: { view } } = this, charts = job.data.only ? chartsOf(job).filter((one) => one.id === only(job.data.only!)).map((one) => ({ ...one, open: true, height: 2.5 * one.height })) : chartsOf(job);
    const alone = job.data.only && only(job.data.only) !== "ranks";
    const room = this.narrow ? 420 : Math.max(200, this.scroll.clientHeight - 4);
    const rows = buildRows(job, view, job.data.only === "timeline" || job.data.only === "heat" ? [] : charts, room).filter((row) => !alone || row.kind === "chart");
    const byKey = new Map(rows.map((row) => [row.key, row])), pins = view.pins.map((key) => byKey.get(key) ?? this.rowFor(key)).filter((row): row is Row => row !== null);
    this.pinned = new RowLayout(pins.map((row) => ({ ...row, height: Math.max(row.height, row.kind === "rank" ? 26 : 18) })));
    this.layout = new RowLayout(rows);
    this.pinStage.hidden = !pins.length;
    this.pinStage.style.height = `${this.pinned.height}px`;
    if (this.narrow) this.scroll.style.height = `${Math.min(1600, Math.max(120, this.layout.height))}px`; else this.scroll.style.height = "";
    byId("spacer").style.height = `${Math.max(this.layout.height, this.scroll.clientHeight)}px`;
    this.stage.style.height = `${this.scroll.clientHeight}px`;
  }

  // A pinned rank stays pinned where its host is closed.
  private rowFor(key: string): Row | null {
    const rank = key.match(/^rank:(-?\d+)$/);
    if (!rank || Number(rank[1]) >= this.job.ranks) return null;
    return { key, kind: "rank", label: this.job.rankName(Number(rank[1])), depth: 0, height: 18, expandable: true, open: false, ranks: [Number(rank[1])], process: -1, layer: -1, fn: "", chart: "" };
  }

  ask(): void {
    if (this.asked) return;
    this.asked = requestAnimationFrame(() => { this.asked = 0; this.draw(); });
  }

  // While the view moves, curves of many calls are stretched; they are computed once it rests.
  moving(): void {
    if (this.job.marks.count > BUSY) {
      this.hurry = true;
      clearTimeout(this.settling);
      this.settling = window.setTimeout(() => { this.hurry = false; this.ask(); }, 140);
    }
    this.ask();
  }

  draw(): void {
    if (!this.paint) return;
    this.drawHead();
    if (this.pinned.rows.length) this.drawSheet(this.top, this.pinned, 0, this.pinned.height);
    else { this.top.nodes.clear(); this.top.labels.replaceChildren(); }
    this.drawSheet(this.main, this.layout, this.scroll.scrollTop, this.scroll.clientHeight);
  }

  private fit(canvas: HTMLCanvasElement, width: number, height: number): Pen {
    const ratio = window.devicePixelRatio || 1, wide = Math.round(width * ratio), tall = Math.round(height * ratio);
    if (canvas.width !== wide || canvas.height !== tall) { canvas.width = wide; canvas.height = tall; canvas.style.width = `${width}px`; canvas.style.height = `${height}px`; }
    const context = canvas.getContext("2d")!;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    return canvasPen(context);
  }

  private drawHead(): void {
    const width = this.scroll.clientWidth, pen = this.fit(this.head, width, OVERVIEW + AXIS), { axis, left } = this;
    this.paintHead(pen);
    pen.fillStyle = colour("--shade");
    const from = left + (axis.low - axis.first) / (axis.last - axis.first) * this.width, to = left + (axis.high - axis.first) / (axis.last - axis.first) * this.width;
    pen.fillRect(left, 0, Math.max(0, from - left), OVERVIEW);
    pen.fillRect(to, 0, Math.max(0, left + this.width - to), OVERVIEW);
    pen.strokeStyle = colour("--ink");
    pen.strokeRect(from + 0.5, 0.5, Math.max(2, to - from - 1), OVERVIEW - 1);
    const select = this.draft ?? this.store.view.select;
    if (select) {
      pen.fillStyle = colour("--c1");
      const a = left + (select.low - axis.first) / (axis.last - axis.first) * this.width, b = left + (select.high - axis.first) / (axis.last - axis.first) * this.width;
      pen.fillRect(a, OVERVIEW - 4, Math.max(2, b - a), 3);
    }
    pen.font = FONT;
    pen.textAlign = "left";
    pen.fillStyle = colour("--dim");
    pen.fillText(this.job.data.explore || this.job.marks.count ? "whole run" : "", 8, 19);
  }

  private paintHead(pen: Pen): void {
    const { axis, left, job } = this, columns = 400, key = `${job.data.explore ? "" : job.version} ${this.paint!.colours.join()}`;
    if (job.marks.count && (!this.overview || (this.overview.key !== key && (!job.data.explore || axis.whole)))) {
      const layers = new Set(job.ioLayers()), rowOf = new Int32Array(job.ranks + 2).fill(0), grid: Grid = { low: axis.first, high: axis.last, width: columns, rows: 1, rowOf };
      const cells = rasterise(job, grid, layers, this.paint!.category, this.paint!.colours.length, null), most = largest(cells);
      this.overview = { key, image: imageOf(cells, grid, this.paint!.colours.length, this.paint!.colours, new Float32Array([most || 1]), rgb("--faded")) };
    }
    if (this.overview) drawImage(pen, this.overview.image, left, 2, this.width, OVERVIEW - 4);
    drawTimeAxis(pen, axis, left, this.width, OVERVIEW, 4);
  }

  private drawSheet(sheet: Sheet, layout: RowLayout, top: number, height: number): void {
    const pen = this.fit(sheet.canvas, this.scroll.clientWidth, height), [first, last] = layout.visible(top, top + height);
    this.paintRows(pen, layout, first, last, -top, height);
    this.placeLabels(sheet, layout, first, last, top);
  }

  private box(top: number): Box { return { left: this.left, width: this.width, top, low: this.axis.low, high: this.axis.high }; }

  private paintRows(pen: Pen, layout: RowLayout, first: number, last: number, shift: number, height: number): void {
    const { rows, tops } = layout, { job } = this;
    const names: TickName[] = [];
    pen.clipTo(this.left, 0, this.width, height);
    this.paintDensity(pen, layout, first, last, shift);
    for (let n = first; n < last; n += 1) {
      const row = rows[n], top = tops[n] + shift;
      if (row.kind === "chart" && row.open) drawChart(pen, row.chart, this.box(top), { job, log: this.store.view.log, file: this.file, hurry: this.hurry, height: row.height, names });
      if (row.kind === "layer" || row.kind === "function") drawLanes(pen, job, lanesOf(job, row.ranks[0], row.process, row.layer, row.fn), this.paint!, this.lit, this.box(top));
      if (this.excess && row.kind === "rank" && row.ranks[0] === this.excess.rank) this.hatch(pen, top, row.height);
    }
    this.paintSelection(pen, layout, first, last, shift, height);
    pen.unclip();
    paintTickNames(pen, names, this.left);
    this.paintThinNames(pen, layout, first, last, shift);
    for (let n = first; n < last; n += 1) {
      if (rows[n].height < 12) continue;
      pen.fillStyle = colour("--line");
      pen.fillRect(0, tops[n + 1] + shift - 1, this.left + this.width, 0.5);
    }
  }

  // Rows without lanes of their own: the busier their ranks, the fuller the colour.
  private paintDensity(pen: Pen, layout: RowLayout, first: number, last: number, shift: number): void {
    const { job, paint } = this, step = job.data.explore ? job.rankStep : 1, rowOf = new Int32Array(job.ranks + 2).fill(-1), places: [number, number][] = [], share: number[] = [];
    for (let n = first; n < last; n += 1) {
      const row = layout.rows[n];
      if (row.kind !== "rank" && ((row.kind !== "host" && row.kind !== "group") || row.open)) continue;
      const base = row.ranks.length === 1 ? baseOf(row.ranks[0], step) : -2, shared = base > -2 ? rowOf[base + 1] : -1;
      const index = shared >= 0 && row.kind === "rank" && layout.rows[places.find(([, k]) => k === shared)?.[0] ?? n].kind === "rank" ? shared : share.push(base > -2 ? Math.min(step, job.ranks) : row.ranks.length) - 1;
      if (index !== shared) for (const rank of row.ranks) rowOf[baseOf(rank, step) + 1] = index;
      places.push([n, index]);
    }
    if (places.length) this.paintGrid(pen, { low: this.axis.low, high: this.axis.high, width: Math.round(this.width), rows: share.length, rowOf }, share, places.map(([n, index]) => ({ index, top: layout.tops[n] + shift, height: layout.rows[n].height })), paint!, -1);
    for (let n = first; n < last; n += 1) {
      const row = layout.rows[n];
      if (row.kind !== "thread") continue;
      const only = new Int32Array(job.ranks + 2).fill(-1);
      only[row.ranks[0] + 1] = 0;
      this.paintGrid(pen, { low: this.axis.low, high: this.axis.high, width: Math.round(this.width), rows: 1, rowOf: only }, [1], [{ index: 0, top: layout.tops[n] + shift, height: row.height }], paint!, row.process);
    }
  }

  private paintGrid(pen: Pen, grid: Grid, share: number[], places: { index: number; top: number; height: number }[], paint: Paint, process: number): void {
    const { job } = this, layers = new Set(job.ioLayers().length ? job.ioLayers() : job.layersPresent());
    let image: ImageData;
    if (this.store.view.colour === "bytes" || job.bins) {
      const sums = spread(job, grid.low, grid.high, grid.width, grid.rows, (from) => grid.rowOf[job.marks.rank[from] + 1] ?? -1, movedBytes(job, countedOf(job)));
      for (let row = 0; row < grid.rows; row += 1) for (let p = row * grid.width; p < (row + 1) * grid.width; p += 1) sums[p] /= share[row];
      image = heatImage(sums, grid.width, grid.rows, largest(sums) || 1);
    } else {
      const kinds = paint.colours.length, cells = rasterise(job, grid, layers, paint.category, kinds, this.lit, process);
      image = imageOf(cells, grid, kinds, paint.colours, Float32Array.from(share), rgb("--faded"));
    }
    rasterCanvas ??= document.createElement("canvas");
    rasterCanvas.width = image.width; rasterCanvas.height = image.height;
    rasterCanvas.getContext("2d")!.putImageData(image, 0, 0);
    pen.imageSmoothingEnabled = false;
    for (const { index, top, height } of places) pen.drawImage(rasterCanvas, 0, index, grid.width, 1, this.left, top, this.width, height >= 6 ? height - 2 : height);
  }

  // Excess time of a slow rank over its peer.
  private hatch(pen: Pen, top: number, height: number): void {
    const { axis, left, width, excess } = this, from = left + axis.across(excess!.from, width), to = left + axis.across(excess!.to, width);
    if (to <= from) return;
    pen.clipTo(from, top, to - from, height);
    pen.strokeStyle = colour("--ink");
    pen.lineWidth = 1.4;
    pen.beginPath();
    for (let x = from - height; x < to; x += HATCH) { pen.moveTo(x, top + height); pen.lineTo(x + height, top); }
    pen.stroke();
    pen.unclip();
    pen.strokeRect(from, top + 0.5, to - from, height - 2);
  }

  private paintSelection(pen: Pen, layout: RowLayout, first: number, last: number, shift: number, height: number): void {
    const select = this.draft ?? this.store.view.select, { axis, left, width } = this;
    if (select) {
      const from = left + axis.across(select.low, width), to = left + axis.across(select.high, width), chosen = inRanks(select.ranks);
      pen.fillStyle = colour("--select");
      for (let n = first; n < last; n += 1) {
        const row = layout.rows[n];
        if (!select.ranks || (!isOpenBlock(row) && row.ranks.some(chosen))) pen.fillRect(from, layout.tops[n] + shift, Math.max(1, to - from), row.height);
      }
      pen.fillStyle = colour("--c1");
      pen.fillRect(from, 0, 1, height);
      pen.fillRect(to, 0, 1, height);
    }
    const call = this.pinnedCall;
    if (call >= 0) {
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
    if (this.cursor !== null) { pen.fillStyle = colour("--cursor"); pen.fillRect(left + axis.across(this.cursor, width), 0, 1, height); }
  }

  pinnedCall = -1;

  private paintThinNames(pen: Pen, layout: RowLayout, first: number, last: number, shift: number): void {
    pen.font = FONT;
    pen.textAlign = "right";
    let free = -Infinity;
    for (let n = first; n < last; n += 1) {
      const row = layout.rows[n], y = layout.tops[n] + shift;
      if (hasName(row)) { free = y + row.height - 1; continue; }
      if (y < free) continue;
      pen.fillStyle = colour("--dim");
      pen.fillText(row.label, this.left - 8, y + 9);
      pen.fillRect(this.left - 5, y, 4, 1);
      free = y + 15;
    }
  }

  // Names of the visible rows are elements, so that keys and screen readers reach them.
  private placeLabels(sheet: Sheet, layout: RowLayout, first: number, last: number, top: number): void {
    const wanted = new Set<string>();
    for (let n = first; n < last; n += 1) {
      const row = layout.rows[n];
      if (!hasName(row)) continue;
      wanted.add(row.key);
      const stamp = `${row.label}|${row.open}|${row.depth}|${this.store.view.pins.includes(row.key)}`;
      let node = sheet.nodes.get(row.key);
      if (!node || node.dataset["stamp"] !== stamp) {
        const made = this.label(row, stamp), focused = node?.contains(document.activeElement) ? (document.activeElement as HTMLElement).className : null;
        if (node) node.replaceWith(made); else sheet.labels.append(made);
        if (focused !== null) made.querySelector<HTMLElement>(`.${focused}`)?.focus();
        sheet.nodes.set(row.key, made);
        node = made;
      }
      node.style.transform = `translateY(${layout.tops[n] - top}px)`;
      node.style.height = `${row.height}px`;
      node.style.width = `${this.left}px`;
    }
    for (const [key, node] of sheet.nodes) if (!wanted.has(key)) { node.remove(); sheet.nodes.delete(key); }
  }

  private label(row: Row, stamp: string): HTMLElement {
    const pinned = this.store.view.pins.includes(row.key), title = rowTitle(this.job, row);
    const name = row.expandable
      ? el("button", { type: "button", class: "name", "aria-expanded": String(row.open), title }, `${row.open ? "▾" : "▸"} ${row.label}`)
      : el("span", { class: "name", title }, row.label);
    if (row.expandable) name.addEventListener("click", () => this.onToggle(row));
    const made = el("div", { class: `label ${row.kind}` }, name);
    made.dataset["stamp"] = stamp;
    made.dataset["row"] = row.key;
    made.style.paddingLeft = `${4 + 10 * row.depth}px`;
    if (row.kind === "rank" || row.kind === "chart" || row.kind === "host") {
      const pin = el("button", { type: "button", class: "pin", "aria-pressed": String(pinned), title: pinned ? "Unpin" : "Keep on top", "aria-label": `${pinned ? "Unpin" : "Pin"} ${row.label}` }, pinned ? "★" : "☆");
      pin.addEventListener("click", () => this.onPin(row));
      made.prepend(pin);
    }
    return made;
  }

  // What is at a point of the stage or of the pinned rows.
  hit(x: number, y: number, pinned: boolean): Hit {
    const layout = pinned ? this.pinned : this.layout, place = y + (pinned ? 0 : this.scroll.scrollTop), n = layout.indexAt(place), row = layout.rows[n] ?? null;
    const time = this.axis.timeAt(x - this.left, this.width), inside = place - (layout.tops[n] ?? 0), hit = { row, time, mark: -1, y: inside, top: layout.tops[n] ?? 0 };
    if (!row || x < this.left) return { ...hit, row: x < this.left ? row : null };
    const slack = 4 * this.axis.span / this.width;
    if (row.kind === "layer" || row.kind === "function") return { ...hit, mark: callInLanes(this.job, lanesOf(this.job, row.ranks[0], row.process, row.layer, row.fn), time, Math.floor((inside - 2) / LANE), slack) };
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
  ranksBetween(from: number, to: number): number[] {
    const [first, last] = this.layout.visible(Math.min(from, to), Math.max(from, to) + 1), ranks = new Set<number>();
    for (let n = first; n < last; n += 1) {
      const row = this.layout.rows[n];
      if (!isOpenBlock(row)) for (const rank of row.ranks) ranks.add(rank);
    }
    return ranks.size >= this.job.ranks ? [] : [...ranks];
  }

  visibleRanks(): [number, number] | null {
    const [first, last] = this.layout.visible(this.scroll.scrollTop, this.scroll.scrollTop + this.scroll.clientHeight);
    let low = Infinity, high = -Infinity;
    for (const row of [...this.layout.rows.slice(first, last), ...this.pinned.rows]) for (const rank of row.ranks) { low = Math.min(low, rank); high = Math.max(high, rank); }
    return low <= high ? [Math.max(0, low), high] : null;
  }

  reveal(key: string): void {
    const n = this.layout.rows.findIndex((row) => row.key === key);
    if (n < 0) return;
    const top = this.layout.tops[n], height = this.layout.rows[n].height, { scrollTop, clientHeight } = this.scroll;
    if (top >= scrollTop && top + height <= scrollTop + clientHeight) return;
    this.scroll.scrollTo({ top: Math.max(0, top - clientHeight / 3), behavior: reducedMotion() ? "auto" : "instant" });
  }

  // Everything as it is seen, drawn once more: for files.
  export(pen: Pen): { width: number; height: number } {
    const height = Math.min(this.layout.height, Math.max(this.scroll.clientHeight, 60)), top = OVERVIEW + AXIS + this.pinned.height;
    this.paintHead(pen);
    const shifted = this.pinned.rows.length ? new RowLayout([...this.pinned.rows, ...this.layout.rows]) : this.layout, [first, last] = shifted.visible(0, this.pinned.height + height);
    this.paintRows(pen, shifted, first, last, OVERVIEW + AXIS, top + height);
    pen.font = FONT;
    pen.textAlign = "left";
    for (let n = first; n < last; n += 1) {
      if (!hasName(shifted.rows[n])) continue;
      pen.fillStyle = colour("--ink");
      pen.fillText(shifted.rows[n].label, 4 + 10 * shifted.rows[n].depth, OVERVIEW + AXIS + shifted.tops[n] + 12);
    }
    return { width: this.left + this.width, height: top + height };
  }
}

function laneOf(job: Job, row: Row, call: number): number {
  const lanes = lanesOf(job, row.ranks[0], row.process, row.layer, row.fn), place = lanes.rows.indexOf(call);
  return place < 0 ? -1 : lanes.lane[place];
}

const isOpenBlock = (row: Row): boolean => row.open && (row.kind === "host" || row.kind === "group");
let rasterCanvas: HTMLCanvasElement | null = null;
const baseOf = (rank: number, step: number): number => rank < 0 ? rank : Math.floor(rank / step) * step;
export const only = (name: string): string => ({ timeline: "ranks", heat: "ranks", space: "offsets" })[name] ?? name;
