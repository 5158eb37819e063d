// The shell of every page: verdict on top, list at the left, tracks in the centre, details below, and one link for all of it.
import type { TimeAxis } from "./axis.ts";
import { forgetColours, isDark } from "./colours.ts";
import { button, byId, el, narrowScreen } from "./dom.ts";
import { save } from "./download.ts";
import { bindGestures } from "./gestures.ts";
import { commandFor, openPalette, type Command } from "./palette.ts";
import { shortPaths } from "./paths.ts";
import { canvasPen, SvgPen } from "./pen.ts";
import { colour } from "./colours.ts";
import type { Plot } from "./plot.ts";
import { bindSearch, type Match } from "./search.ts";
import { Link, SHELL_VIEW, Store, type Selection, type ShellView } from "./state.ts";
import { Tabs, type Tab } from "./tabs.ts";
import { hideTip, showTip } from "./tooltip.ts";
import { Tracks, type Hit, type Track, type TrackPane, type TrackRow } from "./tracks.ts";

export interface Top { subject: string; verdict: string; next?: string; warnings?: string[]; waits?: boolean } // waits: the page is shown with the first answer

export function fillTop({ subject, verdict, next = "", warnings = [], waits = false }: Top): void {
  for (const [id, text] of [["subject", subject], ["verdict", verdict], ["next-step", next]] as const) { byId(id).textContent = shortPaths(text); byId(id).title = text; }
  byId("warnings").replaceChildren(...warnings.map((text) => el("p", { class: "warning" }, text)));
  byId("warnings").hidden = !warnings.length;
  if (!waits) document.documentElement.dataset["filled"] = "";
}

// An entry of the list at the left; `level` large, medium or small is its colour by cost.
export function card(title: string, stake: string, body: (HTMLElement | null)[], { level = "", open = false, id = "", kind = "" } = {}): HTMLDetailsElement {
  return el("details", { class: `card ${kind} ${level}`, id: id || undefined, open }, el("summary", {}, el("span", { class: "what", title }, shortPaths(title)), stake ? el("span", { class: "stake" }, stake) : null), el("div", { class: "body" }, ...body));
}

export const factList = (facts: [string, string][], wide = false): HTMLElement =>
  el("dl", { class: wide ? "facts wide" : "facts" }, ...facts.flatMap(([name, text]) => [el("dt", {}, name), el("dd", { title: text }, text)]));

export function swatch(name: string, tone: string): HTMLElement {
  const item = el("span", { class: "swatch" }, name);
  item.style.setProperty("--tone", tone.startsWith("--") ? `var(${tone})` : tone);
  return item;
}

export const onlyMoves = (changed: Set<string>): boolean => [...changed].every((key) => key === "low" || key === "high");

// What all pages do alike. A page of its own tracks extends this; `openPage` below is enough for most.
export abstract class Shell<V extends ShellView, R extends TrackRow> {
  readonly tabs: Tabs;
  commands: Command[] = [];
  protected moved = false; // the axis moved because the view was restored, not by hand

  constructor(readonly store: Store<V>, readonly axis: TimeAxis, readonly pane: TrackPane<R, V>) {
    this.tabs = new Tabs(byId("panel"), (tab) => this.change({ tab }));
    pane.onToggle = (row) => this.toggle(row.key);
    pane.onPin = (row) => this.pin(row.key);
  }

  protected abstract click(hit: Hit<R>): void;
  protected abstract hover(hit: Hit<R>, x: number, y: number): void;
  protected abstract refresh(changed: Set<string>): void; // brings the page's own parts in step with what changed in the view
  protected select(select: Selection): void { this.change({ select }); }
  protected follow(): void { /* the time in view has changed */ }

  protected change(change: Partial<ShellView>, soon = false): void { this.store.set(change as Partial<V>, soon); }
  toggle(key: string): void { const { open } = this.store.view; this.change({ open: open.includes(key) ? open.filter((one) => one !== key) : [...open, key] }); }
  pin(key: string): void { const { pins } = this.store.view; this.change({ pins: pins.includes(key) ? pins.filter((one) => one !== key) : [...pins, key] }); }
  show(low: number, high: number): void {
    this.moved = true;
    this.axis.show(low, high);
    this.moved = false;
    const { top } = byId("tracks").getBoundingClientRect();
    if (narrowScreen() && (top < 0 || top > 0.6 * window.innerHeight)) requestAnimationFrame(() => byId("chips").parentElement!.scrollIntoView({ block: "start" })); // it was asked for from elsewhere on a long page
  }

  // Another whole of the time axis; what the link shows of it stays.
  setWhole(first: number, last: number): void {
    const { low, high } = this.store.view;
    this.moved = true;
    this.axis.setWhole(first, last);
    if (low !== null && high !== null) this.axis.show(low, high);
    this.moved = false;
  }

