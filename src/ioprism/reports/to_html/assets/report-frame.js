// The frame of every picture: a canvas with an axis, zoom, pan, keys and a tip; painted when it is seen.
const waiting = new Map();
const seen = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    const paint = waiting.get(entry.target);
    if (entry.isIntersecting && paint) { waiting.delete(entry.target); seen.unobserve(entry.target); paint(); }
  }
}, { rootMargin: "300px" });

function whenSeen(canvas, paint) {
  const box = canvas.getBoundingClientRect();
  if (box.bottom > -300 && box.top < window.innerHeight + 300) { waiting.delete(canvas); paint(); return; }
  waiting.set(canvas, paint);
  seen.observe(canvas);
  paintLater();
}

// What is out of sight is painted too, when there is nothing else to do: for print and whole-page pictures.
let later = 0;
const idle = window.requestIdleCallback || ((work) => setTimeout(work, 200));
function paintLater() {
  if (later) return;
  later = idle(() => {
    later = 0;
    const [next] = waiting;
    if (!next) return;
    paintNow(...next);
    if (waiting.size) paintLater();
  });
}

function paintNow(canvas, paint) {
  waiting.delete(canvas);
  seen.unobserve(canvas);
  paint();
}
window.addEventListener("beforeprint", () => { for (const entry of [...waiting]) paintNow(...entry); });

// The colours of a heat map and what they stand for; colours grow with the cube root.
function heatScale(place, highest, text) {
  place.replaceChildren(element("span", "0"), element("span", undefined, "ramp"), element("span", text(highest / 8)), element("span", undefined, "ramp upper"), element("span", text(highest)));
}

function clock(x) {
  return `${plain(x)} s`;
}

function duration(seconds) {
  const whole = Math.round(seconds), two = (number) => String(number).padStart(2, "0");
  if (whole >= 3600) return `${Math.floor(whole / 3600)} h ${two(Math.floor(whole % 3600 / 60))} min`;
  if (seconds >= 60) return `${Math.floor(whole / 60)} min ${two(whole % 60)} s`;
  if (seconds >= 1 || seconds === 0) return `${+seconds.toPrecision(3)} s`;
  return seconds >= 1e-3 ? `${+(seconds * 1e3).toPrecision(3)} ms` : `${+(seconds * 1e6).toPrecision(3)} µs`;
}

// options: label, axis, height, paint(pen, box), hover(x, y, box) -> rows of facts, unit, plain: no time axis
function frame(place, options) {
  const canvas = element("canvas"), view = options.axis, height = options.height;
  canvas.tabIndex = 0;
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", options.label);
  canvas.style.height = `${height}px`;
  place.replaceChildren(canvas);
  let asked = 0, box = null;

  function paint(target) {
    const width = canvas.clientWidth || 800;
    const svg = Boolean(target);
    if (!svg) { canvas.width = width * RATIO; canvas.height = height * RATIO; canvas.style.height = `${height}px`; }
    const pen = target || canvas.getContext("2d");
    if (!svg) pen.scale(RATIO, RATIO);
    pen.font = "12px system-ui, sans-serif";
    const right = width - RIGHT, floor = height - (options.bare ? 4 : BOTTOM);
    const across = (x) => LEFT + (x - view.low) / (view.high - view.low) * (right - LEFT);
    box = { left: LEFT, right, top: TOP, floor, width: Math.round(right - LEFT), height: floor - TOP, across };
    if (!options.bare) bottomTicks(pen, view, box, height, options.unit === undefined ? "s" : options.unit);
    options.paint(pen, box);
  }
  const draw = () => { cancelAnimationFrame(asked); asked = requestAnimationFrame(() => whenSeen(canvas, () => paint())); };
  const made = { draw, paint, canvas, height, label: options.label };
  handle(canvas, view, () => box, options);
  view.plots.add(made);
  new ResizeObserver(draw).observe(canvas);
  draw();
  return made;
}

function bottomTicks(pen, view, box, height, unit) {
  pen.strokeStyle = colour("--line"); pen.lineWidth = 1; pen.fillStyle = colour("--dim");
  for (const x of ticks(view.low, view.high, Math.max(2, Math.floor(box.width / 130)))) {
    pen.beginPath(); pen.moveTo(box.across(x), box.top); pen.lineTo(box.across(x), box.floor + 3); pen.stroke();
    const edge = box.across(x) > box.right - 24;
    pen.textAlign = edge ? "right" : "center";
    pen.fillText(unit ? `${plain(x)} ${unit}` : plain(x), edge ? box.right + RIGHT : box.across(x), height - 8);
  }
}

