// The track list: an overview, a time axis, pinned rows, and rows of which only the visible ones exist.
import { drawTimeAxis, type TimeAxis } from "./axis.ts";
import { colour, FONT } from "./colours.ts";
import { clearNames, paintTickNames, type Box, type NamedPlace, type TickName } from "./curves.ts";
import { byId, el, narrowScreen, reducedMotion } from "./dom.ts";
import { canvasPen, type Pen } from "./pen.ts";
import type { Selection, ShellView, Store } from "./state.ts";
import type { Facts } from "./tooltip.ts";

export const OVERVIEW = 30, AXIS = 22, ROW = 18;
const LABELLED = 12; // pixels from which a row has room for its name
const TWO_LINES = 40; // pixels of a row whose name may take two lines
const AHEAD = 0.5; // of the view: what is painted on either side while it moves
const STRETCHED = 2; // so much wider or narrower than painted, while the view moves
const FRAMED = 8; // pixels of rows that have room for lines above and below
const REST = 140; // milliseconds after which a movement has ended
const PHONE_ROOM = 420, PHONE_TALLEST = 1600; // pixels of the list where the page itself scrolls

export interface TrackRow { key: string; kind: string; label: string; depth: number; height: number; expandable: boolean; open: boolean }
export interface Hit<R> { row: R | null; time: number; y: number; top: number; mark: number } // y: within the row; mark: what a page has there, or -1
interface Sheet { canvas: HTMLCanvasElement; labels: HTMLElement; nodes: Map<string, HTMLElement>; picture: HTMLCanvasElement; shown: Stretch | null }
interface Stretch { low: number; high: number; width: number } // of time, over so many pixels

export const hasName = (row: TrackRow): boolean => row.height >= LABELLED;
export const isOpen = (view: ShellView, key: string, standard: boolean): boolean => view.open.includes(key) !== standard;

export class RowLayout<R extends TrackRow> {
  readonly tops: Float64Array;
  readonly height: number;

  constructor(readonly rows: R[]) {
    this.tops = new Float64Array(rows.length + 1);
    for (let n = 0; n < rows.length; n += 1) this.tops[n + 1] = this.tops[n] + rows[n].height;
    this.height = this.tops[rows.length];
  }

  // The first row that reaches below `y`.
  indexAt(y: number): number {
    let from = 0, to = this.rows.length;
    while (from < to) { const middle = (from + to) >> 1; if (this.tops[middle + 1] <= y) from = middle + 1; else to = middle; }
    return from;
  }

  visible(top: number, bottom: number): [number, number] {
    const first = this.indexAt(top);
    let last = first;
    while (last < this.rows.length && this.tops[last] < bottom) last += 1;
    return [first, last];
  }
}

export function fitCanvas(canvas: HTMLCanvasElement, width: number, height: number): Pen {
  const ratio = window.devicePixelRatio || 1, wide = Math.round(width * ratio), tall = Math.round(height * ratio);
  if (canvas.width !== wide || canvas.height !== tall) { canvas.width = wide; canvas.height = tall; canvas.style.width = `${width}px`; canvas.style.height = `${height}px`; }
  const context = canvas.getContext("2d")!;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return canvasPen(context);
}

// What a page says about its rows is in the methods below; `Tracks` is the one for rows that draw themselves.
export abstract class TrackPane<R extends TrackRow, V extends ShellView = ShellView> {
  layout = new RowLayout<R>([]);
  pinned = new RowLayout<R>([]);
  draft: Selection | null = null; // while dragging
  cursor: number | null = null; // seconds under the pointer
  ready = true;
  onToggle: (row: R) => void = () => undefined;
  onPin: (row: R) => void = () => undefined;
  private asked = 0;
  private resting = 0; // a movement has not ended
  private changed = true; // more than the time in view
  private painting: Stretch | null = null; // what is painted where it is not the view itself
  private readonly head = byId<HTMLCanvasElement>("overview");
  readonly scroll = byId("scroll");
  readonly stage = byId("stage");
  readonly pinStage = byId("pinned");
  private readonly top = sheetOf(this.pinStage);
  private readonly main = sheetOf(this.stage);

