// A chart whose axes are not the page's time axis: spectra, distributions, two amounts against each other.
import { colour, FONT } from "./colours.ts";
import { el } from "./dom.ts";
import type { Pen } from "./pen.ts";
import { scaleTicks, type ScaleKind } from "./ticks.ts";
import { hideTip, showTip } from "./tooltip.ts";
import { fitCanvas, type Tip } from "./tracks.ts";

export interface Scale { low: number; high: number; kind: ScaleKind; log?: boolean; title?: string; names?: string[] } // names: of the units from 0 on
export interface Frame { left: number; top: number; width: number; height: number; x: (value: number) => number; y: (value: number) => number }
export interface PlotParts {
  label: string; // for readers of the screen
  title?: string;
  height?: number;
  x: () => Scale;
  y: () => Scale;
  draw: (pen: Pen, frame: Frame) => void;
  tip?: (x: number, y: number) => Tip | null; // values at the pointer
  click?: (x: number, y: number) => void;
  brush?: (low: number, high: number) => void; // a drag along x
}

const EDGE = { left: 66, right: 14, top: 10, bottom: 36 }, TITLE = 14, DRAG = 4;

export const placeOn = (scale: Scale, from: number, to: number) => (value: number): number => {
  const share = scale.log ? Math.log(Math.max(value, scale.low) / scale.low) / Math.log(scale.high / scale.low) : (value - scale.low) / (scale.high - scale.low);
  return from + share * (to - from);
};
export const valueOn = (scale: Scale, share: number): number => scale.log ? scale.low * (scale.high / scale.low) ** share : scale.low + share * (scale.high - scale.low);

export class Plot {
  readonly element: HTMLElement;
  private readonly canvas: HTMLCanvasElement;
  private frame: Frame | null = null;

  constructor(private readonly parts: PlotParts) {
    this.canvas = el("canvas", { role: "img", "aria-label": parts.label });
    const holder = el("div", { class: "plot-canvas" }, this.canvas);
    holder.style.height = `${parts.height ?? 200}px`;
    this.element = el("figure", { class: "plot" }, parts.title ? el("figcaption", {}, parts.title) : null, holder);
    new ResizeObserver(() => this.draw()).observe(holder);
    this.bind();
  }

  draw(): void {
    const width = this.canvas.parentElement!.clientWidth, height = this.parts.height ?? 200;
    if (width < 2 * EDGE.left) return;
    const pen = fitCanvas(this.canvas, width, height), x = this.parts.x(), y = this.parts.y();
    const top = y.title ? EDGE.top + TITLE : EDGE.top, frame: Frame = { left: EDGE.left, top, width: width - EDGE.left - EDGE.right, height: height - top - EDGE.bottom, x: () => 0, y: () => 0 };
    frame.x = placeOn(x, frame.left, frame.left + frame.width);
    frame.y = placeOn(y, frame.top + frame.height, frame.top);
    this.frame = frame;
    drawAxes(pen, frame, x, y);
    pen.clipTo(frame.left, frame.top - 4, frame.width + 4, frame.height + 5);
    this.parts.draw(pen, frame);
    pen.unclip();
  }

  private valuesAt(event: PointerEvent): [number, number] | null {
    const box = this.canvas.getBoundingClientRect(), { frame } = this;
    if (!frame) return null;
    return [valueOn(this.parts.x(), (event.clientX - box.left - frame.left) / frame.width), valueOn(this.parts.y(), 1 - (event.clientY - box.top - frame.top) / frame.height)];
  }

  private bind(): void {
    let begin: { x: number; value: number } | null = null;
    this.canvas.addEventListener("pointermove", (event) => {
      const at = this.valuesAt(event), tip = at && !begin ? this.parts.tip?.(at[0], at[1]) : null;
      if (tip) showTip(tip.title, tip.facts, event.clientX, event.clientY); else hideTip();
    });
    this.canvas.addEventListener("pointerleave", hideTip);
    this.canvas.addEventListener("pointerdown", (event) => { const at = this.valuesAt(event); if (at && event.pointerType !== "touch") begin = { x: event.clientX, value: at[0] }; });
    this.canvas.addEventListener("pointerup", (event) => {
      const at = this.valuesAt(event);
      if (at && begin && this.parts.brush && Math.abs(event.clientX - begin.x) >= DRAG) this.parts.brush(Math.min(begin.value, at[0]), Math.max(begin.value, at[0]));
      else if (at) this.parts.click?.(at[0], at[1]);
      begin = null;
    });
  }
}

// Ticks, lines and names of both axes.
export function drawAxes(pen: Pen, frame: Frame, x: Scale, y: Scale): void {
  const bottom = frame.top + frame.height, right = frame.left + frame.width;
  pen.font = FONT;
  pen.textAlign = "right";
  for (const { value, text } of scaleTicks(y, Math.max(2, Math.floor(frame.height / 34)))) {
    const at = Math.round(frame.y(value));
    pen.fillStyle = colour("--line");
    if (y.kind !== "names") pen.fillRect(frame.left, at, frame.width, 1);
    pen.fillStyle = colour("--dim");
    pen.fillText(text, frame.left - 5, at + 4);
  }
  pen.textAlign = "center";
  let free = -Infinity;
  for (const { value, text } of scaleTicks(x, Math.max(2, Math.floor(frame.width / 84)))) {
    const at = Math.round(frame.x(value)), half = pen.measureText(text).width / 2;
    pen.fillStyle = colour("--line");
    pen.fillRect(at, frame.top, 1, frame.height);
    if (at - half < free || at + half > right + EDGE.right) continue;
    pen.fillStyle = colour("--dim");
    pen.fillText(text, at, bottom + 14);
    free = at + half + 8;
  }
  pen.fillStyle = colour("--dim");
  if (x.title) { pen.textAlign = "right"; pen.fillText(x.title, right, bottom + 29); }
  if (y.title) { pen.textAlign = "left"; pen.fillText(y.title, 2, 10); }
}

export interface LineStyle { tone: string; dashed?: boolean; wide?: number }

export function drawLine(pen: Pen, frame: Frame, xs: ArrayLike<number>, ys: ArrayLike<number | null>, { tone, dashed = false, wide = 1.5 }: LineStyle): void {
  pen.strokeStyle = colour(tone);
  pen.lineWidth = wide;
  pen.setLineDash(dashed ? [5, 3] : []);
  pen.beginPath();
  let up = true;
  for (let n = 0; n < xs.length; n += 1) {
    const value = ys[n];
    if (value === null || !Number.isFinite(value)) { up = true; continue; }
    if (up) pen.moveTo(frame.x(xs[n]), frame.y(value)); else pen.lineTo(frame.x(xs[n]), frame.y(value));
    up = false;
  }
  pen.stroke();
  pen.setLineDash([]);
}

// A line across the chart at a value, with its name.
export function drawRule(pen: Pen, frame: Frame, along: "x" | "y", value: number, text: string): void {
  pen.fillStyle = colour("--ink");
  pen.textAlign = "left";
  if (along === "y") { pen.fillRect(frame.left, frame.y(value), frame.width, 1); pen.fillText(text, frame.left + 4, frame.y(value) - 3); }
  else { pen.fillRect(frame.x(value), frame.top, 1, frame.height); pen.fillText(text, frame.x(value) + 4, frame.top + 10); }
}