  protected bind(): void {
    const { store, axis, pane } = this;
    store.onChange((changed) => this.step(changed));
    axis.onChange(() => {
      if (!this.moved) this.change(axis.whole ? { low: null, high: null } : { low: axis.low, high: axis.high }, true);
      pane.moving();
      hideTip();
      this.follow();
    });
    bindGestures(pane, { click: (hit) => this.click(hit), hover: (hit, x, y) => { if (hit?.row) this.hover(hit, x, y); else hideTip(); }, select: (low, high, ranks) => this.select({ low, high, ranks }) });
    window.addEventListener("popstate", () => store.restore());
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.step(new Set(["theme"])));
    window.addEventListener("keydown", (event) => this.key(event));
    byId("reset").addEventListener("click", () => this.showAll());
    byId("keys").addEventListener("click", () => openPalette(this.commands));
    byId("to-panel").addEventListener("click", () => byId("panel").scrollIntoView({ block: "start" }));
    byId("theme").addEventListener("click", () => this.switchTheme());
  }

  private step(changed: Set<string>): void {
    const { store: { view }, pane, axis } = this;
    if (changed.has("theme")) { if (view.theme) document.documentElement.dataset["theme"] = view.theme; else delete document.documentElement.dataset["theme"]; forgetColours(); }
    if (changed.has("low") || changed.has("high")) { this.moved = true; if (view.low === null || view.high === null) axis.reset(); else axis.show(view.low, view.high); this.moved = false; }
    this.refresh(changed);
    if (onlyMoves(changed)) pane.askAbove(); else pane.ask();
  }

  showAll(): void {
    this.axis.reset();
    this.change({ low: null, high: null, select: null, pins: [] });
  }

  switchTheme(): void { this.change({ theme: isDark() ? "light" : "dark" }); }

  zoomTo(low: number, high: number): void {
    const margin = 0.1 * (high - low) || 1e-6;
    this.axis.show(low - margin, high + margin);
  }

  private key(event: KeyboardEvent): void {
    const target = event.target as HTMLElement;
    if (byId<HTMLDialogElement>("palette").open || target.matches("input:not([type=checkbox]), select, textarea")) return;
    const arrows = event.key.startsWith("Arrow") || event.key.startsWith("Page") || event.key === " " || event.key === "Enter";
    if (arrows && target !== document.body && !target.closest("#tracks")) return;
    if (event.key === "Enter" && target.matches("button, summary, a")) return;
    const command = commandFor(this.commands, event);
    if (!command) return;
    event.preventDefault();
    hideTip();
    command.run();
  }

  // Commands of all pages; `own` come between moving and the look.
  protected withCommon(own: Command[]): Command[] {
    const { axis, pane } = this, middle = (): number => (axis.low + axis.high) / 2, scroll = (by: number) => () => pane.scroll.scrollBy({ top: by });
    return [
      { title: "Zoom in", keys: ["w", "+", "="], run: () => axis.zoom(0.6, middle()) },
      { title: "Zoom out", keys: ["s", "-"], run: () => axis.zoom(1 / 0.6, middle()) },
      { title: "Move left", keys: ["a", "ArrowLeft"], run: () => axis.pan(-0.2) },
      { title: "Move right", keys: ["d", "ArrowRight"], run: () => axis.pan(0.2) },
      { title: "Scroll up", keys: ["ArrowUp", "PageUp"], run: scroll(-120) },
      { title: "Scroll down", keys: ["ArrowDown", "PageDown"], run: scroll(120) },
      { title: "Show all of the time", keys: ["0", "Home"], run: () => axis.reset() },
      ...own,
      { title: "Back", keys: ["Backspace", "u"], run: () => history.back() },
      { title: "Light or dark", keys: ["m"], run: () => this.switchTheme() },
      { title: "Save the tracks as PNG", keys: [], run: () => this.savePng() },
      { title: "Save the tracks as SVG", keys: [], run: () => this.saveSvg() },
      { title: "Commands and keys", keys: ["?", "Ctrl+k"], run: () => openPalette(this.commands) },
    ];
  }

  saveSvg(): void {
    const pen = new SvgPen(), { width, height } = this.pane.export(pen);
    save("tracks.svg", pen.document(width, height, colour("--ground")), "image/svg+xml");
  }

  savePng(): void {
    const { width, height } = this.pane.export(new SvgPen()), sheet = document.createElement("canvas"), context = sheet.getContext("2d")!;
    sheet.width = 2 * width; sheet.height = 2 * height;
    context.scale(2, 2);
    context.fillStyle = colour("--ground");
    context.fillRect(0, 0, width, height);
    this.pane.export(canvasPen(context));
    sheet.toBlob((blob) => { if (blob) save("tracks.png", blob, "image/png"); });
  }
}

export function chip(text: string, clear: (() => void) | null, ...more: HTMLElement[]): HTMLElement {
  return el("span", { class: "chip" }, el("span", { class: "text", title: text }, shortPaths(text)), ...more, clear ? button("✕", clear, { "aria-label": `Clear: ${text}` }) : null);
}

