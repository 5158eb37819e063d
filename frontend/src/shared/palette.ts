// The command palette: every command of a page with its key, and a box to find one.
import { byId, el } from "./dom.ts";

export interface Command { title: string; keys: string[]; run: () => void }

const KEY_NAMES: Record<string, string> = { " ": "Space", ArrowLeft: "←", ArrowRight: "→", ArrowUp: "↑", ArrowDown: "↓", Escape: "Esc" };

// Keys are written as KeyboardEvent.key names; letters without Shift are lower case.
export function commandFor(commands: Command[], event: KeyboardEvent): Command | undefined {
  const name = `${event.ctrlKey || event.metaKey ? "Ctrl+" : ""}${event.altKey ? "Alt+" : ""}${event.key}`;
  return commands.find((command) => command.keys.includes(name));
}

export function openPalette(commands: Command[]): void {
  const dialog = byId<HTMLDialogElement>("palette");
  const box = el("input", { type: "search", "aria-label": "Find a command", placeholder: "Find a command", autocomplete: "off" }), list = el("ul");
  const fill = (): void => {
    const wanted = box.value.toLowerCase();
    list.replaceChildren(...commands.filter((one) => one.title.toLowerCase().includes(wanted)).map((one) => {
      const made = el("button", { type: "button" }, el("span", {}, one.title), el("span", { class: "keys" }, ...one.keys.slice(0, 2).map((key) => el("kbd", {}, KEY_NAMES[key] ?? key))));
      made.addEventListener("click", () => { dialog.close(); one.run(); });
      return el("li", {}, made);
    }));
  };
  box.addEventListener("input", fill);
  box.addEventListener("keydown", (event) => {
    if (event.key === "Enter") list.querySelector("button")?.click();
    if (event.key === "ArrowDown") { event.preventDefault(); list.querySelector("button")?.focus(); }
  });
  fill();
  dialog.replaceChildren(el("h2", {}, "Commands and keys"), box, list);
  dialog.showModal();
  box.focus();
}
