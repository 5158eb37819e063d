// What the tabs below the tracks hold beside the details: facts, tables, the period, settings.
import { button, el, select } from "../shared/dom.ts";
import type { Tab } from "../shared/tabs.ts";
import { duration, share } from "../shared/units.ts";
import type { Job } from "./model.ts";
import { sizeBars } from "./details.ts";
import { factList } from "../shared/shell.ts";
import type { Store } from "../shared/state.ts";
import { sheetTable, type Choose } from "../shared/tables.ts";
import { COLOURS, type View } from "./state.ts";

const TABLES: [string, string, string[]][] = [["files", "Files", ["Files"]], ["ranks", "Ranks", ["Ranks"]], ["targets", "Targets", ["Storage targets", "Nodes"]], ["phases", "Phases", ["Phases"]], ["more", "More tables", []]];

export interface TabContext { job: Job; store: Store<View>; choose: Choose; details: (panel: HTMLElement) => void; png: () => void; svg: () => void; keys: () => void }

export function tabsOf(context: TabContext): Tab[] {
  const { job } = context, named = new Set(TABLES.flatMap(([, , titles]) => titles)), tabs: Tab[] = [{ id: "details", title: "Details", fill: context.details }, { id: "facts", title: "Facts", fill: (panel) => fillFacts(panel, job) }];
  for (const [id, title, titles] of TABLES) {
    const sheets = job.data.tables.filter((sheet) => id === "more" ? !named.has(sheet.title) : titles.includes(sheet.title));
    if (sheets.length) tabs.push({ id, title, fill: (panel) => { panel.replaceChildren(); sheets.forEach((sheet) => sheetTable(panel, sheet, context.choose)); } });
  }
  if (job.data.rhythm) tabs.push({ id: "period", title: "Period", fill: (panel) => fillPeriod(panel, job) });
  tabs.push({ id: "settings", title: "Settings", fill: (panel) => fillSettings(panel, context) });
  return tabs;
}

function fillFacts(panel: HTMLElement, job: Job): void {
  const facts = factList(job.data.facts, true);
  facts.id = "facts";
  panel.replaceChildren(facts);
  const sizes = sizeBars("Request sizes of the whole run", job.data.sizes, null, "");
  if (sizes) panel.append(sizes);
}

function fillPeriod(panel: HTMLElement, job: Job): void {
  const { of, period, next, spectrum } = job.data.rhythm!, what = of === "both" ? "I/O" : of;
  const text = period ? `The ${what === "I/O" ? "I/O" : `${what}s`} repeats every ${duration(period.seconds)} (confidence ${share(period.confidence)}).` : "No period was found.";
  panel.replaceChildren(el("p", { id: "period-text" }, text));
  if (next) panel.append(el("p", {}, `The next phase is due at ${duration(next.start)}, until ${duration(next.end)}.`));
  const strongest = spectrum.frequency.map((frequency, n) => ({ frequency: frequency ?? 0, share: spectrum.share[n] ?? 0 })).filter((line) => line.frequency > 0).sort((a, b) => b.share - a.share).slice(0, 8);
  const most = Math.max(...strongest.map((line) => line.share), 1e-9), body = el("tbody");
  for (const line of strongest) {
    const bar = el("span", { class: "bar" });
    bar.style.width = `${200 * line.share / most}px`;
    body.append(el("tr", {}, el("td", {}, duration(1 / line.frequency)), el("td", { class: "drawn" }, bar), el("td", {}, share(line.share))));
  }
  if (strongest.length) panel.append(el("table", {}, el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "period"), el("th", { scope: "col" }, "strongest lines of the spectrum"), el("th", { scope: "col" }, "of the variance"))), body));
}

function fillSettings(panel: HTMLElement, { store, png, svg, keys }: TabContext): void {
  const { view } = store, log = el("input", { type: "checkbox", id: "log", checked: view.log });
  log.addEventListener("change", () => store.set({ log: log.checked }));
  const rows: [string, string][] = [["auto", "as the window allows"], ["thin", "thin"], ["tall", "tall"]];
  panel.replaceChildren(el("div", { class: "settings" },
    select("colours of the page", [["", "as the system"], ["light", "light"], ["dark", "dark"]], view.theme, (theme) => store.set({ theme })),
    el("label", {}, log, " logarithmic bandwidth"),
    select("colour of calls", COLOURS.map((one): [string, string] => [one, one]), view.colour, (colour) => store.set({ colour })),
    select("rows of ranks", rows, view.rows, (value) => store.set({ rows: value })),
    select("group ranks by", [["auto", "host, where it has room"], ["host", "host"], ["none", "nothing"]], view.group, (group) => store.set({ group })),
    el("p", { class: "actions" }, button("Save the tracks as PNG", png, { id: "save-png" }), button("Save the tracks as SVG", svg, { id: "save-svg" }), button("Commands and keys", keys))));
}
