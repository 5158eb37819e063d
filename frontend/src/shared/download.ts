// What leaves a page: rows as CSV, charts as PNG and SVG.
import { el } from "./dom.ts";

export function save(name: string, content: BlobPart, type: string): void {
  const address = URL.createObjectURL(new Blob([content], { type })), link = el("a", { href: address, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

// A cell that a spreadsheet would take for a formula is kept as text.
export function csvCell(value: unknown): string {
  if (value === null || value === undefined) return "";
  const text = String(value), safe = typeof value === "string" && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

export const csvOf = (rows: unknown[][]): string => `${rows.map((row) => row.map(csvCell).join(",")).join("\r\n")}\r\n`;
