// What stalls the job: the verdict, the ledger as a bar of buttons, causes, possible causes and findings.
import { button, byId, el, narrowScreen } from "../shared/dom.ts";
import { shortTitles } from "../shared/paths.ts";
import { factList, fillTop } from "../shared/shell.ts";
import { bytes, count, duration, rate, share } from "../shared/units.ts";
import { historyCard } from "./history.ts";
import type { Job } from "./model.ts";
import type { Advice, Cause, Finding } from "./types.ts";

const LEDGER_NAMES: Record<string, string> = {
  transfer: "transfer at the job's best rate", library: "inside MPI-IO and libraries", programs: "loading programs and libraries", "first-reads": "cold-cache reads",
  unexplained: "unexplained", untraced: "calls that only counters show", rest: "not stalled by I/O",
};
const LEVELS: Record<string, string> = { high: "high", warn: "medium", info: "note", ok: "fine" };
// Shares of the run: below a fiftieth, a saving drowns in the variation between runs that shared storage causes (5 % and more).
const LARGE = 0.1, MEDIUM = 0.02;
const FEW = 3; // findings: more are folded on a phone, where the tracks come after them

export interface StoryActions { show: (id: string) => void; proof: (cause: Cause) => void; ledger: (cause: Cause | null) => void }
export const costOf = (shareOfRun: number | null): string => shareOfRun !== null && shareOfRun >= LARGE ? "large" : shareOfRun !== null && shareOfRun >= MEDIUM ? "medium" : "small";

export function fillHead(job: Job, actions: StoryActions): void {
  const { source, verdict, warnings } = job.data;
  fillTop({ subject: source.length > 2 ? `${source[0]} and ${source.length - 1} more` : source.join(", "), verdict: verdict.line, next: verdict.first ?? "", warnings });
  fillLedger(job, actions);
}

function fillLedger(job: Job, actions: StoryActions): void {
  const place = byId("ledger"), found = job.data.diagnosis;
  place.hidden = !found && !job.data.explore; // of a trace of any size, the ledger follows
  if (!found) return;
  const left = found.causes.slice(), lines = found.ledger.filter((one) => one.seconds > 0), held = lines.reduce((sum, one) => sum + one.seconds, 0);
  const rest = Math.max(0, (found.runtime ?? held) - held), whole = held + rest || 1;
  const short = shortTitles(found.causes.map((cause) => cause.title));
  let number = 0;
  place.replaceChildren(...[...lines, ...(rest > 0 ? [{ what: "rest", seconds: rest }] : [])].map(({ what, seconds }) => {
    // Causes of one code, such as two files that are read again, stand in the order of their lines.
    const place = left.findIndex((one) => one.code === what), cause = place < 0 ? null : left.splice(place, 1)[0];
    const known = LEDGER_NAMES[what], name = cause?.title ?? known ?? what, tone = known && !cause ? `ledger-${what}` : `ledger-cause ledger-${(number += 1) % 6}`;
    const part = button("", () => actions.ledger(cause), { class: tone, title: `${name}: ${duration(seconds)}`, "aria-label": `${duration(seconds)} ${name}, of ${duration(whole)}` });
    part.append(el("span"), el("span", {}, duration(seconds)), " ", el("span", { class: "name" }, short(name))); // what does not fit is wrapped out of sight
    part.style.flexGrow = String(Math.max(seconds / whole, 0.004));
    part.dataset["what"] = what;
    return part;
  }));
}

export function fillStory(job: Job, place: HTMLElement, actions: StoryActions): void {
  const found = job.data.diagnosis, own = job.data.findings.filter((finding) => !finding.cause), parts: HTMLElement[] = [];
  if (found) {
    parts.push(el("h2", {}, found.causes.length ? "Causes" : "No cause found"));
    const main = Math.max(...found.causes.map((cause) => cause.saving.seconds), 0);
    parts.push(...found.causes.map((cause, n) => causeCard(job, cause, n, main, actions)));
    if (found.history) parts.push(historyCard(found.history));
    if (found.possible.length) parts.push(el("h2", {}, "Possible causes"), ...found.possible.map(possibleCard));
    parts.push(...found.opportunities.map((text) => el("p", { class: "hint" }, text)));
  }
  if (own.length) parts.push(el("details", { class: "more", open: own.length <= FEW || !narrowScreen() }, el("summary", {}, el("h2", {}, `Findings (${own.length})`)), ...own.map(findingCards(own, actions))));
  if (found?.not_checked.length) parts.push(el("details", { class: "card" }, el("summary", {}, el("span", { class: "what" }, `Not checked: ${found.not_checked.length}`)), el("ul", {}, ...found.not_checked.map(({ code, needs }) => el("li", {}, `${code}: needs ${needs}`)))));
  if (job.data.explore && !parts.length) parts.push(el("p", { class: "hint" }, "Causes and findings follow when all calls have been analysed."));
  place.replaceChildren(...parts);
}

