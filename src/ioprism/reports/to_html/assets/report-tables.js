// Tables that can be sorted by any column, filtered by any text, and saved.
const MOST_ROWS = 12;
const TEXT_OF = { bytes, rate, seconds: duration, count, share: (v) => v === null ? "–" : `${(100 * v).toFixed(1)} %`, time: clock, number: plain, rank: (v) => String(v), text: (v) => String(v) };

// What a row stands for on the pictures: a file, a rank, a phase, or nothing.
function chosenBy(title, columns, row) {
  const of = (name) => row[columns.findIndex((column) => column.name === name)];
  if (title === "Files") { const files = filesNamed(String(of("file"))); return files.length ? { files } : null; }
  if (title === "Ranks") return { ranks: String(of("rank")) };
  if (title === "Phases") return { time: [of("from"), of("from") + of("lasts")] };
  return null;
}

function isChosen(wanted, state) {
  if (!wanted || wanted.time) return false;
  return wanted.files ? state.files.length > 0 && wanted.files.every((file) => state.files.includes(file)) : state.ranks === wanted.ranks;
}

function chooseRow(wanted, state) {
  if (wanted.time) { const [from, to] = wanted.time, margin = 0.15 * (to - from) || 0.5; state.time.show(from - margin, to + margin); }
  else if (isChosen(wanted, state)) state.set(wanted.files ? { files: [] } : { ranks: "" });
  else state.set(wanted);
}

function sortableTable(place, { title, note, columns, rows }, state) {
  const section = element("section", undefined, "sheet"), tools = element("div", undefined, "tools"), holder = element("div", undefined, "scroll");
  section.append(element("h3", title));
  if (note) section.append(element("p", note, "hint"));
  section.append(tools, holder);
  place.append(section);
  let order = null, descending = true, needle = "", limit = MOST_ROWS;
  const chosen = () => {
    const kept = needle ? rows.filter((row) => row.some((cell, n) => shownText(columns[n], cell).toLowerCase().includes(needle))) : rows.slice();
    if (order !== null) kept.sort((a, b) => (descending ? -1 : 1) * compareCells(a[order], b[order]));
    if (!state || !(state.files.length || state.ranks)) return kept;
    const first = kept.filter((row) => isChosen(chosenBy(title, columns, row), state));
    return first.length ? [...first, ...kept.filter((row) => !first.includes(row))] : kept;
  };
  const draw = () => {
    const kept = chosen();
    table(holder, columns.map((column) => column.name), kept.slice(0, limit).map((row) => row.map((cell, n) => shownText(columns[n], cell))), (number) => {
      descending = order === number ? !descending : columns[number].kind !== "text";
      order = number;
      draw();
    });
    dressTable(holder, columns, order, descending);
    const lines = holder.querySelectorAll("tbody tr");
    kept.slice(0, limit).forEach((row, n) => {
      const wanted = state ? chosenBy(title, columns, row) : null;
      if (!wanted) return;
      const button = element("button", lines[n].cells[0].textContent, "pick");
      button.type = "button";
      button.title = "Show its calls in the charts";
      button.addEventListener("click", () => chooseRow(wanted, state));
      lines[n].cells[0].replaceChildren(button);
      lines[n].classList.toggle("chosen", isChosen(wanted, state));
    });
    if (kept.length > limit) {
      const left = kept.length - limit, more = element("button", left <= 200 ? `show ${count(left)} more` : `show 200 of ${count(left)} more`);
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
  if (state) state.listeners.add((changed) => { if (changed.includes("files") || changed.includes("ranks")) draw(); });
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
