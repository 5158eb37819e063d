// Tabs after the ARIA pattern: arrow keys move, one panel is shown.
import { button, el } from "./dom.ts";

export interface Tab { id: string; title: string; fill: (panel: HTMLElement) => void }

export class Tabs {
  private readonly list = el("div", { role: "tablist", "aria-label": "Details and tables" });
  private readonly panel = el("div", { role: "tabpanel", id: "tab-panel", tabindex: "0" });
  private tabs: Tab[] = [];
  chosen = "";

  constructor(place: HTMLElement, private readonly onChoose: (id: string) => void) {
    place.replaceChildren(this.list, this.panel);
    this.list.addEventListener("keydown", (event) => {
      const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
      if (!step) return;
      event.preventDefault();
      event.stopPropagation();
      const place = this.tabs.findIndex((tab) => tab.id === this.chosen), next = this.tabs[(place + step + this.tabs.length) % this.tabs.length];
      this.onChoose(next.id);
      this.list.querySelector<HTMLElement>(`#tab-${next.id}`)?.focus();
    });
  }

  set(tabs: Tab[]): void {
    this.tabs = tabs;
    this.list.replaceChildren(...tabs.map((tab) => button(tab.title, () => this.onChoose(tab.id), { role: "tab", id: `tab-${tab.id}`, "aria-controls": "tab-panel" })));
  }

  show(id: string, refill = true): void {
    const tab = this.tabs.find((one) => one.id === id) ?? this.tabs[0], changed = tab.id !== this.chosen;
    this.chosen = tab.id;
    for (const one of this.list.children) {
      const on = one.id === `tab-${tab.id}`;
      one.setAttribute("aria-selected", String(on));
      (one as HTMLElement).tabIndex = on ? 0 : -1;
    }
    this.panel.setAttribute("aria-labelledby", `tab-${tab.id}`);
    if (!changed && !refill) return;
    const top = changed ? 0 : this.panel.scrollTop;
    tab.fill(this.panel);
    this.panel.scrollTop = top;
  }
}
