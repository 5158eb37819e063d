// Rank over time, one facet for each interface: the outermost above those it calls.
function layersOf(marks) {
  const found = new Set();
  for (let s = 0; s + 1 < marks.streams.length; s += 1) found.add(marks.layer[marks.streams[s]]);
  return [...found].map((n) => data.layers[n]).sort((a, b) => data.heights[b] - data.heights[a]);
}

// Which ranks have rows: all of the job, or those chosen.
function rowsOf(ranks, text) {
  const wanted = rankTest(text), kept = [];
  for (let rank = 0; rank < ranks; rank += 1) if (wanted(rank)) kept.push(rank);
  const place = new Int32Array(ranks + 1).fill(-1);
  kept.forEach((rank, row) => { place[rank + 1] = row; });
  if (!text) place[0] = 0;
  return { kept, of: (rank, rows) => { const at = place[rank + 1]; return at === undefined || at < 0 ? -1 : kept.length > rows ? Math.floor(at * rows / kept.length) : at; } };
}

function timeline(place, shown, state, options) {
  const facets = [];
  for (const layer of layersOf(shown.marks)) {
    const figure = element("figure", undefined, "linked"), holder = element("div");
    figure.append(element("figcaption", data.titles[layer] || layer, "facet"), holder);
    place.append(figure);
    facets.push(facet(holder, layer, shown, state, options));
  }
  return facets;
}

function facet(place, layer, shown, state, options = {}) {
  const tall = Math.max(72, Math.min(options.height || 260, 9 * shown.ranks)) + TOP + BOTTOM;
  return frame(place, {
    label: `${options.name || ""}${data.titles[layer] || layer} calls: rank over time`, axis: state.time, height: tall,
    paint: (pen, box) => paintFacet(pen, box, layer, shown, state),
    hover: (x, y, box) => shown.explain(layer, x, y, box),
    pick: (x, y, box) => { const i = callAt(shown, layer, x, y, box, state); if (i >= 0 && marksFile(shown.marks, i)) state.set({ files: [shown.marks.file[i]] }); },
  });
}

const marksFile = (marks, i) => marks.file[i] >= 0 && data.files[marks.file[i]] !== undefined;

function paintFacet(pen, box, layer, shown, state) {
  const paint = PAINTS[state.colour], colours = paint.colours(shown.marks), categories = shown.used;
  const ranks = shown.rows.kept.length, rows = Math.max(1, Math.min(ranks, box.height));
  const cells = rasterise(shown.marks, {
    low: state.time.low, high: state.time.high, width: box.width, rows, layer: data.layers.indexOf(layer),
    rowOf: (rank) => shown.rows.of(rank, rows), lit: shown.lit, category: shown.category, categories,
  });
  drawImage(pen, imageOf(cells, { width: box.width, rows, categories, colours, share: Math.max(1, ranks / rows), faded: rgb("--faded") }), box);
  if (box.height / rows >= 4) {
    pen.fillStyle = colour("--ground");
    for (let row = 1; row < rows; row += 1) pen.fillRect(box.left, box.top + Math.round(row * box.height / rows) - 0.5, box.width, 1);
  }
  leftLabels(pen, box, rows, (row) => { const rank = shown.rows.kept[Math.floor(row * ranks / rows)]; return rank === undefined ? null : `rank ${rank}`; });
}

// The call under the pointer: of the ranks in that row, the one that is nearest in time.
function callAt(shown, layer, x, y, box, state) {
  const { marks, rows } = shown, shownRows = Math.max(1, Math.min(rows.kept.length, box.height));
  const row = Math.floor((y - box.top) / box.height * shownRows), wanted = data.layers.indexOf(layer);
  const reach = (state.time.high - state.time.low) / box.width * 3;
  let best = -1, distance = reach;
  eachStretch(marks, x - reach, x + reach, (from, to) => {
    if (marks.layer[from] !== wanted || rows.of(marks.rank[from], shownRows) !== row) return;
    for (let i = to - 1; i >= from && i > to - 4000; i -= 1) {
      if (!shown.lit[i]) continue;
      const a = timeOf(marks, i), b = a + lengthOf(marks, i), away = x < a ? a - x : x > b ? x - b : 0;
      if (away < distance || (away === 0 && best >= 0 && marks.duration[i] < marks.duration[best])) { best = i; distance = away; }
    }
  });
  return best;
}

function factsOf(marks, i, targetsOf) {
  const calls = callsOf(marks, i), bin = data.timeline.source === "heat map";
  const operation = data.operations[marks.operation[i]], rows = [];
  rows.push(["call", bin ? `${operation}s in this bin` : calls > 1 ? `${count(calls)} ${operation} calls` : operation]);
  rows.push(["interface", data.titles[data.layers[marks.layer[i]]] || ""]);
  if (marks.rank[i] >= 0) rows.push(["rank", String(marks.rank[i])]);
  rows.push(["from", clock(timeOf(marks, i))], [bin ? "bin" : "took", duration(calls > 1 ? busyOf(marks, i) : lengthOf(marks, i))]);
  if (marks.flags[i] & HAS_BYTES) rows.push(["bytes", `${bytes(marks.bytes[i])} (${count(marks.bytes[i])} B)`]);
  if (marks.flags[i] & HAS_PLACE) rows.push(["offset", `${count(marks.offset[i])} B`]);
  if (!bin) rows.push(["file", fileName(marks.file[i])]);
  const targets = targetsOf ? targetsOf(marks, i) : [];
  if (targets.length) rows.push(["storage targets", targets.length > 6 ? `${targets.slice(0, 6).join(", ")} and ${targets.length - 6} more` : targets.join(", ")]);
  return rows;
}

function legend(place, shown, state) {
  const paint = PAINTS[state.colour], colours = paint.colours(shown.marks), names = paint.names(shown.marks);
  const present = new Set(shown.category);
  place.replaceChildren();
  names.forEach((name, n) => {
    if (!present.has(n)) return;
    const key = element("span", name, "swatch"), [r, g, b] = colours[n];
    key.style.setProperty("--tone", `rgb(${r} ${g} ${b})`);
    place.append(key);
  });
  if (state.show) place.append(element("span", "faded: not affected", "hint"));
}
