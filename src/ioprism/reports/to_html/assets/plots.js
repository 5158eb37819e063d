// Plots over a shared horizontal axis: wheel and +/- zoom, drag and arrows move, 0 or double click shows all.
const RATIO = window.devicePixelRatio || 1;
const LEFT = 84, BOTTOM = 26, TOP = 8, RIGHT = 10;
const NAME_ROW = 15, NAME_ROWS = 4; // pixels of a name above the curves, and the most rows of them

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// The stretch of the axis that all plots of a group show.
function axis(low, high) {
  const plots = new Set();
  const made = { low, high, first: low, last: high, plots };
  made.show = (a, b) => {
    const widest = made.last - made.first;
    const width = Math.min(widest, Math.max((b - a), widest * 1e-7));
    made.low = Math.min(Math.max(a, made.first), made.last - width);
    made.high = made.low + width;
    plots.forEach((plot) => plot.draw());
  };
  made.zoom = (factor, at) => made.show(at - (at - made.low) * factor, at + (made.high - at) * factor);
  made.move = (share) => made.show(made.low + share * (made.high - made.low), made.high + share * (made.high - made.low));
  made.reset = () => made.show(made.first, made.last);
  return made;
}

function ticks(low, high, wanted) {
  const raw = (high - low) / wanted, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw);
  const found = [];
  for (let at = Math.ceil(low / step) * step; at <= high + step * 1e-9; at += step) found.push(+at.toPrecision(12));
  return found;
}

const plain = (value) => value === 0 ? "0" : Math.abs(value) >= 1e5 || Math.abs(value) < 1e-3 ? value.toExponential(2) : String(+value.toPrecision(5));

