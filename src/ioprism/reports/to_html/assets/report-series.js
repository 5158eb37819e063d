// Curves over time that follow every filter: bandwidth by direction, and how many calls run at once.
const SYSTEM = ["posix", "stdio", "daos"];

// The interfaces whose bytes are counted: those that talk to the system, else the deepest there is.
function deepest(marks) {
  const present = layersOf(marks), system = present.filter((name) => SYSTEM.includes(name));
  return new Set((system.length ? system : present.slice(-1)).map((name) => data.layers.indexOf(name)));
}

function seriesOf(shown, state, columns, amount, rowOf, rows) {
  const { marks, lit } = shown, counted = deepest(marks), { low, high } = state.time;
  const sums = spread(marks, {
    low, high, columns, rows, wanted: (i) => counted.has(marks.layer[i]),
    rowOf: (i) => (lit[i] === 2 && shown.rows.of(marks.rank[i], 1e9) >= 0 ? rowOf(i) : -1), amount: (i) => amount(i),
  });
  const step = (high - low) / columns;
  return Array.from({ length: rows }, (_, row) => ({ start: low, step, values: Array.from(sums.subarray(row * columns, (row + 1) * columns), (v) => v / step) }));
}

function bandwidthPlot(place, shown, state) {
  const { marks } = shown, rhythm = data.rhythm, found = rhythm && rhythm.period;
  const curves = [{ name: "read", colour: "--c1", start: 0, step: 1, values: [] }, { name: "written", colour: "--c2", start: 0, step: 1, values: [] }];
  if (found) {
    const mean = rhythm.signal.mean, wave = (x) => Math.max(0, mean + found.amplitude * Math.cos(2 * Math.PI * found.frequency * x + found.phase));
    curves.push({ name: `dominant wave, every ${duration(found.seconds)}`, colour: "--c3", width: 2, at: wave });
  }
  const marked = rhythm && rhythm.next ? [{ x: rhythm.next.start, name: "next phase expected" }] : [];
  return plot(place, {
    label: "Bandwidth over time", axis: state.time, height: 190, curves, bands: found ? found.valid_ranges : [], marks: marked, upText: rate, lazily: whenSeen,
    prepare(columns) {
      const made = shown.marks.count ? seriesOf(shown, state, columns, (i) => shown.marks.bytes[i], (i) => movesBytes(shown.marks, i) ? shown.marks.operation[i] : -1, 2) : [];
      made.forEach((curve, n) => Object.assign(curves[n], curve));
      if (!marks.count && rhythm) Object.assign(curves[1], { name: "bandwidth" }, rhythm.signal);
    },
  });
}

function concurrencyPlot(place, shown, state) {
  const curves = ["read", "write", "metadata"].map((name, n) => ({ name: `${name} calls`, colour: `--c${n + 1}`, start: 0, step: 1, values: [] }));
  return plot(place, {
    label: "Calls that run at the same time", axis: state.time, height: 150, curves, lazily: whenSeen,
    prepare(columns) {
      const made = seriesOf(shown, state, columns, (i) => busyOf(shown.marks, i), (i) => Math.min(2, shown.marks.operation[i]), 3);
      made.forEach((curve, n) => Object.assign(curves[n], curve));
    },
  });
}

// How many requests have which size, of what is in view.
function sizeHistogram(place, shown, state) {
  const { marks, lit } = shown, counted = deepest(marks), counts = [new Float64Array(10), new Float64Array(10)];
  eachStretch(marks, state.time.low, state.time.high, (from, to) => {
    if (!counted.has(marks.layer[from]) || marks.operation[from] > 1) return;
    for (let i = from; i < to; i += 1) {
      if (lit[i] !== 2 || !movesBytes(marks, i)) continue;
      const calls = callsOf(marks, i);
      counts[marks.operation[i]][binOf(SIZE_LIMITS, marks.bytes[i] / Math.max(1, calls))] += calls;
    }
  });
  const rows = SIZE_NAMES.map((name, bin) => ({ name, parts: [counts[0][bin], counts[1][bin]] }));
  const used = rows.map((row, bin) => (row.parts[0] + row.parts[1] > 0 ? bin : -1)).filter((bin) => bin >= 0);
  if (!used.length) { place.replaceChildren(element("p", "No reads or writes in view.", "hint")); return; }
  bars(place, rows.slice(used[0], used[used.length - 1] + 1), ["reads", "writes"], count);
}

// Horizontal bars as a table: readable without seeing them.
function bars(place, rows, titles, textOf) {
  const highest = Math.max(1e-300, ...rows.map((row) => Math.max(...row.parts)));
  const made = element("table", undefined, "bars"), head = made.createTHead().insertRow();
  head.append(element("th", ""), ...titles.flatMap((title) => [element("th", title), element("td", "")]));
  const body = made.createTBody();
  for (const row of rows) {
    const line = body.insertRow(), name = element("th", row.name);
    name.scope = "row";
    line.append(name);
    row.parts.forEach((value, n) => {
      const bar = element("span", undefined, `bar part${n + 1}`);
      bar.style.width = `${100 * value / highest}%`;
      const cell = line.insertCell();
      cell.textContent = value > 0 ? textOf(value) : "";
      const drawn = line.insertCell();
      drawn.className = "drawn";
      drawn.append(bar);
    });
  }
  place.replaceChildren(made);
}
