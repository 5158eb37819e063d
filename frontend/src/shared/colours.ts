// Colours of the theme. The eight series colours are Okabe and Ito's (2008): colour-blind readers tell them apart.
export const FONT = "11px system-ui, sans-serif";
export type Rgb = [number, number, number];

const kept = new Map<string, string>();
export const forgetColours = (): void => kept.clear();

export function colour(name: string): string {
  let value = kept.get(name);
  if (value === undefined) kept.set(name, value = getComputedStyle(document.documentElement).getPropertyValue(name).trim());
  return value;
}

export function rgb(name: string): Rgb {
  const number = parseInt(colour(name).slice(1), 16);
  return [number >> 16 & 255, number >> 8 & 255, number & 255];
}

export function isDark(): boolean {
  const chosen = document.documentElement.dataset["theme"];
  return chosen ? chosen === "dark" : window.matchMedia("(prefers-color-scheme: dark)").matches;
}

// From little to much, so that small values stay close to the ground: light to dark, or dark to light.
const LIGHT: Rgb[] = [[222, 235, 247], [158, 202, 225], [66, 146, 198], [8, 81, 156], [8, 30, 90]];
const DARK: Rgb[] = [[24, 44, 64], [30, 84, 130], [56, 140, 196], [140, 200, 235], [236, 246, 252]];

export function ramp(steps: number): Rgb[] {
  return Array.from({ length: steps }, (_, n) => rampAt(steps > 1 ? n / (steps - 1) : 1));
}

export function rampAt(share: number, dark = isDark()): Rgb {
  const stops = dark ? DARK : LIGHT, place = Math.min(0.99999, Math.max(0, share)) * (stops.length - 1), low = Math.floor(place), part = place - low;
  return [0, 1, 2].map((c) => Math.round(stops[low][c] + part * (stops[low + 1][c] - stops[low][c]))) as Rgb;
}

export const css = ([r, g, b]: Rgb): string => `rgb(${r} ${g} ${b})`;

// Black or white, whichever reads better on a colour (WCAG relative luminance).
export function inkOn([r, g, b]: Rgb): string {
  const linear = (value: number): number => { const v = value / 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; };
  return 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b) > 0.179 ? "#000000" : "#ffffff";
}
