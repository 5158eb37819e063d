// Marks to pixels without a graphics card: how much of each pixel's time every category takes.
let planes = new Float32Array(0); // kept from picture to picture: memory is dear to fetch

function emptyPlanes(length) {
  if (planes.length < length) planes = new Float32Array(length);
  return planes.subarray(0, length).fill(0);
}

function rasterise(marks, { low, high, width, rows, rowOf, layer, lit, category, categories }) {
  const cells = emptyPlanes((categories + 1) * rows * width), size = rows * width;
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

// Adds up amounts in columns and rows, each spread evenly over a mark's time. All marks of a stream share a row.
function spread(marks, { low, high, columns, rows, rowOf, values, lit }) {
  const sums = new Float64Array(rows * columns);
  const origin = (low - marks.origin) / marks.tick, scale = columns * marks.tick / (high - low);
  const { start, duration } = marks, end = columns - 1;
  eachStretch(marks, low, high, (from, to) => {
    const row = rowOf(from);
    if (row < 0) return;
    const base = row * columns;
    for (let i = from; i < to; i += 1) {
      const value = values[i];
      if (lit[i] !== 2 || !(value > 0)) continue;
      const x = (start[i] - origin) * scale, long = duration[i] * scale + 1e-9, until = x + long;
      const a = x < 0 ? 0 : x, b = until > columns ? columns : until;
      if (b <= a) continue;
      const first = a | 0, last = Math.min(end, b | 0), each = value / long;
      if (first === last) { sums[base + first] += each * (b - a); continue; }
      sums[base + first] += each * (first + 1 - a);
      for (let p = first + 1; p < last; p += 1) sums[base + p] += each;
      sums[base + last] += each * (b - last);
    }
  });
  return sums;
}
