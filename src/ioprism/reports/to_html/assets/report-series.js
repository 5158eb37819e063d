// Curves over time that follow every filter: bandwidth by direction, and how many calls run at once.
// The interfaces whose bytes are counted: the deepest there are (see model/layers.py).
function deepest(marks) {
  const present = layersOf(marks), lowest = Math.min(...present.map((name) => data.heights[name]));
  return new Set(present.filter((name) => data.heights[name] === lowest).map((name) => data.layers.indexOf(name)));
}

// Sums over time at the counted interfaces, per second; `rowOf` says to which curve a stream belongs.
function seriesOf(shown, state, columns, values, rowOf, rows) {
  const { marks, lit } = shown, counted = deepest(marks), { low, high } = state.time, step = (high - low) / columns;
  const sums = spread(marks, { low, high, columns, rows, values, lit, rowOf: (i) => (counted.has(marks.layer[i]) ? rowOf(i) : -1) });
  return Array.from({ length: rows }, (_, row) => ({ start: low, step, values: Array.from(sums.subarray(row * columns, (row + 1) * columns), (v) => v / step) }));
}

const bandwidthOf = (shown, state, columns, operation) => seriesOf(shown, state, columns, shown.marks.bytes, (i) => (shown.marks.operation[i] === operation ? 0 : -1), 1)[0];

// One curve for each direction; the dominant wave, where it holds and what comes next stand on the one that has them.
function bandwidthPlots(place, shown, state) {
  const rhythm = data.rhythm, moved = [0, 1].map((operation) => movedBy(shown.marks, operation));
  const carrier = !rhythm ? -1 : rhythm.of === "read" ? 0 : rhythm.of === "write" ? 1 : moved[0] > moved[1] ? 0 : 1;
  const wanted = [0, 1].filter((operation) => moved[operation] > 0 || (!shown.marks.count && operation === carrier));
  return wanted.map((operation) => {
    const figure = element("figure", undefined, "linked");
    place.append(figure);
    return bandwidthPlot(figure, shown, state, operation, operation === carrier ? rhythm : null);
  });
}

function movedBy(marks, operation) {
  let sum = 0;
  for (let i = 0; i < marks.count; i += 1) if (marks.operation[i] === operation) sum += marks.bytes[i];
  return sum;
}

function bandwidthPlot(place, shown, state, operation, rhythm) {
  const found = rhythm && rhythm.period, curve = { name: operation ? "written" : "read", colour: operation ? "--c2" : "--c1", start: 0, step: 1, values: [] }, curves = [curve];
  if (found) {
    const { mean } = rhythm.signal, wave = (x) => Math.max(0, mean + found.amplitude * Math.cos(2 * Math.PI * found.frequency * x + found.phase));
    curves.push({ name: `dominant wave, every ${duration(found.seconds)}; it holds where it is shaded`, colour: "--c3", width: 2, at: wave });
  }
  const following = rhythm && rhythm.next && rhythm.next.start < state.time.last ? [{ x: rhythm.next.start, name: "next phase expected" }] : [];
  // On the logarithmic axis one step is a factor of 1024; what is below 1 B/s is not drawn.
  const scaled = (value) => (state.log ? (value >= 1 ? Math.log2(value) / 10 : null) : value);
  if (curves[1]) { const wave = curves[1].at; curves[1].at = (x) => scaled(wave(x)) || 0; }
  return plot(place, {
    label: `Bandwidth: ${curve.name}`, axis: state.time, height: 140, curves, bands: found ? found.valid_ranges : [], marks: following, lazily: whenSeen,
    upText: (value) => rate(state.log ? 1024 ** value : value), get binary() { return !state.log; },
    prepare(columns) {
      const { marks } = shown;
      if (marks.count) Object.assign(curve, bandwidthOf(shown, state, columns, operation));
      else if (rhythm) Object.assign(curve, rhythm.signal);
      if (state.log) curve.values = curve.values.map(scaled);
    },
  });
}

function concurrencyPlot(place, shown, state) {
  const present = new Set(shown.marks.operation), names = ["read", "write", ...([...present].some((operation) => operation > 1) ? ["metadata"] : [])];
  const curves = names.map((name, n) => ({ name: `${name} calls`, colour: `--c${n + 1}`, start: 0, step: 1, values: [] }));
  return plot(place, {
    label: "Calls that run at the same time", axis: state.time, height: 150, curves, lazily: whenSeen,
    prepare(columns) {
      const { marks } = shown, ticks = marks.busy || marks.duration;
      seriesOf(shown, state, columns, ticks, (i) => Math.min(2, marks.operation[i]), names.length).forEach((curve, n) => {
        Object.assign(curves[n], curve, { values: curve.values.map((value) => value * marks.tick) });
      });
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
function bars(place, every, names, textOf) {
  const kept = names.map((_, n) => n).filter((n) => every.some((row) => row.parts[n] > 0));  // nothing read: no column for it
  const titles = kept.map((n) => names[n]), rows = every.map((row) => ({ ...row, parts: kept.map((n) => row.parts[n]), tones: kept }));
  const highest = Math.max(1e-300, ...rows.map((row) => Math.max(...row.parts)));
  const made = element("table", undefined, "bars"), head = made.createTHead().insertRow();
  head.append(element("th", ""), ...titles.flatMap((title) => [element("th", title), element("td", "")]));
  const body = made.createTBody();
  for (const row of rows) {
    const line = body.insertRow(), name = element("th", row.name);
    name.scope = "row";
    line.append(name);
    row.parts.forEach((value, n) => {
      const bar = element("span", undefined, `bar part${row.tones[n] + 1}`);
      bar.style.width = `${100 * value / highest}%`;
      const cell = line.insertCell();
      cell.textContent = value > 0 ? textOf(value) : "";
      const drawn = line.insertCell();
      drawn.className = "drawn";
      if (value > 0) drawn.append(bar);
    });
  }
  place.replaceChildren(made);
}
