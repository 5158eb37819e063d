// Spatiality: where in a file the reads and writes go, over time and over ranks.
function spaceSection(section, shown, state) {
  const choice = section.querySelector("select"), holders = section.querySelectorAll(".space");
  let drawn = [];
  const refill = () => {
    const files = placedFiles(shown);
    section.hidden = !files.length;
    const chosen = choice.value;
    choice.replaceChildren(...files.slice(0, 500).map(([file, moved]) => {
      const option = element("option", `${shortName(fileName(file))} (${bytes(moved)})`);
      option.value = String(file);
      option.title = fileName(file);
      return option;
    }));
    if (files.some(([file]) => String(file) === chosen)) choice.value = chosen;
  };
  const build = () => {
    drawn.forEach((one) => one.owner.plots.delete(one));
    const file = Number(choice.value), reach = extentOfFile(shown.marks, file), ranks = axis(0, Math.max(1, shown.ranks));
    for (const holder of holders) holder.hidden = !usesFile(shown.marks, file, Number(holder.dataset.operation));
    drawn = [...holders].filter((holder) => !holder.hidden).map((holder) => spacePicture(holder, shown, state, { file, reach, operation: Number(holder.dataset.operation), over: holder.dataset.over, ranks }));
  };
  choice.addEventListener("change", build);
  let begun = false;
  section.hidden = !marksHavePlaces(shown.marks);
  if (!section.hidden) whenSeen(section, () => { begun = true; refill(); if (choice.value) build(); });
  return { refresh() { if (!begun) return; const before = choice.value; refill(); if (choice.value && choice.value !== before) build(); else drawn.forEach((one) => one.draw()); } };
}

function marksHavePlaces(marks) {
  for (let s = 0; s + 1 < marks.streams.length; s += 1) {
    const i = marks.streams[s];
    if (marks.file[i] >= 0 && marks.operation[i] < 2 && (marks.flags[i] & HAS_PLACE)) return true;
  }
  return false;
}

function placedFiles(shown) {
  const { marks, lit } = shown, moved = new Map(), counted = deepest(marks);
  for (let i = 0; i < marks.count; i += 1) {
    if (lit[i] && counted.has(marks.layer[i]) && marks.file[i] >= 0 && (marks.flags[i] & HAS_PLACE) && movesBytes(marks, i)) moved.set(marks.file[i], (moved.get(marks.file[i]) || 0) + marks.bytes[i]);
  }
  return [...moved].sort((a, b) => b[1] - a[1]);
}

function usesFile(marks, file, operation) {
  for (let s = 0; s + 1 < marks.streams.length; s += 1) {
    const i = marks.streams[s];
    if (marks.file[i] === file && marks.operation[i] === operation) return true;
  }
  return false;
}

function extentOfFile(marks, file) {
  let reach = 1;
  for (let i = 0; i < marks.count; i += 1) if (marks.file[i] === file && (marks.flags[i] & HAS_PLACE)) reach = Math.max(reach, marks.offset[i] + extentOf(marks, i));
  return reach;
}

function spacePicture(place, shown, state, wanted) {
  const overTime = wanted.over === "time", view = overTime ? state.time : wanted.ranks, height = 190;
  const verb = wanted.operation ? "Writes" : "Reads";
  let kept = null;
  const made = frame(place, {
    label: `${verb}: file offset over ${wanted.over}`, axis: view, height, unit: overTime ? "s" : "", plain: !overTime,
    paint(pen, box) {
      kept = placed(shown, state, wanted, view, box);
      const tone = rgb(wanted.operation ? "--c2" : "--c1"), image = imageOf(kept, { width: box.width, rows: box.height, categories: 1, colours: [tone], share: 1, faded: rgb("--faded") });
      drawImage(pen, image, box);
      pen.fillStyle = colour("--dim"); pen.textAlign = "right";
      for (const share of [0, 0.5, 1]) pen.fillText(bytes(wanted.reach * share), box.left - 8, box.floor - share * box.height + (share === 1 ? 9 : share ? 4 : 0));
    },
    hover(x, y, box) {
      const offset = (1 - (y - box.top) / box.height) * wanted.reach;
      return offset < 0 || offset > wanted.reach ? null : [["offset", bytes(offset)], overTime ? ["time", clock(x)] : ["rank", String(Math.floor(x))]];
    },
  });
  made.owner = view;
  place.prepend(element("figcaption", `${verb}, over ${wanted.over}`, "facet"));
  return made;
}

// Pixels of offset (up) over time or rank (across) that requests touch.
function placed(shown, state, wanted, view, box) {
  const { marks, lit } = shown, { width, height } = box, cells = new Float32Array(2 * width * height), counted = deepest(marks);
  const overTime = wanted.over === "time", across = width / (view.high - view.low), up = height / wanted.reach;
  eachStretch(marks, state.time.low, state.time.high, (from, to) => {
    if (marks.file[from] !== wanted.file || marks.operation[from] !== wanted.operation || !counted.has(marks.layer[from])) return;
    for (let i = from; i < to; i += 1) {
      if (!lit[i] || !(marks.flags[i] & HAS_PLACE)) continue;
      const a = overTime ? timeOf(marks, i) : marks.rank[i], b = overTime ? a + lengthOf(marks, i) : a + 1;
      const left = Math.max(0, Math.floor((a - view.low) * across)), right = Math.min(width - 1, Math.max(left, Math.ceil((b - view.low) * across) - 1));
      const bottom = Math.max(0, height - 1 - Math.floor(marks.offset[i] * up)), top = Math.max(0, Math.min(bottom, height - Math.ceil((marks.offset[i] + extentOf(marks, i)) * up)));
      const base = lit[i] === 1 ? width * height : 0;
      if (left >= width || right < 0) continue;
      for (let y = top; y <= bottom; y += 1) for (let x = left; x <= right; x += 1) cells[base + y * width + x] = 1;
    }
  });
  return cells;
}