// Mouse and keys: wheel zooms, drag moves, shift and drag chooses a stretch of time.
function handle(canvas, view, boxOf, options) {
  const where = (event) => {
    const edge = canvas.getBoundingClientRect(), box = boxOf();
    return [view.low + (event.clientX - edge.left - LEFT) / (box.right - LEFT) * (view.high - view.low), event.clientY - edge.top, event.clientX - edge.left];
  };
  canvas.addEventListener("wheel", (event) => {
    if (!boxOf()) return;
    event.preventDefault();
    view.zoom(event.deltaY > 0 ? 1.25 : 0.8, where(event)[0]);
  }, { passive: false });
  let held = null;
  canvas.addEventListener("pointerdown", (event) => {
    held = { x: event.clientX, start: event.clientX, from: where(event)[0], choose: event.shiftKey };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointerup", (event) => {
    if (held && held.choose && Math.abs(event.clientX - held.x) > 3) {
      const to = where(event)[0];
      view.show(Math.min(held.from, to), Math.max(held.from, to));
    }
    // A click that does not move chooses the call under it.
    else if (held && options.pick && boxOf() && Math.abs(event.clientX - held.start) < 3) { const [x, y] = where(event); options.pick(x, y, boxOf()); }
    held = null;
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!boxOf()) return;
    const [x, y, left] = where(event);
    if (held && !held.choose) {
      view.move((held.x - event.clientX) / (boxOf().right - LEFT));
      held.x = event.clientX;
    }
    if (!options.plain) document.body.style.setProperty("--cursor", `${left}px`);
    tip(options.hover && x >= view.low && x <= view.high ? options.hover(x, y, boxOf()) : null, event);
  });
  canvas.addEventListener("pointerleave", () => tip(null));
  canvas.addEventListener("dblclick", () => view.reset());
  canvas.addEventListener("keydown", (event) => zoomKey(view, event));
}

function zoomKey(view, event) {
  const middle = (view.low + view.high) / 2;
  const actions = {
    "+": () => view.zoom(0.8, middle), "=": () => view.zoom(0.8, middle), "-": () => view.zoom(1.25, middle),
    ArrowLeft: () => view.move(-0.1), ArrowRight: () => view.move(0.1), "0": () => view.reset(),
  };
  if (actions[event.key] && !event.ctrlKey && !event.metaKey) { event.preventDefault(); actions[event.key](); }
}

// A small card with facts beside the pointer.
function tip(rows, event) {
  const card = document.getElementById("tip");
  card.hidden = !rows || !rows.length;
  if (card.hidden) return;
  const list = element("dl");
  for (const [name, text] of rows) list.append(element("dt", name), element("dd", text));
  card.replaceChildren(list);
  const wide = card.offsetWidth, tall = card.offsetHeight;
  card.style.left = `${Math.max(4, event.clientX + 16 + wide > window.innerWidth ? event.clientX - wide - 12 : event.clientX + 16)}px`;
  card.style.top = `${Math.max(4, Math.min(event.clientY + 12, window.innerHeight - tall - 8))}px`;
}

// Labels at the left for rows of a picture.
function leftLabels(pen, box, rows, labelOf) {
  pen.fillStyle = colour("--dim"); pen.textAlign = "right";
  const wanted = Math.max(2, Math.floor(box.height / 20)), step = Math.max(1, Math.ceil(rows / wanted));
  for (let row = 0; row < rows; row += step) {
    const text = labelOf(row);
    if (text !== null) pen.fillText(text, box.left - 8, Math.max(box.top + 9, box.top + (row + 0.5) / rows * box.height + 4));
  }
}

function drawImage(pen, image, box) {
  const picture = document.createElement("canvas");
  picture.width = image.width; picture.height = image.height;
  picture.getContext("2d").putImageData(image, 0, 0);
  pen.imageSmoothingEnabled = false;
  pen.drawImage(picture, box.left, box.top, box.width, box.height);
}
