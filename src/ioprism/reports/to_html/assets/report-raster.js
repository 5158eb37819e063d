// Marks to pixels without a graphics card: how much of each pixel's time every category takes.
function rasterise(marks, { low, high, width, rows, rowOf, layer, lit, category, categories }) {
  const cells = new Float32Array((categories + 1) * rows * width), size = rows * width;
  const origin = (low - marks.origin) / marks.tick, scale = width * marks.tick / (high - low);
  const { start, duration, busy, rank } = marks;
  eachStretch(marks, low, high, (from, to) => {
    if (marks.layer[from] !== layer) return;
    const row = rowOf(rank[from]);
    if (row < 0) return;
    for (let i = from; i < to; i += 1) {
      if (!lit[i]) continue;
      const base = (lit[i] === 1 ? categories : category[i]) * size + row * width;
      const x = (start[i] - origin) * scale, long = duration[i] * scale;
      const dense = busy && duration[i] ? busy[i] / duration[i] : 1;
      const a = x < 0 ? 0 : x, b = Math.min(width, x + long), first = Math.min(width - 1, a | 0), last = Math.min(width - 1, b | 0);
      if (first === last) { cells[base + first] += Math.max(1e-4, (b - a) * dense); continue; }
      cells[base + first] += (first + 1 - a) * dense;
      for (let p = first + 1; p < last; p += 1) cells[base + p] += dense;
      cells[base + last] += Math.max(1e-4, (b - last) * dense);
    }
  });
  return cells;
}

// The strongest category colours a pixel; the busier the ranks of its row, the fuller the colour.
function imageOf(cells, { width, rows, categories, colours, share, faded }) {
  const image = new ImageData(width, rows), size = width * rows, out = new Uint32Array(image.data.buffer);
  for (let p = 0; p < size; p += 1) {
    let best = -1, most = 0, sum = 0;
    for (let k = 0, at = p; k < categories; k += 1, at += size) {
      const value = cells[at];
      if (value > 0) { sum += value; if (value > most) { most = value; best = k; } }
    }
    let tone = faded, alpha = 0;
    if (best >= 0) { tone = colours[best]; alpha = 90 + 165 * Math.sqrt(Math.min(1, sum / share)); }
    else if (cells[categories * size + p] > 0) alpha = 40 + 60 * Math.sqrt(Math.min(1, cells[categories * size + p] / share));
    if (alpha) out[p] = (Math.min(255, alpha) << 24 | tone[2] << 16 | tone[1] << 8 | tone[0]) >>> 0;
  }
  return image;
}

// Adds up amounts in columns and rows, each spread evenly over a mark's time.
function spread(marks, { low, high, columns, rows, wanted, rowOf, amount }) {
  const sums = new Float64Array(rows * columns);
  const origin = (low - marks.origin) / marks.tick, scale = columns * marks.tick / (high - low);
  eachStretch(marks, low, high, (from, to) => {
    if (!wanted(from)) return;
    for (let i = from; i < to; i += 1) {
      const row = rowOf(i);
      if (row < 0) continue;
      const value = amount(i), x = (marks.start[i] - origin) * scale, long = Math.max(1e-9, marks.duration[i] * scale);
      const a = Math.max(0, x), b = Math.min(columns, x + long), base = row * columns;
      if (b <= a && !(x >= 0 && x < columns)) continue;
      const first = Math.min(columns - 1, a | 0), last = Math.min(columns - 1, b | 0);
      if (first === last) { sums[base + first] += value * Math.min(1, Math.max(b - a, 1e-9) / long); continue; }
      const each = value / long;
      sums[base + first] += each * (first + 1 - a);
      for (let p = first + 1; p < last; p += 1) sums[base + p] += each;
      sums[base + last] += each * (b - last);
    }
  });
  return sums;
}