// Says that the first picture is there, as tests and figures of speed want to know.
export function markReady(then: () => void = () => undefined): void {
  requestAnimationFrame(() => requestAnimationFrame(() => { document.documentElement.dataset["ready"] = String(Math.round(performance.now())); then(); }));
}

// ---- A page that only gives its data ----

export interface PageParts<V extends ShellView> {
  axis: TimeAxis;
  wholeName?: string; // beside the overview strip
  link?: Link<V>; // what else the link holds
  top: Top;
  story: HTMLElement[]; // the list at the left
  storyName: string;
  legend?: HTMLElement[];
  controls?: HTMLElement[]; // of the toolbar
  search?: { name: string; matches: (text: string) => Match[] };
  tracks: Track[] | ((room: number) => Track[]); // none: `charts` fill the centre
  overview?: Tracks<V>["overview"];
  charts?: HTMLElement[];
  tabs: Tab[];
  commands?: Command[];
  chips?: (view: V) => HTMLElement[];
  changed?: (changed: Set<string>, view: V) => void; // after any change of the view, before tabs are filled again
  moved?: (low: number, high: number) => void; // the time in view has changed, and rests
  brushZooms?: boolean; // a drag shows that time instead of selecting it
}

const REST = 160; // milliseconds after which a movement has ended

export class TrackPage<V extends ShellView = ShellView> extends Shell<V, Track> {
  declare readonly pane: Tracks<V>;
  readonly plots = new Set<Plot>(); // drawn again with the theme and the view
  private resting = 0;

  constructor(readonly parts: PageParts<V>) {
    const store = new Store(parts.link ?? new Link(SHELL_VIEW as V));
    super(store, parts.axis, new Tracks<V>(store, parts.axis, parts.wholeName ?? "all"));
    this.commands = this.withCommon([
      ...(parts.search ? [{ title: parts.search.name, keys: ["/"], run: () => byId("search").focus() }] : []),
      { title: "Zoom to the selection", keys: ["f", "Enter"], run: () => { const { select } = store.view; if (select) this.zoomTo(select.low, select.high); } },
      { title: "Clear selection and pins", keys: ["Escape"], run: () => this.change({ select: null, pins: [] }) },
      ...(parts.commands ?? []),
    ]);
  }

  // `data`: what tracks still wait for; the words of the page are there before.
  start(data: Promise<unknown> | null = null): this {
    const { parts, pane } = this, alone = !(typeof parts.tracks === "function" || parts.tracks.length);
    fillTop(parts.top);
    byId("story").setAttribute("aria-label", parts.storyName);
    byId("story").replaceChildren(...parts.story);
    byId("controls").replaceChildren(...(parts.controls ?? []));
    byId("legend").replaceChildren(...(parts.legend ?? []));
    byId("search").parentElement!.hidden = !parts.search;
    if (parts.search) bindSearch(parts.search.name, parts.search.matches);
    byId("tracks").hidden = alone;
    byId("charts").hidden = !parts.charts?.length;
    byId("charts").replaceChildren(...(parts.charts ?? []));
    document.documentElement.dataset["panel"] = parts.tabs.length ? "" : "none";
    this.tabs.set(parts.tabs);
    pane.overview = parts.overview ?? null;
    pane.setTracks(parts.tracks);
    this.bind();
    if (data) void data.then(() => this.finish()); else this.finish();
    return this;
  }

  private finish(): void {
    this.store.restore();
    this.pane.arrange();
    markReady();
  }

  // Draws everything again, after data or choices of the page have changed.
  redraw(): void {
    this.pane.arrange();
    this.pane.ask();
    this.plots.forEach((plot) => plot.draw());
    if (this.parts.tabs.length) this.tabs.show(this.store.view.tab);
  }

  protected refresh(changed: Set<string>): void {
    const { view } = this.store;
    this.parts.changed?.(changed, view);
    if (changed.has("open") || changed.has("pins")) this.pane.arrange();
    byId("chips").replaceChildren(...(this.parts.chips?.(view) ?? []));
    if (this.parts.tabs.length) this.tabs.show(view.tab || this.parts.tabs[0].id, [...changed].some((key) => !["low", "high", "open", "pins"].includes(key)));
    this.plots.forEach((plot) => plot.draw());
  }

  protected follow(): void {
    clearTimeout(this.resting);
    this.resting = window.setTimeout(() => this.parts.moved?.(this.axis.low, this.axis.high), REST);
  }

  protected select(select: Selection): void {
    if (this.parts.brushZooms) this.axis.show(select.low, select.high); else super.select(select);
  }

  protected hover({ row, time, y }: Hit<Track>, x: number, below: number): void {
    const tip = row?.open ? row.tip?.(time, y, row.height) : null;
    if (tip) showTip(tip.title, tip.facts, x, below); else hideTip();
  }

  protected click({ row, time, y }: Hit<Track>): void {
    if (row?.click && row.open) row.click(time, y, row.height); else this.change({ select: null });
  }
}