// curves: {name, colour, at(x) or start/step/values, steps: true}; bands: [[a, b]]; marks: [{x, name}]
// prepare(columns) may change the curves before they are drawn; lazily(canvas, paint) says when.
function plot(place, options) {
  const canvas = element("canvas"), caption = element("figcaption"), said = element("output");
  canvas.tabIndex = 0;
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", options.label);
  for (const curve of options.curves) {
    const key = element("span", curve.name, "key");
    key.dataset.colour = curve.colour;
    caption.append(key);
  }
  caption.append(said);
  place.replaceChildren(canvas, caption);
  const view = options.axis;
  const height = options.height || 220;
  const made = { draw, paint, canvas, height, label: options.label };
  let frame = 0, width = 0;
  canvas.style.height = `${height}px`;

  function valueAt(curve, x) {
    if (curve.at) return curve.at(x);
    const place = Math.floor((x - curve.start) / curve.step);
    return place < 0 || place >= curve.values.length ? null : curve.values[place];
  }

  function highest() {
    let low = options.low === undefined ? 0 : options.low, high = options.high === undefined ? 0 : options.high;
    for (const curve of options.curves) {
      if (curve.at) continue;
      const from = Math.max(0, Math.floor((view.low - curve.start) / curve.step));
      const to = Math.min(curve.values.length - 1, Math.ceil((view.high - curve.start) / curve.step));
      for (let i = from; i <= to; i += 1) {
        if (curve.values[i] > high) high = curve.values[i];
        if (curve.values[i] < low) low = curve.values[i];
      }
    }
    return [low, high > low ? high : low + 1];
  }

  function draw() {
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(() => (options.lazily ? options.lazily(canvas, () => paint()) : paint()));
  }

  function paint(other) {
    width = canvas.clientWidth || 800;
    if (!other) {
      canvas.width = width * RATIO;
      canvas.height = height * RATIO;
      canvas.style.height = `${height}px`;
    }
    const pen = other || canvas.getContext("2d");
    if (!other) pen.scale(RATIO, RATIO);
    pen.font = "12px system-ui, sans-serif";
    if (options.prepare) options.prepare(Math.round(width - RIGHT - LEFT));
    const [low, high] = highest();
    const right = width - RIGHT, floor = height - BOTTOM;
    const across = (x) => LEFT + (x - view.low) / (view.high - view.low) * (right - LEFT);
    const placed = placedMarks(pen, across, right);
    const top = TOP + NAME_ROW * Math.max(0, ...placed.map((one) => Math.min(one.row + 1, NAME_ROWS)));
    const up = (y) => floor - (y - low) / (high - low) * (floor - top);
    const shade = ([a, b]) => {
      const from = Math.max(LEFT, across(a)), to = Math.min(right, across(b));
      if (to > from) pen.fillRect(from, top, to - from, floor - top);
    };
    pen.fillStyle = colour("--band");
    (options.bands || []).forEach(shade);
    pen.fillStyle = colour("--mark");
    pen.globalAlpha = 0.3;
    (options.ahead || []).forEach(shade);
    pen.globalAlpha = 1;
    pen.strokeStyle = colour("--line");
    pen.fillStyle = colour("--dim");
    pen.lineWidth = 1;
    const unit = options.binary && high > 0 ? 1024 ** Math.floor(Math.log2(high) / 10) : 1;
    for (const y of ticks(low / unit, high / unit, 4).map((tick) => tick * unit)) {
      pen.beginPath(); pen.moveTo(LEFT, up(y)); pen.lineTo(right, up(y)); pen.stroke();
      pen.textAlign = "right";
      pen.fillText((options.upText || plain)(y), LEFT - 6, up(y) + 4);
    }
    for (const x of ticks(view.low, view.high, Math.max(2, Math.floor(width / 130)))) {
      const edge = across(x) > right - 24;
      pen.textAlign = edge ? "right" : "center";
      pen.fillText(`${plain(x)} ${options.unit || "s"}`, edge ? right + RIGHT : across(x), height - 8);
    }
    pen.save();
    pen.beginPath(); pen.rect(LEFT, TOP, right - LEFT, floor - TOP + 1); pen.clip();
    for (const curve of options.curves) stroke(pen, curve, across, up, right);
    for (const [a, b] of options.phases || []) {
      pen.fillStyle = colour("--c3");
      pen.fillRect(across(a), floor - 5, Math.max(1.5, across(b) - across(a)), 5);
    }
    drawMarks(pen, placed, top, floor);
    pen.restore();
    for (const key of caption.querySelectorAll(".key")) key.style.setProperty("--tone", colour(key.dataset.colour));
  }

  // Names stand above the curves, each in the highest row in which it hides no other name, no line
  // crosses it, and from which its line crosses none; those that find no row are left out. A name
  // that would leave the plot stands left of its line: these are placed from the right edge on.
  function placedMarks(pen, across, right) {
    const boxes = (options.marks || []).map((mark) => {
      const x = across(mark.x), wide = pen.measureText(mark.name).width + 8, left = x + wide > right;
      return { mark, x, left, from: left ? x - wide : x, to: left ? x : x + wide };
    }).filter(({ x }) => x >= LEFT && x <= right);
    const placed = [];
    for (const box of boxes.sort((a, b) => a.left - b.left || (a.left ? b.x - a.x : a.x - b.x))) {
      let row = 0;
      while (row < NAME_ROWS && placed.some((other) => (other.row === row && other.from < box.to && box.from < other.to)
        || (row < other.row && other.row < NAME_ROWS && other.from < box.x && box.x < other.to)
        || (other.row < row && box.from < other.x && other.x < box.to))) row += 1;
      placed.push({ ...box, row });
    }
    return placed;
  }

  function drawMarks(pen, placed, top, floor) {
    for (const { mark, x, left, row } of placed) {
      const named = row < NAME_ROWS;
      pen.strokeStyle = pen.fillStyle = colour(mark.colour || "--mark");
      pen.lineWidth = mark.colour ? 2 : 1;
      pen.setLineDash(mark.colour ? [] : [5, 4]);
      pen.beginPath(); pen.moveTo(x, named ? TOP + NAME_ROW * row : top); pen.lineTo(x, floor); pen.stroke();
      pen.setLineDash([]);
      pen.textAlign = left ? "right" : "left";
      if (named) pen.fillText(mark.name, x + (left ? -4 : 4), TOP + 12 + NAME_ROW * row);
    }
  }

  // Each column of pixels gets a line from the lowest to the highest value in it.
  function stroke(pen, curve, across, up, right) {
    pen.strokeStyle = colour(curve.colour);
    pen.lineWidth = curve.width || 1.3;
    pen.beginPath();
    let begun = false;
    const perPixel = (view.high - view.low) / (right - LEFT);
    for (let pixel = LEFT; pixel <= right; pixel += 1) {
      const x = view.low + (pixel - LEFT) * perPixel;
      let low = Infinity, high = -Infinity;
      if (curve.at) { const value = curve.at(x); if (value !== null) low = high = value; } else {
        const from = Math.floor((x - curve.start) / curve.step);
        const to = Math.max(from, Math.ceil((x + perPixel - curve.start) / curve.step) - 1);
        for (let i = Math.max(0, from); i <= Math.min(to, curve.values.length - 1); i += 1) {
          const value = curve.values[i];
          if (value === null) continue;
          if (value < low) low = value;
          if (value > high) high = value;
        }
      }
      if (low === Infinity) { begun = false; continue; }
      if (begun) pen.lineTo(pixel, up(low)); else pen.moveTo(pixel, up(low));
      if (high > low) pen.lineTo(pixel, up(high));
      begun = true;
    }
    pen.stroke();
  }

  const where = (event) => {
    const box = canvas.getBoundingClientRect();
    return view.low + (event.clientX - box.left - LEFT) / (width - RIGHT - LEFT) * (view.high - view.low);
  };
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    view.zoom(event.deltaY > 0 ? 1.25 : 0.8, where(event));
  }, { passive: false });
  let held = null;
  canvas.addEventListener("pointerdown", (event) => { held = event.clientX; canvas.setPointerCapture(event.pointerId); });
  canvas.addEventListener("pointerup", () => { held = null; });
  canvas.addEventListener("pointermove", (event) => {
    if (held !== null) {
      view.move((held - event.clientX) / (width - RIGHT - LEFT));
      held = event.clientX;
    }
    const x = where(event);
    const texts = options.curves.map((curve) => [curve.name, valueAt(curve, x)]).filter(([, v]) => v !== null && v !== undefined);
    said.textContent = `${plain(x)} ${options.unit || "s"}: ` + texts.map(([n, v]) => `${n} ${(options.upText || plain)(v)}`).join(", ");
  });
  canvas.addEventListener("pointerleave", () => { said.textContent = ""; });
  canvas.addEventListener("dblclick", () => view.reset());
  canvas.addEventListener("keydown", (event) => {
    const middle = (view.low + view.high) / 2;
    const actions = {
      "+": () => view.zoom(0.8, middle), "=": () => view.zoom(0.8, middle), "-": () => view.zoom(1.25, middle),
      ArrowLeft: () => view.move(-0.1), ArrowRight: () => view.move(0.1), "0": () => view.reset(),
    };
    if (actions[event.key]) { event.preventDefault(); actions[event.key](); }
  });
  view.plots.add(made);
  new ResizeObserver(draw).observe(canvas);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  draw();
  return made;
}