  constructor(readonly store: Store<V>, readonly axis: TimeAxis, readonly wholeName: string) {
    this.scroll.addEventListener("scroll", () => this.ask());
    new ResizeObserver(() => { this.arrange(); this.ask(); }).observe(byId("tracks"));
  }

  protected abstract rowsFor(room: number): R[];
  protected abstract paintContent(pen: Pen, layout: RowLayout<R>, first: number, last: number, shift: number, names: TickName[]): void;
  protected paintOverview(_pen: Pen): void { /* nothing but the window */ }
  protected selects(_row: R, _select: Selection): boolean { return true; }
  protected paintOver(_pen: Pen, _layout: RowLayout<R>, _first: number, _last: number, _shift: number): void { /* nothing above the rows */ }
  protected rowFor(_key: string): R | null { return null; } // of a pinned row that the list does not have
  protected titleOf(row: R): string { return row.label; }
  protected canPin(_row: R): boolean { return true; }
  ranksBetween(_from: number, _to: number, _pinned: boolean): string { return ""; }

  // The time in view has changed: what is painted is moved and stretched; once the view rests, it is painted anew.
  moving(): void {
    clearTimeout(this.resting);
    this.resting = window.setTimeout(() => { this.resting = 0; this.askAbove(); }, REST);
    this.askAbove();
  }

  get left(): number { return byId("tracks").clientWidth < 600 ? 108 : 176; }
  get width(): number { return Math.max(50, this.scroll.clientWidth - this.left); }
  protected box(top: number): Box { const { low, high, width } = this.painting ?? { ...this.view, width: this.width }; return { left: this.left, width, top, low, high }; }
  private get view(): { low: number; high: number } { const { low, high } = this.axis; return { low, high }; }

  // Which rows there are, and how tall.
  arrange(): void {
    const rows = this.rowsFor(narrowScreen() ? PHONE_ROOM : Math.max(200, this.scroll.clientHeight - 4));
    const byKey = new Map(rows.map((row) => [row.key, row])), pins = this.store.view.pins.map((key) => byKey.get(key) ?? this.rowFor(key)).filter((row): row is R => row !== null);
    this.pinned = new RowLayout(pins.map((row) => ({ ...row, height: Math.max(row.height, row.kind === "rank" ? 26 : ROW) })));
    this.layout = new RowLayout(rows);
    this.pinStage.hidden = !pins.length;
    this.pinStage.style.height = `${this.pinned.height}px`;
    this.scroll.style.height = narrowScreen() ? `${Math.min(PHONE_TALLEST, Math.max(120, this.layout.height))}px` : "";
    byId("spacer").style.height = `${Math.max(this.layout.height, this.scroll.clientHeight)}px`;
    this.stage.style.height = `${this.scroll.clientHeight}px`;
  }

  ask(): void { this.changed = true; this.askAbove(); }

  // Asks for a frame in which only the view, the cursor or the selection differ.
  askAbove(): void {
    if (!this.asked) this.asked = requestAnimationFrame(() => { this.asked = 0; this.draw(); });
  }

  draw(): void {
    if (!this.ready) return;
    if (this.changed) this.main.shown = this.top.shown = null;
    this.drawHead();
    if (this.pinned.rows.length) this.drawSheet(this.top, this.pinned, 0, this.pinned.height);
    else { this.top.nodes.clear(); this.top.labels.replaceChildren(); }
    this.drawSheet(this.main, this.layout, this.scroll.scrollTop, this.scroll.clientHeight);
    this.changed = false;
  }

