// Tables that can be sorted by any column, filtered by any text, and saved.
const MOST_ROWS = 12;
const TEXT_OF = { bytes, seconds: duration, count, share: (v) => v === null ? "–" : `${(100 * v).toFixed(1)} %`, time: clock, number: plain, rank: (v) => String(v), text: (v) => String(v) };

function sortableTable(place, { title, note, columns, rows }) {
  const section = element("section", undefined, "sheet"), tools = element("div", undefined, "tools"), holder = element("div", undefined, "scroll");
  section.append(element("h3", title));
  if (note) section.append(element("p", note, "hint"));
  section.append(tools, holder);
  place.append(section);
  let order = null, descending = true, needle = "", limit = MOST_ROWS;
  const chosen = () => {
    const kept = needle ? rows.filter((row) => row.some((cell, n) => shownText(columns[n], cell).toLowerCase().includes(needle))) : rows.slice();
    if (order !== null) kept.sort((a, b) => (descending ? -1 : 1) * compareCells(a[order], b[order]));
    return kept;
  };
  const draw = () => {
    const kept = chosen();
    table(holder, columns.map((column) => column.name), kept.slice(0, limit).map((row) => row.map((cell, n) => shownText(columns[n], cell))), (number) => {
      descending = order === number ? !descending : columns[number].kind !== "text";
      order = number;
      draw();
    });
    dressTable(holder, columns, order, descending);
    if (kept.length > limit) {
      const more = element("button", `show ${count(Math.min(200, kept.length - limit))} of ${count(kept.length - limit)} more`);
      more.type = "button";
      more.addEventListener("click", () => { limit += 200; draw(); });
      holder.append(more);
    }
  };
  const filter = element("input");
  filter.type = "search"; filter.placeholder = "filter"; filter.setAttribute("aria-label", `Filter ${title}`);
  filter.addEventListener("input", () => { needle = filter.value.toLowerCase(); limit = MOST_ROWS; draw(); });
  const save = element("button", "save as CSV");
  save.type = "button";
  save.addEventListener("click", () => saveText(`${title.toLowerCase().replace(/[^a-z]+/g, "-")}.csv`, csvOf([columns.map((c) => c.name), ...chosen()]), "text/csv"));
  tools.append(filter, save);
  draw();
}

function dressTable(holder, columns, order, descending) {
  holder.querySelectorAll("thead th").forEach((cell, n) => {
    cell.scope = "col";
    cell.classList.toggle("words", columns[n].kind === "text");
    if (n === order) cell.setAttribute("aria-sort", descending ? "descending" : "ascending");
  });
  for (const row of holder.querySelectorAll("tbody tr")) [...row.cells].forEach((cell, n) => cell.classList.toggle("words", columns[n].kind === "text"));
}

const shownText = (column, cell) => cell === null || cell === undefined ? "–" : (TEXT_OF[column.kind] || TEXT_OF.text)(cell);

function compareCells(a, b) {
  if (a === null || b === null) return (a === null ? -1 : 0) - (b === null ? -1 : 0);
  return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
}
