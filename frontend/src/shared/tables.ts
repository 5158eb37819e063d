// Tables that can be sorted, filtered and saved; rows and tracks choose each other.
import { button, el } from "./dom.ts";
import { csvOf, save } from "./download.ts";
import { cellText, count } from "./units.ts";

export interface Sheet { title: string; note: string; columns: { name: string; kind: string }[]; rows: unknown[][] }
const FIRST_ROWS = 60, MORE_ROWS = 400;
export interface RowAction { run: () => void; chosen: boolean }
export type Choose = (row: unknown[], sheet: Sheet) => RowAction | null;
interface Order { column: number; descending: boolean }
const orders = new Map<string, Order>(), needles = new Map<string, string>();

export function sheetTable(place: HTMLElement, sheet: Sheet, choose: Choose): void {
  const tools = el("div", { class: "tools" }), holder = el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": sheet.title });
  let limit = FIRST_ROWS;
  const kept = (): unknown[][] => {
    const needle = needles.get(sheet.title) ?? "", order = orders.get(sheet.title);
    const rows = needle ? sheet.rows.filter((row) => row.some((cell, n) => cellText(sheet.columns[n].kind, cell).toLowerCase().includes(needle))) : sheet.rows.slice();
    if (order) rows.sort((a, b) => (order.descending ? -1 : 1) * compare(a[order.column], b[order.column]));
    return rows;
  };
  const shown = filled(sheet);
  const draw = (): void => {
    const rows = kept(), actions = rows.map((row) => choose(row, sheet)), first = actions.findIndex((action) => action?.chosen);
    if (first >= limit) limit = first + FIRST_ROWS;
    const body = el("tbody");
    rows.slice(0, limit).forEach((row, n) => body.append(line(sheet, shown, row, actions[n])));
    holder.replaceChildren(el("table", {}, head(sheet, shown, draw), body));
    if (rows.length > limit) holder.append(button(`show ${count(Math.min(MORE_ROWS, rows.length - limit))} of ${count(rows.length - limit)} more`, () => { limit += MORE_ROWS; draw(); }));
    const chosen = body.querySelector("tr.chosen");
    if (chosen) requestAnimationFrame(() => chosen.scrollIntoView({ block: "nearest" }));
  };
  const filter = el("input", { type: "search", placeholder: "filter", "aria-label": `Filter ${sheet.title}`, autocomplete: "off" });
  filter.value = needles.get(sheet.title) ?? "";
  filter.addEventListener("input", () => { needles.set(sheet.title, filter.value.toLowerCase()); limit = FIRST_ROWS; draw(); });
  tools.append(el("h3", {}, sheet.title), filter, button("CSV", () => save(`${sheet.title.toLowerCase().replace(/[^a-z]+/g, "-")}.csv`, csvOf([sheet.columns.map((column) => column.name), ...kept()]), "text/csv"), { "aria-label": `Save ${sheet.title} as CSV` }));
  if (sheet.note) tools.append(el("span", { class: "hint" }, sheet.note));
  place.append(el("section", { class: "sheet" }, tools, holder));
  draw();
}

const UNBROKEN = 24; // letters of a text that keeps to one line; longer ones, such as paths, may break anywhere

// Columns without a single value are left out.
const filled = (sheet: Sheet): number[] => sheet.columns.map((_, n) => n).filter((n) => !sheet.rows.length || sheet.rows.some((row) => row[n] !== null && row[n] !== ""));

function head(sheet: Sheet, shown: number[], redraw: () => void): HTMLElement {
  const order = orders.get(sheet.title), row = el("tr");
  shown.forEach((n) => {
    const column = sheet.columns[n], sorted = order?.column === n ? (order.descending ? "descending" : "ascending") : undefined;
    row.append(el("th", { scope: "col", class: column.kind === "text" ? "words" : "", "aria-sort": sorted }, button(column.name, () => {
      orders.set(sheet.title, { column: n, descending: order?.column === n ? !order.descending : column.kind !== "text" });
      redraw();
    })));
  });
  return el("thead", {}, row);
}

function line(sheet: Sheet, shown: number[], cells: unknown[], action: RowAction | null): HTMLElement {
  const row = el("tr", { class: action?.chosen ? "chosen" : "" });
  shown.forEach((n) => {
    const { kind } = sheet.columns[n], text = cellText(kind, cells[n]);
    row.append(el("td", { class: kind !== "text" ? "" : text.length <= UNBROKEN ? "words short" : "words" }, n === 0 && action ? button(text, action.run, { class: "pick", "aria-pressed": String(action.chosen) }) : text));
  });
  return row;
}

function compare(a: unknown, b: unknown): number {
  if (a === null || b === null) return (a === null ? -1 : 0) - (b === null ? -1 : 0);
  return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
}
