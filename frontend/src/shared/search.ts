// The search box of a page: things by a part of their name.
import { byId, el } from "./dom.ts";

export interface Match { kind: string; text: string; run: () => void }

export function bindSearch(name: string, matchesOf: (text: string) => Match[]): void {
  const box = byId<HTMLInputElement>("search"), list = byId("matches");
  box.placeholder = `${name}  /`;
  box.setAttribute("aria-label", name);
  let matches: Match[] = [], chosen = 0;
  const close = (): void => { list.hidden = true; box.setAttribute("aria-expanded", "false"); box.removeAttribute("aria-activedescendant"); };
  const mark = (): void => {
    [...list.children].forEach((one, n) => one.setAttribute("aria-selected", String(n === chosen)));
    box.setAttribute("aria-activedescendant", `match-${chosen}`);
    list.children[chosen]?.scrollIntoView({ block: "nearest" });
  };
  const take = (n: number): void => { const match = matches[n]; if (!match) return; close(); box.value = ""; box.blur(); byId("tracks").focus({ preventScroll: true }); match.run(); };
  const fill = (): void => {
    matches = matchesOf(box.value);
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
