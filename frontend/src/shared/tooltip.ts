// The one tooltip of a page: facts about what the pointer is at.
import { byId, el } from "./dom.ts";

export type Facts = [string, string][];

export function showTip(title: string, facts: Facts, x: number, y: number): void {
  const tip = byId("tip"), list = el("dl");
  for (const [name, text] of facts) list.append(el("dt", {}, name), el("dd", {}, text));
  tip.replaceChildren(el("strong", {}, title), list);
  tip.hidden = false;
  const box = tip.getBoundingClientRect(), gap = 14;
  const left = x + gap + box.width > window.innerWidth ? x - gap - box.width : x + gap;
  const top = y + gap + box.height > window.innerHeight ? y - gap - box.height : y + gap;
  tip.style.left = `${Math.max(4, left)}px`;
  tip.style.top = `${Math.max(4, top)}px`;
}

export function hideTip(): void { byId("tip").hidden = true; }