  private drawHead(): void {
    const pen = fitCanvas(this.head, this.scroll.clientWidth, OVERVIEW + AXIS), { axis, left, width } = this, whole = axis.last - axis.first, at = (time: number): number => left + (time - axis.first) / whole * width;
    this.paintHead(pen);
    pen.fillStyle = colour("--shade");
    const from = at(axis.low), to = at(axis.high);
    pen.fillRect(left, 0, Math.max(0, from - left), OVERVIEW);
    pen.fillRect(to, 0, Math.max(0, left + width - to), OVERVIEW);
    pen.strokeStyle = colour("--ink");
    pen.strokeRect(from + 0.5, 0.5, Math.max(2, to - from - 1), OVERVIEW - 1);
    const select = this.draft ?? this.store.view.select;
    if (select) { pen.fillStyle = colour("--c1"); pen.fillRect(at(select.low), OVERVIEW - 4, Math.max(2, at(select.high) - at(select.low)), 3); }
    pen.font = FONT;
    pen.textAlign = "left";
    pen.fillStyle = colour("--dim");
    pen.fillText(this.wholeName, 8, 19);
  }

  private paintHead(pen: Pen): void {
    this.paintOverview(pen);
    drawTimeAxis(pen, this.axis, this.left, this.width, OVERVIEW, 4);
  }

  private drawSheet(sheet: Sheet, layout: RowLayout<R>, top: number, height: number): void {
    const [first, last] = layout.visible(top, top + height), { left, width } = this, pen = fitCanvas(sheet.canvas, left + width, height);
    if (!sheet.shown || !this.serves(sheet.shown)) this.paintPicture(sheet, layout, first, last, -top, height);
    pen.clipTo(left, 0, width, height);
    this.paintSelection(pen, layout, first, last, -top); // beneath: calls keep the colours of their legend
    pen.unclip();
    if (sheet.picture.height) this.putPicture(pen, sheet, height);
    pen.clipTo(left, 0, width, height);
    this.paintAbove(pen, layout, first, last, -top, height);
    pen.unclip();
    if (this.changed) this.placeLabels(sheet, layout, first, last, top);
  }

  // Whether what is painted can be moved or stretched to the view.
  private serves({ low, high, width }: Stretch): boolean {
    const { axis } = this, stretched = (high - low) / axis.span * this.width / width;
    if (!this.resting) return low === axis.low && high === axis.high;
    return low <= axis.low && high >= axis.high && stretched <= STRETCHED && stretched >= 1 / STRETCHED;
  }

  private paintPicture(sheet: Sheet, layout: RowLayout<R>, first: number, last: number, shift: number, height: number): void {
    const { axis } = this, margin = this.resting ? AHEAD * axis.span : 0, low = Math.max(axis.first, axis.low - margin), high = Math.min(axis.last, axis.high + margin);
    sheet.shown = this.painting = { low, high, width: margin ? Math.round(this.width * (high - low) / axis.span) : this.width };
    this.paintRows(fitCanvas(sheet.picture, this.left + sheet.shown.width, height), layout, first, last, shift, height);
    this.painting = null;
  }

  // Names at the left stand still; the rest of the picture moves with the view.
  private putPicture(pen: Pen, { picture, shown }: Sheet, height: number): void {
    const { axis, left, width } = this, ratio = window.devicePixelRatio || 1, scale = shown!.width / (shown!.high - shown!.low), from = (axis.low - shown!.low) * scale, still = Math.abs(axis.span * scale - width) < 0.5;
    pen.imageSmoothingEnabled = !still;
    pen.drawImage(picture, 0, 0, left * ratio, picture.height, 0, 0, left, height);
    pen.drawImage(picture, (left + (still ? Math.round(from) : from)) * ratio, 0, (still ? width : axis.span * scale) * ratio, picture.height, left, 0, width, height);
  }

  // What does not depend on the view but for where it is.
  private paintRows(pen: Pen, layout: RowLayout<R>, first: number, last: number, shift: number, height: number): void {
    const { rows, tops } = layout, names: TickName[] = [], { left, width } = this.box(0);
    pen.clipTo(left, 0, width, height);
    this.paintContent(pen, layout, first, last, shift, names);
    pen.unclip();
    pen.font = FONT;
    paintTickNames(pen, clearNames(names, (y) => this.nameOf(pen, layout, y - shift, shift), (text) => pen.measureText(text).width, left), left);
    this.paintThinNames(pen, layout, first, last, shift);
    for (let n = first; n < last; n += 1) {
      if (!hasName(rows[n])) continue;
      pen.fillStyle = colour("--line");
      pen.fillRect(0, tops[n + 1] + shift - 1, left + width, 0.5);
    }
  }

