"use strict";
// Small pieces that draw; they know nothing of jobs.
const SVG = "http://www.w3.org/2000/svg";

function element(name, text, className) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

function shape(parent, name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  parent.append(made);
  return made;
}

function drawing(place, width, height, label) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", label);
  place.replaceChildren(svg);
  return svg;
}

function digits(value) {
  return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2);
}

function bytes(value) {
  if (value === null || value === undefined) return "unknown";
  let unit = 0;
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
  while (Math.abs(value) >= 1023.5 && unit < units.length - 1) { value /= 1024; unit += 1; }
  if (unit) return `${digits(value)} ${units[unit]}`;
  return `${Number.isInteger(value) || value >= 10 ? value.toFixed(0) : +value.toPrecision(2)} B`;
}

const rate = (value) => value === null || value === undefined ? "unknown" : `${bytes(value)}/s`;
const count = (value) => value === null || value === undefined ? "unknown" : Math.round(value).toLocaleString("en");
const share = (value) => value === null || value === undefined ? "–" : value.toFixed(2);
const moment = (seconds) => new Date(seconds * 1000).toISOString().slice(0, 16).replace("T", " ");

function table(place, columns, rows, onSort) {
  const made = element("table");
  const head = made.createTHead().insertRow();
  for (const [number, title] of columns.entries()) {
    const cell = element("th");
    if (onSort) {
      const button = element("button", title);
      button.type = "button";
      button.addEventListener("click", () => onSort(number));
      cell.append(button);
    } else cell.textContent = title;
    head.append(cell);
  }
  const body = made.createTBody();
  for (const row of rows) {
    const line = body.insertRow();
    for (const text of row) line.insertCell().textContent = text;
  }
  place.replaceChildren(made);
}

// The range of some values as powers of 2, widened to multiples of 5.
function powers(values) {
  let low = Infinity, high = -Infinity;
  for (const value of values) { if (value < low) low = value; if (value > high) high = value; }
  if (low === Infinity) return [0, 5];
  const first = 5 * Math.floor(Math.log2(low) / 5), last = 5 * Math.ceil(Math.log2(high) / 5);
  return [first, Math.max(last, first + 5)];
}

function histogram(values, low, high, bins) {
  const counts = new Array(bins).fill(0);
  for (const value of values) counts[Math.min(bins - 1, Math.max(0, Math.floor((value - low) / (high - low) * bins)))] += 1;
  return counts;
}

function running(counts) {
  let sum = 0;
  return counts.map((value) => (sum += value));
}

function largest(values) {
  let found = 0;
  for (const value of values) if (value > found) found = value;
  return found;
}
