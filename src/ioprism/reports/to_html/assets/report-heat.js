// Rows over time as a heat map: bytes of ranks, bytes of storage targets.
function heatImage(sums, rows, columns) {
  const image = new ImageData(columns, rows), highest = largest(sums) || 1;
  for (let p = 0; p < rows * columns; p += 1) {
    if (!(sums[p] > 0)) continue;
    const share = 0.06 + 0.94 * Math.cbrt(sums[p] / highest), [r, g, b] = heatColour(share);
    image.data.set([r, g, b, 255], 4 * p);
  }
  return image;
}

function rankHeat(place, shown, state) {
  let kept = null;
  return frame(place, {
    label: "Heat map: bytes of every rank over time", axis: state.time, height: Math.max(72, Math.min(220, 8 * shown.ranks)) + TOP + BOTTOM,
    paint(pen, box) {
      const { marks, lit } = shown, ranks = shown.rows.kept.length, rows = Math.max(1, Math.min(ranks, 128)), columns = Math.min(box.width, 240);
      const counted = deepest(marks), { low, high } = state.time;
      const sums = spread(marks, {
        low, high, columns, rows, values: marks.bytes, lit,
        rowOf: (i) => (counted.has(marks.layer[i]) && marks.operation[i] < 2 ? shown.rows.of(marks.rank[i], rows) : -1),
      });
      kept = { sums, rows, columns, ranks };
      drawImage(pen, heatImage(sums, rows, columns), box);
      if (!pen.isSvg) heatScale(find("heat-scale"), largest(sums), (value) => `${bytes(value)} in ${duration((high - low) / columns)}`);
      leftLabels(pen, box, rows, (row) => `rank ${shown.rows.kept[Math.floor(row * ranks / rows)]}`);
    },
    hover(x, y, box) {
      const row = Math.floor((y - box.top) / box.height * kept.rows), column = Math.floor((x - state.time.low) / (state.time.high - state.time.low) * kept.columns);
      if (row < 0 || row >= kept.rows || column < 0 || column >= kept.columns) return null;
      const first = Math.floor(row * kept.ranks / kept.rows), last = Math.max(first, Math.ceil((row + 1) * kept.ranks / kept.rows) - 1);
      const names = shown.rows.kept, width = (state.time.high - state.time.low) / kept.columns;
      return [["rank", first === last ? String(names[first]) : `${names[first]} to ${names[last]}`], ["at", clock(x)], ["moved", `${bytes(kept.sums[row * kept.columns + column])} in ${duration(width)}`]];
    },
  });
}

// Which storage targets a request touches, and how many of its bytes lie on each.
function onTargets(marks, i, take) {
  const layout = data.stripes[marks.file[i]];
  if (!layout || !(marks.flags[i] & HAS_PLACE) || !(marks.bytes[i] > 0) || callsOf(marks, i) > 1) return;
  const [size, targets] = layout, from = marks.offset[i], to = from + marks.bytes[i];
  const first = Math.floor(from / size), last = Math.floor((to - 1) / size), turns = Math.min(last - first + 1, targets.length);
  for (let step = 0; step < turns; step += 1) {
    const stripe = first + step, rounds = Math.floor((last - stripe) / targets.length) + 1;
    let held = rounds * size;
    if (step === 0) held -= from - first * size;
    if ((last - stripe) % targets.length === 0) held -= (last + 1) * size - to;
    take(targets[stripe % targets.length], held);
  }
}

function targetsTouched(marks, i) {
  const found = [];
  onTargets(marks, i, (target) => found.push(target));
  return found;
}

function allTargets() {
  return [...new Set(Object.values(data.stripes).flatMap(([, targets]) => targets))].sort((a, b) => a - b);
}

function targetLoads(shown, state, columns, targets) {
  const { marks, lit } = shown, place = new Map(targets.map((target, n) => [target, n])), counted = deepest(marks);
  const over = new Float64Array(targets.length * columns), totals = targets.map(() => [0, 0]);
  const { low, high } = state.time, scale = columns / (high - low);
  eachStretch(marks, low, high, (from, to) => {
    if (!counted.has(marks.layer[from]) || marks.operation[from] > 1) return;
    for (let i = from; i < to; i += 1) {
      if (lit[i] !== 2) continue;
      const column = Math.max(0, Math.min(columns - 1, Math.floor((timeOf(marks, i) - low) * scale)));
      onTargets(marks, i, (target, held) => {
        const row = place.get(target);
        over[row * columns + column] += held;
        totals[row][marks.operation[i]] += held;
      });
    }
  });
  return { over, totals };
}

function targetHeat(place, totalsPlace, shown, state) {
  const targets = allTargets(), columns = 240;
  let kept = null;
  return frame(place, {
    label: "Storage targets: bytes over time", axis: state.time, height: Math.max(72, Math.min(260, 9 * targets.length)) + TOP + BOTTOM,
    paint(pen, box) {
      kept = targetLoads(shown, state, columns, targets);
      drawImage(pen, heatImage(kept.over, targets.length, columns), box);
      leftLabels(pen, box, targets.length, (row) => `OST ${targets[row]}`);
      if (!pen.isSvg) { targetTotals(totalsPlace, targets, kept.totals); heatScale(find("targets-scale"), largest(kept.over), bytes); }
    },
    hover(x, y, box) {
      const row = Math.floor((y - box.top) / box.height * targets.length), column = Math.floor((x - state.time.low) / (state.time.high - state.time.low) * columns);
      if (!kept || row < 0 || row >= targets.length || column < 0 || column >= columns) return null;
      return [["storage target", String(targets[row])], ["at", clock(x)], ["moved", bytes(kept.over[row * columns + column])], ["read in view", bytes(kept.totals[row][0])], ["written in view", bytes(kept.totals[row][1])]];
    },
  });
}

function targetTotals(place, targets, totals) {
  const rows = targets.map((target, n) => ({ name: `OST ${target}`, parts: totals[n] }));
  bars(place, rows.slice(0, 256), ["read", "written"], bytes);
}