  // Where the name of a row is: it takes two lines where a chart is tall and the screen narrow.
  private nameOf(pen: Pen, layout: RowLayout<R>, y: number, shift: number): NamedPlace {
    const n = Math.max(0, Math.min(layout.rows.length - 1, layout.indexAt(y))), row = layout.rows[n], top = layout.tops[n] + shift;
    const wide = 4 + 10 * row.depth + (this.canPin(row) && !(narrowScreen() && row.kind === "chart") ? 18 : 0) + 1.1 * pen.measureText(`${row.expandable ? "▾ " : ""}${row.label}`).width + 6;
    const two = narrowScreen() && row.kind === "chart" && row.height >= TWO_LINES && wide > this.left;
    return { top, bottom: top + row.height, until: Math.min(this.left, wide), below: top + (two ? 26 : 15) };
  }

  private paintAbove(pen: Pen, layout: RowLayout<R>, first: number, last: number, shift: number, height: number): void {
    this.paintEdges(pen, layout, first, last, shift, height);
    this.paintOver(pen, layout, first, last, shift);
    if (this.cursor !== null) { pen.fillStyle = colour("--cursor"); pen.fillRect(this.left + this.axis.across(this.cursor, this.width), 0, 1, height); }
  }

  private get selection(): { select: Selection; from: number; to: number } | null {
    const select = this.draft ?? this.store.view.select, { axis, left, width } = this;
    return select && { select, from: left + axis.across(select.low, width), to: left + axis.across(select.high, width) };
  }

  private paintSelection(pen: Pen, layout: RowLayout<R>, first: number, last: number, shift: number): void {
    if (!this.selection) return;
    const { select, from, to } = this.selection;
    pen.fillStyle = colour("--select");
    for (let n = first; n < last; n += 1) if (!select.ranks || this.selects(layout.rows[n], select)) pen.fillRect(from, layout.tops[n] + shift, Math.max(1, to - from), layout.rows[n].height);
  }

  // The edges of the selection lie above: a row that is full of calls hides what is beneath.
  private paintEdges(pen: Pen, layout: RowLayout<R>, first: number, last: number, shift: number, height: number): void {
    if (!this.selection) return;
    const { select, from, to } = this.selection;
    pen.fillStyle = colour("--c1");
    pen.fillRect(from, 0, 1, height);
    pen.fillRect(to, 0, 1, height);
    const chosen = (n: number): boolean => n < last && this.selects(layout.rows[n], select);
    for (let n = first, begin = -1; select.ranks && n <= last; n += 1) {
      if (chosen(n)) { if (begin < 0) begin = n; continue; }
      if (begin < 0) continue;
      const top = layout.tops[begin] + shift, tall = layout.tops[n] + shift - top, wide = Math.max(1, to - from);
      if (tall < FRAMED) { pen.fillRect(from - 6, top, 6, tall); pen.fillRect(to + 1, top, 6, tall); } // beside it: lines would cover so thin a row
      else { pen.fillRect(from, top, wide, 1); pen.fillRect(from, top + tall - 1, wide, 1); }
      begin = -1;
    }
  }

