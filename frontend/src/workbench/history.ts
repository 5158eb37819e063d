// This run against the history of the site: sentences, and a small chart for each number.
import { el } from "../shared/dom.ts";
import { bytes, count, duration, rate, share } from "../shared/units.ts";
import type { History, MetricHistory } from "./types.ts";

const SVG = "http://www.w3.org/2000/svg", WIDTH = 110, HEIGHT = 26, EDGE = 4;

export function historyCard(history: History): HTMLElement {
  const lines = history.lines.length ? history.lines : [`Nothing unusual beside ${count(history.runs)} earlier runs at similar scale.`];
  const body = el("div", { class: "body" }, el("ul", {}, ...lines.map((line) => el("li", {}, line))));
  if (history.metrics.length) body.append(el("table", {}, el("tbody", {}, ...history.metrics.map(metricRow))));
  return el("details", { class: "card history", open: true }, el("summary", {}, el("span", { class: "what" }, "Against the history of the site")), body);
}

function metricRow(metric: MetricHistory): HTMLElement {
  const usual = `usually ${inUnit(metric.median, metric.unit)}`;
  return el("tr", { class: metric.unusual ? "unusual" : "" }, el("th", { scope: "row" }, metric.name), el("td", { title: usual }, inUnit(metric.value, metric.unit)), el("td", {}, earlierRuns(metric)));
}

function inUnit(value: number, unit: string): string {
  const formats: Record<string, (value: number) => string> = { s: duration, B: bytes, "B/s": rate, share };
  return (formats[unit] ?? count)(value);
}

function earlierRuns(metric: MetricHistory): SVGElement {
  const picture = document.createElementNS(SVG, "svg"), values = [...metric.earlier.map(([, value]) => value), metric.value], top = Math.max(...values) || 1;
  picture.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
  picture.setAttribute("width", String(WIDTH));
  picture.setAttribute("role", "img");
  picture.setAttribute("aria-label", `${metric.name} of ${values.length - 1} earlier runs and of this one`);
  values.forEach((value, place) => {
    const dot = document.createElementNS(SVG, "circle"), last = place === values.length - 1;
    dot.setAttribute("cx", String(EDGE + (WIDTH - 2 * EDGE) * place / Math.max(1, values.length - 1)));
    dot.setAttribute("cy", String(HEIGHT - EDGE - (HEIGHT - 2 * EDGE) * value / top));
    dot.setAttribute("r", last ? "3.5" : "1.5");
    dot.setAttribute("class", last ? "this-run" : "earlier-run");
    picture.append(dot);
  });
  return picture;
}
