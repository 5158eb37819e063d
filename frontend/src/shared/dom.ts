// Elements by name; text is always text, never markup.
export type Child = Node | string | null | undefined | false;

export function el<K extends keyof HTMLElementTagNameMap>(
  name: K, attributes: Record<string, string | number | boolean | null | undefined> = {}, ...children: Child[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key === "class") made.className = String(value);
    else made.setAttribute(key, value === true ? "" : String(value));
  }
  for (const child of children) if (child) made.append(child);
  return made;
}

export function button(text: string, onClick: () => void, attributes: Record<string, string | boolean | undefined> = {}): HTMLButtonElement {
  const made = el("button", { type: "button", ...attributes }, text);
  made.addEventListener("click", onClick);
  return made;
}

export function select(label: string, choices: [string, string][], value: string, onChange: (value: string) => void): HTMLLabelElement {
  const made = el("select");
  for (const [key, text] of choices) made.append(el("option", { value: key, selected: key === value }, text));
  made.addEventListener("change", () => onChange(made.value));
  return el("label", {}, `${label} `, made);
}

export function byId<T extends HTMLElement = HTMLElement>(id: string): T {
  const place = document.getElementById(id);
  if (!place) throw new Error(`the page has no #${id}`);
  return place as T;
}

export const narrowScreen = (): boolean => window.matchMedia("(max-width: 899px)").matches;
export const reducedMotion = (): boolean => window.matchMedia("(prefers-reduced-motion: reduce)").matches;