  private paintThinNames(pen: Pen, layout: RowLayout<R>, first: number, last: number, shift: number): void {
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
  private placeLabels(sheet: Sheet, layout: RowLayout<R>, first: number, last: number, top: number): void {
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

  private label(row: R, stamp: string): HTMLElement {
    const pinned = this.store.view.pins.includes(row.key), title = this.titleOf(row);
    const name = row.expandable
      ? el("button", { type: "button", class: "name", "aria-expanded": String(row.open), title }, `${row.open ? "▾" : "▸"} ${row.label}`)
      : el("span", { class: "name", title }, row.label);
    if (row.expandable) name.addEventListener("click", () => this.onToggle(row));
    const made = el("div", { class: `label ${row.kind}${row.height < TWO_LINES ? " low" : ""}` }, name);
    made.dataset["stamp"] = stamp;
    made.dataset["row"] = row.key;
    made.style.paddingLeft = `${4 + 10 * row.depth}px`;
    if (this.canPin(row)) {
      const pin = el("button", { type: "button", class: "pin", "aria-pressed": String(pinned), title: pinned ? "Unpin" : "Keep on top", "aria-label": `${pinned ? "Unpin" : "Pin"} ${row.label}` }, pinned ? "★" : "☆");
      pin.addEventListener("click", () => this.onPin(row));
      made.prepend(pin);
    }
    return made;
  }

  // What is at a point of the stage or of the pinned rows.
  hit(x: number, y: number, pinned: boolean): Hit<R> {
    const layout = pinned ? this.pinned : this.layout, place = y + (pinned ? 0 : this.scroll.scrollTop), n = layout.indexAt(place), top = layout.tops[n] ?? 0;
    return { row: layout.rows[n] ?? null, time: this.axis.timeAt(x - this.left, this.width), y: place - top, top, mark: -1 };
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
    const all = this.pinned.rows.length ? new RowLayout([...this.pinned.rows, ...this.layout.rows]) : this.layout, [first, last] = all.visible(0, this.pinned.height + height);
    pen.clipTo(this.left, 0, this.width, top + height);
    this.paintSelection(pen, all, first, last, OVERVIEW + AXIS);
    pen.unclip();
    this.paintRows(pen, all, first, last, OVERVIEW + AXIS, top + height);
    pen.clipTo(this.left, 0, this.width, top + height);
    this.paintAbove(pen, all, first, last, OVERVIEW + AXIS, top + height);
    pen.unclip();
    pen.font = FONT;
    pen.textAlign = "left";
    for (let n = first; n < last; n += 1) {
      if (!hasName(all.rows[n])) continue;
      pen.fillStyle = colour("--ink");
      pen.fillText(all.rows[n].label, 4 + 10 * all.rows[n].depth, OVERVIEW + AXIS + all.tops[n] + 12);
    }
    return { width: this.left + this.width, height: top + height };
  }
}

function sheetOf(place: HTMLElement): Sheet { return { canvas: place.querySelector("canvas")!, labels: place.querySelector(".labels")!, nodes: new Map(), picture: document.createElement("canvas"), shown: null }; }

export interface Tip { title: string; facts: Facts }
// A row that draws itself into a box; where the pointer is, it may say something, and take a click.
export interface Track extends TrackRow {
  draw: (pen: Pen, box: Box, height: number, names: TickName[]) => void;
  tip?: (time: number, y: number, height: number) => Tip | null;
  click?: (time: number, y: number, height: number) => void;
  title?: string;
}

// A track that is drawn while it is open and folds to its name. Give what differs from the standard.
export function track(key: string, label: string, height: number, draw: Track["draw"], more: Partial<Track> = {}): Track {
  return { key, label, height, draw, kind: "chart", depth: 0, expandable: false, open: true, ...more };
}

// The track list of pages whose rows draw themselves.
export class Tracks<V extends ShellView = ShellView> extends TrackPane<Track, V> {
  private list: (room: number) => Track[] = () => [];
  overview: ((pen: Pen, box: Box, height: number) => void) | null = null;

  setTracks(list: Track[] | ((room: number) => Track[])): void {
    this.list = typeof list === "function" ? list : () => list;
    this.arrange();
    this.ask();
  }

  protected rowsFor(room: number): Track[] {
    return this.list(room).map((row) => {
      const open = row.expandable ? isOpen(this.store.view, row.key, row.open) : true;
      return { ...row, open, height: open ? row.height : ROW };
    });
  }

  protected paintOverview(pen: Pen): void {
    this.overview?.(pen, { left: this.left, width: this.width, top: 2, low: this.axis.first, high: this.axis.last }, OVERVIEW - 4);
  }

  protected titleOf(row: Track): string { return row.title ?? row.label; }

  protected paintContent(pen: Pen, layout: RowLayout<Track>, first: number, last: number, shift: number, names: TickName[]): void {
    for (let n = first; n < last; n += 1) if (layout.rows[n].open) layout.rows[n].draw(pen, this.box(layout.tops[n] + shift), layout.rows[n].height, names);
  }
}
