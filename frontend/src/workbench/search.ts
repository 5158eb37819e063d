// The search box: files, functions, ranks, hosts, phases and causes by a part of their name.
import { byId, el } from "../shared/dom.ts";
import type { Job } from "./model.ts";

const MOST = 40;
export interface Match { kind: string; text: string; run: () => void }
export interface SearchActions { show: (name: string) => void; rank: (rank: number) => void; phase: (number: number) => void; filter: (text: string) => void }

export function matchesOf(job: Job, text: string, actions: SearchActions): Match[] {
  const wanted = text.trim().toLowerCase(), found: Match[] = [];
  if (!wanted) return found;
  const put = (kind: string, name: string, run: () => void): boolean => { found.push({ kind, text: name, run }); return found.length >= MOST; };
  const number = wanted.match(/^(?:rank\s*)?(\d+)$/);
  if (number && Number(number[1]) < job.ranks && put("rank", job.rankName(Number(number[1])), () => actions.rank(Number(number[1])))) return found;
  job.data.hosts.names.forEach((host) => { if (found.length < 10 && host.toLowerCase().includes(wanted)) put("host", host, () => actions.filter(host)); });
  for (const name of job.marks.functions) if (name.toLowerCase().includes(wanted) && put("function", name, () => actions.show(`fn:${name}`))) return found;
  if (!job.marks.functions.length) for (const name of job.data.operations) if (name.includes(wanted) && put("calls", name, () => actions.show(`fn:${name}`))) return found;
  const phase = wanted.match(/^phase\s*(\d+)$/);
  if (phase && Number(phase[1]) >= 1 && Number(phase[1]) <= job.phases().length) put("phase", `phase ${phase[1]}`, () => actions.phase(Number(phase[1]) - 1));
  for (const one of [...(job.data.diagnosis?.causes ?? []), ...job.data.findings]) if (one.show && one.title.toLowerCase().includes(wanted) && put("finding", one.title, () => actions.show(one.id))) return found;
  for (const [file, name] of Object.entries(job.data.files)) if (name.toLowerCase().includes(wanted) && put("file", name, () => actions.show(`file:${file}`))) return found;
  return found;
}

export function bindSearch(job: Job, actions: SearchActions): void {
  const box = byId<HTMLInputElement>("search"), list = byId("matches");
  let matches: Match[] = [], chosen = 0;
  const close = (): void => { list.hidden = true; box.setAttribute("aria-expanded", "false"); box.removeAttribute("aria-activedescendant"); };
  const mark = (): void => {
    [...list.children].forEach((one, n) => one.setAttribute("aria-selected", String(n === chosen)));
    box.setAttribute("aria-activedescendant", `match-${chosen}`);
    list.children[chosen]?.scrollIntoView({ block: "nearest" });
  };
  const take = (n: number): void => { const match = matches[n]; if (!match) return; close(); box.value = ""; box.blur(); byId("tracks").focus({ preventScroll: true }); match.run(); };
  const fill = (): void => {
    matches = matchesOf(job, box.value, actions);
    chosen = 0;
    list.replaceChildren(...matches.map((match, n) => {
      const item = el("li", { role: "option", id: `match-${n}` }, el("span", { class: "kind" }, match.kind), ` ${match.text}`);
      item.addEventListener("pointerdown", (event) => { event.preventDefault(); take(n); });
      return item;
    }));
    if (!matches.length && box.value.trim()) list.append(el("li", { role: "option", "aria-disabled": "true" }, "nothing matches"));
    list.hidden = !box.value.trim();
    box.setAttribute("aria-expanded", String(!list.hidden));
    if (matches.length) mark();
  };
  box.addEventListener("input", fill);
  box.addEventListener("focus", fill);
  box.addEventListener("blur", close);
  box.addEventListener("keydown", (event) => {
    event.stopPropagation();
    if (event.key === "ArrowDown" || event.key === "ArrowUp") { event.preventDefault(); chosen = (chosen + (event.key === "ArrowDown" ? 1 : -1) + matches.length) % Math.max(1, matches.length); mark(); }
    if (event.key === "Enter") take(chosen);
    if (event.key === "Escape") { box.value = ""; close(); box.blur(); byId("tracks").focus({ preventScroll: true }); }
  });
}