function causeCard(job: Job, cause: Cause, n: number, main: number, actions: StoryActions): HTMLElement {
  const short = shortTitles(job.data.diagnosis?.causes.map((one) => one.title) ?? []);
  const { seconds, low, high } = cause.saving, head = el("summary", {}, el("span", { class: "number" }, String(n + 1)), el("span", { class: "what", title: cause.title }, short(cause.title)), el("span", { class: "stake" }, `saves ${duration(seconds)} (${duration(low)} to ${duration(high)})`));
  const bar = el("span", { class: "cost" });
  bar.style.width = `${Math.max(2, 100 * seconds / (main || 1))}%`;
  head.append(bar);
  const body = el("div", { class: "body" }), tools = el("p", { class: "actions" });
  if (job.data.timeline.count) tools.append(button("Show the proof", () => actions.proof(cause), { class: "primary", "data-proof": cause.id }));
  if (cause.show && job.data.timeline.count) tools.append(button("Highlight its calls", () => actions.show(cause.id), { "data-show": cause.id }));
  if (tools.childElementCount) body.append(tools);
  body.append(...adviceOf(cause.advice), contrastTable(cause));
  const first = job.data.diagnosis?.causes.find((one) => one.code === cause.code) === cause, symptoms = first ? job.data.findings.filter((finding) => finding.cause === cause.code) : [];
  if (symptoms.length) body.append(el("h3", {}, "Symptoms"), ...symptoms.map(findingCards(symptoms, actions)));
  const hours = cause.core_hours && cause.core_hours >= 1 ? `, ${count(cause.core_hours)} core-hours` : "";
  body.append(el("p", { class: "hint" }, `${cause.code}; confidence ${share(cause.confidence)}${hours}`));
  const card = el("details", { class: `card cause ${costOf(cause.saving.share)}`, id: `card-${cause.id}`, open: n === 0 && !narrowScreen() }, head, body);
  return card;
}

// The slow group beside its peers: the same work.
function contrastTable(cause: Cause): HTMLElement {
  const { slow, peers, names } = cause.contrast, table = el("table", { class: "contrast" }, el("thead", {}, el("tr", {}, ...["group", "calls", "median", "rate"].map((text) => el("th", { scope: "col" }, text)))));
  const body = el("tbody");
  for (const [group, name] of [[slow, names[0]], [peers, names[1]]] as const) {
    if (!group) continue;
    body.append(el("tr", {}, el("th", { scope: "row" }, name ?? ""), el("td", {}, count(group.count)), el("td", {}, duration(group.median_seconds)), el("td", { title: bytes(group.bytes) }, rate(group.rate))));
  }
  table.append(body);
  return body.childElementCount ? table : el("div");
}

function adviceOf(advice: Advice[]): HTMLElement[] {
  return advice.flatMap(({ text, snippet }) => [el("p", { class: "advice" }, text), ...(snippet ? [example(snippet)] : [])]);
}

const example = (snippet: string): HTMLElement => el("details", { class: "code" }, el("summary", {}, "example"), el("pre", { tabindex: "0" }, el("code", {}, snippet)));

function possibleCard(one: { code: string; title: string; upper: number; decide: { text: string; command?: string | null } }): HTMLElement {
  const body = el("div", { class: "body" }, el("p", {}, one.decide.text));
  if (one.decide.command) body.append(example(one.decide.command));
  return el("details", { class: "card small" }, el("summary", {}, el("span", { class: "what" }, one.title), el("span", { class: "stake" }, `at most ${duration(one.upper)}`)), body);
}

function findingCards(findings: Finding[], actions: StoryActions): (finding: Finding) => HTMLElement {
  const short = shortTitles(findings.map((one) => one.title));
  return (finding) => findingCard(finding, short(finding.title), actions);
}

function findingCard(finding: Finding, title: string, actions: StoryActions): HTMLElement {
  const head = el("summary", {}, el("span", { class: "what", title: finding.title }, title));
  head.append(el("span", { class: "stake" }, finding.seconds && !finding.cause ? `${duration(finding.seconds)} at stake` : LEVELS[finding.level] ?? finding.level));
  const body = el("div", { class: "body" });
  if (finding.show) body.append(el("p", { class: "actions" }, button("Highlight its calls", () => actions.show(finding.id), { "data-show": finding.id })));
  body.append(...adviceOf(finding.advice));
  if (finding.evidence.length) body.append(factList(finding.evidence));
  if (finding.details.rows.length) {
    const rows = finding.details.rows.map((cells) => el("tr", {}, ...cells.map((cell) => el("td", {}, cell))));
    body.append(el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `Details of ${finding.id}` }, el("table", {}, el("thead", {}, el("tr", {}, ...finding.details.columns.map((name) => el("th", { scope: "col" }, name)))), el("tbody", {}, ...rows))));
  }
  body.append(el("p", { class: "hint" }, `rule: ${finding.code}`));
  return el("details", { class: `card finding ${finding.level}`, id: `card-${finding.id}` }, head, body);
}

export function markShown(id: string): void {
  for (const one of document.querySelectorAll<HTMLElement>("button[data-show]")) {
    const on = one.dataset["show"] === id;
    one.setAttribute("aria-pressed", String(on));
    one.textContent = on ? "Stop highlighting" : "Highlight its calls";
  }
}