// Power over time and period, dark is little.
function heat(place, options) {
  const canvas = element("canvas"), caption = element("figcaption"), said = element("output");
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", options.label);
  caption.append(said);
  place.replaceChildren(canvas, caption);
  const rows = options.periods.length, columns = options.columns;
  const levels = Uint8Array.from(atob(options.power), (c) => c.charCodeAt(0));
  const picture = document.createElement("canvas");
  picture.width = columns; picture.height = rows;
  const image = picture.getContext("2d").createImageData(columns, rows);
  for (let row = 0; row < rows; row += 1) for (let column = 0; column < columns; column += 1) {
    const [r, g, b] = heatColour(levels[row * columns + column] / 255);
    image.data.set([r, g, b, 255], 4 * ((rows - 1 - row) * columns + column));
  }
  picture.getContext("2d").putImageData(image, 0, 0);
  const view = options.axis, height = 220;
  let width = 0, frame = 0;
  function draw() { cancelAnimationFrame(frame); frame = requestAnimationFrame(paint); }
  function paint() {
    width = canvas.clientWidth || 800;
    canvas.width = width * RATIO; canvas.height = height * RATIO; canvas.style.height = `${height}px`;
    const pen = canvas.getContext("2d");
    pen.scale(RATIO, RATIO);
    pen.font = "12px system-ui, sans-serif";
    const span = options.end - options.start, floor = height - BOTTOM;
    const from = (view.low - options.start) / span * columns, wide = (view.high - view.low) / span * columns;
    pen.drawImage(picture, from, 0, wide, rows, LEFT, TOP, width - RIGHT - LEFT, floor - TOP);
    if (options.answer && options.answer >= options.periods[0] && options.answer <= options.periods[rows - 1]) {
      const share = Math.log(options.answer / options.periods[0]) / Math.log(options.periods[rows - 1] / options.periods[0]);
      const y = floor - (share * (rows - 1) + 0.5) / rows * (floor - TOP);
      pen.strokeStyle = "#fff"; pen.lineWidth = 1.5; pen.setLineDash([6, 5]);
      pen.beginPath(); pen.moveTo(LEFT, y); pen.lineTo(width - RIGHT, y); pen.stroke();
      pen.setLineDash([]);
    }
    pen.fillStyle = colour("--dim");
    for (let i = 0; i < 5; i += 1) {
      const row = Math.round(i / 4 * (rows - 1));
      pen.textAlign = "right";
      pen.fillText(`${+options.periods[row].toPrecision(3)} s`, LEFT - 6, floor - (row + 0.5) / rows * (floor - TOP) + 4);
    }
    for (const x of ticks(view.low, view.high, Math.max(2, Math.floor(width / 130)))) {
      const at = LEFT + (x - view.low) / (view.high - view.low) * (width - RIGHT - LEFT), edge = at > width - RIGHT - 24;
      pen.textAlign = edge ? "right" : "center";
      pen.fillText(`${plain(x)} s`, edge ? width : at, height - 8);
    }
  }
  canvas.addEventListener("pointermove", (event) => {
    const box = canvas.getBoundingClientRect();
    const x = view.low + (event.clientX - box.left - LEFT) / (width - RIGHT - LEFT) * (view.high - view.low);
    const row = Math.floor((1 - (event.clientY - box.top - TOP) / (height - BOTTOM - TOP)) * rows);
    if (row >= 0 && row < rows) said.textContent = `${plain(x)} s: period ${plain(options.periods[row])} s`;
  });
  view.plots.add({ draw });
  new ResizeObserver(draw).observe(canvas);
  draw();
}

// From dark blue over green to yellow, readable without colour vision.
function heatColour(share) {
  const stops = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];
  const at = Math.min(3.9999, share * 4), low = Math.floor(at), part = at - low;
  return stops[low].map((value, i) => Math.round(value + part * (stops[low + 1][i] - value)));
}
