// The page of a machine: choose jobs, count them again, draw.
const data = JSON.parse(document.getElementById("data").textContent);
const jobs = data.jobs, DIRECTIONS = ["read", "write"], MOVED = { read: "read", write: "written" }, ALL = jobs.id.map((_, place) => place);
const MEASURES = { intensity: "I/O intensity", burstiness: "burstiness", parallel_intensity: "parallel intensity" };
const chosen = { from: null, to: null, user: "", account: "", partition: "", cell: null };
const sorting = { column: 5, down: true };
const at = (id) => document.getElementById(id);
const word = (name, job) => jobs[name].words[jobs[name].of[job]];
const moved = (job) => (jobs.read.bytes[job] || 0) + (jobs.write.bytes[job] || 0);
const flags = (job) => jobs.flag_names.filter((_, bit) => jobs.flags[job] & (1 << bit));
const known = (values) => values.filter((value) => value !== null);

function selection() {
  const names = ["user", "account", "partition"].filter((name) => chosen[name] !== "");
  return ALL.filter((job) => (chosen.from === null || jobs.end[job] >= chosen.from)
    && (chosen.to === null || jobs.start[job] <= chosen.to)
    && names.every((name) => jobs[name].of[job] === Number(chosen[name])));
}

function eighty(values) {
  const sorted = known(values).sort((a, b) => a - b);
  return sorted.length ? sorted[Math.ceil(0.8 * sorted.length) - 1] : null;
}

function topShare(values) {
  const sorted = values.map((value) => value || 0).sort((a, b) => b - a);
  const total = sorted.reduce((sum, value) => sum + value, 0);
  const top = sorted.slice(0, Math.ceil(0.2 * sorted.length)).reduce((sum, value) => sum + value, 0);
  return total > 0 ? top / total : null;
}

function drawFacts(picked) {
  const place = at("facts");
  place.replaceChildren();
  const add = (title, value, note) => {
    const card = element("div");
    card.append(element("span", title), element("b", value), element("span", note));
    place.append(card);
  };
  add("jobs", count(picked.length), `sampled every ${data.interval} s (--grid ${data.settings.grid} --window ${data.settings.window})`);
  for (const direction of DIRECTIONS) {
    add(`${MOVED[direction]} by the servers`, bytes(data.machine[direction].bytes), `all ${count(data.machine.listed)} listed jobs and everything else, over the whole time`);
    const volumes = picked.map((job) => jobs[direction].bytes[job]);
    const speeds = picked.map((job) => jobs[direction].max_bandwidth[job]);
    const top = topShare(volumes);
    add(`${MOVED[direction]} by the chosen jobs`, bytes(volumes.reduce((sum, value) => sum + (value || 0), 0)),
      top === null ? "nothing moved" : `${(100 * top).toFixed(1)} % by the top 20 % of jobs; 80 % of jobs up to ${bytes(eighty(volumes))}`);
    add(`${direction} peak of one job`, rate(largest(speeds)), `80 % of jobs up to ${rate(eighty(speeds))}`);
  }
}

function drawHeat(direction, picked) {
  const moving = picked.filter((job) => jobs[direction].bytes[job] > 0 && jobs[direction].max_bandwidth[job] > 0);
  const svg = drawing(at(`heat-${direction}`), 540, 486, `${direction}: volume against maximum bandwidth`);
  const volume = moving.map((job) => jobs[direction].bytes[job]), speed = moving.map((job) => jobs[direction].max_bandwidth[job]);
  const peak = data.peaks[direction] || largest(speed);
  const [x0, x1] = powers(volume), [y0, y1] = powers(peak > 0 ? [...speed, peak] : speed), bins = 36;
  const box = { left: 64, top: 110, right: 430, bottom: 420 };
  const x = (power) => box.left + (power - x0) / (x1 - x0) * (box.right - box.left);
  const y = (power) => box.bottom - (power - y0) / (y1 - y0) * (box.bottom - box.top);
  shape(svg, "text", { x: box.left, y: 16, class: "title" }, `${direction}: ${count(moving.length)} jobs, ${count(picked.length - moving.length)} without`);
  shape(svg, "rect", { x: box.left, y: box.top, width: box.right - box.left, height: box.bottom - box.top, class: "axis" });
  const cells = new Map();
  const bin = (value, low, high) => Math.min(bins - 1, Math.max(0, Math.floor((Math.log2(value) - low) / (high - low) * bins)));
  moving.forEach((job, place) => {
    const key = bin(volume[place], x0, x1) * bins + bin(speed[place], y0, y1);
    if (!cells.has(key)) cells.set(key, []);
    cells.get(key).push(job);
  });
  const most = largest([...cells.values()].map((held) => held.length));
  const width = (box.right - box.left) / bins, height = (box.bottom - box.top) / bins;
  for (const [key, held] of cells) {
    const column = Math.floor(key / bins), row = key % bins;
    const strength = 0.18 + 0.82 * Math.log(1 + held.length) / Math.log(1 + most);
    const picture = chosen.cell && chosen.cell.direction === direction && chosen.cell.key === key ? "chosen" : "";
    const cell = shape(svg, "rect", { x: box.left + column * width, y: box.bottom - (row + 1) * height, width, height, "fill-opacity": strength.toFixed(2), class: `cell ${direction} ${picture}` });
    shape(cell, "title", {}, `${count(held.length)} ${held.length === 1 ? "job:" : "jobs, e.g."} ${jobs.id[held[0]]}: ${bytes(jobs[direction].bytes[held[0]])}, at most ${rate(jobs[direction].max_bandwidth[held[0]])}`);
    cell.addEventListener("click", () => { chosen.cell = picture ? null : { direction, key, held }; draw(); });
  }
  for (let power = x0; power <= x1; power += 5 * Math.ceil((x1 - x0) / 35)) shape(svg, "text", { x: x(power), y: box.bottom + 15, "text-anchor": "middle" }, bytes(2 ** power));
  for (let power = y0; power <= y1; power += 5 * Math.ceil((y1 - y0) / 50)) shape(svg, "text", { x: box.left - 5, y: y(power) + 4, "text-anchor": "end" }, rate(2 ** power));
  shape(svg, "text", { x: (box.left + box.right) / 2, y: box.bottom + 34, "text-anchor": "middle" }, "volume of the job");
  shape(svg, "text", { x: box.left, y: box.top - 78, "text-anchor": "start" }, "jobs by volume, and their cumulative share");
  shape(svg, "text", { x: box.right + 6, y: box.bottom + 34 }, "jobs by bandwidth");
  for (const [step, jobsOf] of [...new Set([1, Math.round(Math.sqrt(most)), most])].entries()) {
    shape(svg, "rect", { x: box.left + 74 * step, y: box.bottom + 46, width: 12, height: 12, class: direction, "fill-opacity": (0.18 + 0.82 * Math.log(1 + jobsOf) / Math.log(1 + (most || 1))).toFixed(2) });
    shape(svg, "text", { x: box.left + 74 * step + 17, y: box.bottom + 56 }, `${count(jobsOf)} ${jobsOf === 1 ? "job" : "jobs"}`);
  }
  shape(svg, "text", { x: box.left + 222, y: box.bottom + 56 }, `cell: × ${(2 ** ((x1 - x0) / bins)).toFixed(2)} in volume, × ${(2 ** ((y1 - y0) / bins)).toFixed(2)} in rate`);
  if (peak > 0) {
    shape(svg, "line", { x1: box.left, x2: box.right, y1: y(Math.log2(peak)), y2: y(Math.log2(peak)), class: "peak" });
    shape(svg, "text", { x: box.left + 4, y: y(Math.log2(peak)) - 4 }, data.peaks[direction] ? `peak ${rate(peak)}` : `highest seen ${rate(peak)}`);
  }
  margin(svg, direction, histogram(volume.map(Math.log2), x0, x1, bins), (place, part) => [box.left + place * width, box.top - 6 - 66 * part], width, (part) => 66 * part, false);
  margin(svg, direction, histogram(speed.map(Math.log2), y0, y1, bins), (place, part) => [box.right + 6 + 90 * part, box.bottom - place * height], height, (part) => 90 * part, true);
}

// Bars and the cumulative share along one edge of a heat map.
function margin(svg, direction, counts, point, thickness, length, sideways) {
  const most = largest(counts), sums = running(counts), total = sums[sums.length - 1];
  if (!total) return;
  const line = [];
  counts.forEach((value, place) => {
    const size = length(value / most), [left, top] = point(place, sideways ? 0 : value / most);
    if (value) shape(svg, "rect", sideways
      ? { x: left, y: top - thickness, width: size, height: thickness, class: direction, "fill-opacity": 0.35 }
      : { x: left, y: top, width: thickness, height: size, class: direction, "fill-opacity": 0.35 });
    const [px, py] = point(place + 1, sums[place] / total);
    line.push(`${px.toFixed(1)},${py.toFixed(1)}`);
  });
  shape(svg, "polyline", { points: line.join(" "), class: `curve ${direction}` });
}

function drawEighty(picked) {
  const columns = ["", ...data.thresholds.map((threshold) => `c = ${bytes(threshold)}: read / write`)];
  const rows = Object.entries(MEASURES).map(([measure, title]) => [title, ...data.thresholds.map((_, place) =>
    DIRECTIONS.map((direction) => share(eighty(picked.map((job) => jobs[direction][measure][place][job])))).join(" / "))]);
  table(at("eighty"), columns, rows);
}

function drawDistributions(picked) {
  const place = at("distributions");
  place.replaceChildren();
  for (const direction of DIRECTIONS) for (const [measure, title] of Object.entries(MEASURES)) {
    const figure = element("figure");
    place.append(figure);
    const svg = drawing(figure, 340, 210, `${direction}: ${title}`);
    shape(svg, "text", { x: 36, y: 14, class: "title" }, `${direction}: ${title}`);
    shape(svg, "rect", { x: 36, y: 24, width: 290, height: 150, class: "axis" });
    for (const tick of [0, 0.5, 1]) {
      shape(svg, "text", { x: 36 + 290 * tick, y: 190, "text-anchor": "middle" }, tick);
      shape(svg, "text", { x: 30, y: 178 - 150 * tick, "text-anchor": "end" }, tick);
    }
    data.thresholds.forEach((threshold, number) => {
      const values = known(picked.map((job) => jobs[direction][measure][number][job]));
      const sums = running(histogram(values, 0, 1, 100));
      const points = sums.map((sum, bin) => `${36 + 2.9 * (bin + 1)},${(174 - 150 * sum / (values.length || 1)).toFixed(1)}`);
      const line = shape(svg, "polyline", { points: ["36,174", ...points].join(" "), class: `curve ${direction} dash${number}` });
      shape(line, "title", {}, `c = ${bytes(threshold)}, ${count(values.length)} jobs`);
      shape(svg, "line", { x1: 60 + 90 * number, x2: 84 + 90 * number, y1: 203, y2: 203, class: `curve ${direction} dash${number}` });
      shape(svg, "text", { x: 88 + 90 * number, y: 207 }, bytes(threshold));
    });
  }
}

// With all jobs chosen, the servers' account of every job of the list; else of the chosen ones.
function movers(place, name, picked) {
  const columns = ["", "jobs", "read", "written", "shared part"];
  if (picked.length === ALL.length) {
    const rows = data.machine[`${name}s`].slice(0, 12);
    table(place, columns, rows.map((row) => [row[0], count(row[1]), ...row.slice(2).map(bytes)]));
    return;
  }
  const sums = new Map();
  for (const job of picked) {
    const held = sums.get(jobs[name].of[job]) || [0, 0, 0, 0];
    held[0] += 1;
    DIRECTIONS.forEach((direction, number) => { held[1 + number] += jobs[direction].bytes[job] || 0; held[3] += jobs[direction].shared_bytes[job] || 0; });
    sums.set(jobs[name].of[job], held);
  }
  const ordered = [...sums].sort((a, b) => b[1][1] + b[1][2] - a[1][1] - a[1][2]).slice(0, 12);
  table(place, columns, ordered.map(([number, held]) => [jobs[name].words[number] || "unknown", count(held[0]), ...held.slice(1).map(bytes)]));
}

const COLUMNS = ["job", "user", "account", "name", "start (UTC)", "moved", "read", "written", "max read", "max write", "I r / w", "servers", "coverage", "bytes are", "flags"];
const KEYS = [(job) => jobs.id[job], (job) => word("user", job), (job) => word("account", job), (job) => word("name", job), (job) => jobs.start[job], moved,
  (job) => jobs.read.bytes[job] || 0, (job) => jobs.write.bytes[job] || 0, (job) => jobs.read.max_bandwidth[job], (job) => jobs.write.max_bandwidth[job],
  (job) => jobs.write.intensity[0][job] || 0, (job) => jobs.servers[job], (job) => jobs.coverage[job] ?? 2, (job) => word("attribution", job), (job) => jobs.flags[job]];

function jobRow(job) {
  const both = DIRECTIONS.map((direction) => share(jobs[direction].intensity[0][job])).join(" / ");
  return [jobs.id[job], word("user", job), word("account", job), word("name", job), moment(jobs.start[job]), bytes(moved(job)), bytes(jobs.read.bytes[job]), bytes(jobs.write.bytes[job]),
    rate(jobs.read.max_bandwidth[job]), rate(jobs.write.max_bandwidth[job]), both, jobs.servers[job], share(jobs.coverage[job]), word("attribution", job), flags(job).join(" ")];
}

function listed(picked) {
  const key = KEYS[sorting.column], sign = sorting.down ? -1 : 1;
  return [...picked].sort((a, b) => { const left = key(a), right = key(b); return sign * (left < right ? -1 : left > right ? 1 : a - b); });
}

function drawJobs(picked) {
  const shown = chosen.cell ? chosen.cell.held : picked;
  at("cell").textContent = chosen.cell ? `Only the ${count(shown.length)} jobs of the chosen cell; click it again for all.` : `The first 25 of ${count(shown.length)}; click a heading to sort.`;
  table(at("jobs"), COLUMNS, listed(shown).slice(0, 25).map(jobRow), (column) => {
    sorting.down = sorting.column === column ? !sorting.down : column > 3;
    sorting.column = column;
    drawJobs(picked);
  });
  at("export").onclick = () => save(listed(shown));
  const flagged = picked.filter((job) => jobs.flags[job]).sort((a, b) => moved(b) - moved(a));
  table(at("flagged"), COLUMNS, flagged.slice(0, 50).map(jobRow));
  if (flagged.length > 50) at("flagged").append(element("p", `… and ${count(flagged.length - 50)} more.`, "hint"));
  if (!flagged.length) at("flagged").replaceChildren(element("p", "None.", "hint"));
}

function save(shown) {
  // A text that begins like a formula would be run by a spreadsheet.
  const cell = (value) => { const text = String(value ?? ""); return `"${(/^[=+\-@\t\r]/.test(text) ? "'" : "") + text.replaceAll('"', '""')}"`; };
  const heading = ["job", "user", "account", "partition", "name", "start", "end", "servers", "coverage", "flags", "read_bytes", "write_bytes", "read_max_bandwidth", "write_max_bandwidth"];
  const rows = shown.map((job) => [jobs.id[job], word("user", job), word("account", job), word("partition", job), word("name", job), jobs.start[job], jobs.end[job], jobs.servers[job], jobs.coverage[job], flags(job).join(" "),
    jobs.read.bytes[job], jobs.write.bytes[job], jobs.read.max_bandwidth[job], jobs.write.max_bandwidth[job]].map(cell).join(","));
  const link = element("a");
  link.href = URL.createObjectURL(new Blob([[heading.join(","), ...rows, ""].join("\n")], { type: "text/csv" }));
  link.download = "jobs.csv";
  link.click();
  URL.revokeObjectURL(link.href);
}

function drawTotal() {
  const edges = data.load.edges, last = edges.length - 1;
  const svg = drawing(at("total"), 1100, 190, "load of all servers over time");
  const x = (time) => 70 + (time - edges[0]) / (edges[last] - edges[0] || 1) * 1020;
  const speeds = {};
  for (const direction of DIRECTIONS) speeds[direction] = edges.slice(0, last).map((edge, bin) => data.load[direction].reduce((sum, row) => sum + row[bin], 0) / (edges[bin + 1] - edge || 1));
  const most = largest([...speeds.read, ...speeds.write]) || 1;
  if (chosen.from !== null || chosen.to !== null) {
    const from = Math.max(chosen.from ?? edges[0], edges[0]), to = Math.min(chosen.to ?? edges[last], edges[last]);
    shape(svg, "rect", { x: x(from), y: 20, width: Math.max(1, x(to) - x(from)), height: 140, class: "brush" });
  }
  DIRECTIONS.forEach((direction, number) => {
    const points = speeds[direction].flatMap((speed, bin) => [edges[bin], edges[bin + 1]].map((edge) => `${x(edge).toFixed(1)},${(160 - 140 * speed / most).toFixed(1)}`));
    shape(svg, "polyline", { points: points.join(" "), class: `curve ${direction}` });
    shape(svg, "line", { x1: 70 + 90 * number, x2: 94 + 90 * number, y1: 10, y2: 10, class: `curve ${direction}` });
    shape(svg, "text", { x: 100 + 90 * number, y: 14 }, direction);
  });
  shape(svg, "line", { x1: 70, x2: 1090, y1: 160, y2: 160, class: "axis" });
  for (const part of [0, 0.5, 1]) shape(svg, "text", { x: 64, y: 164 - 140 * part, "text-anchor": "end" }, rate(most * part));
  for (const part of [0, 0.25, 0.5, 0.75, 1]) shape(svg, "text", { x: 70 + 1020 * part, y: 178, "text-anchor": part === 1 ? "end" : part ? "middle" : "start" }, moment(edges[0] + part * (edges[last] - edges[0])));
  let begun = null;
  const timeAt = (event) => { const box = svg.getBoundingClientRect(); return edges[0] + ((event.clientX - box.left) / box.width * 1100 - 70) / 1020 * (edges[last] - edges[0]); };
  svg.addEventListener("pointerdown", (event) => { begun = timeAt(event); event.preventDefault(); });
  svg.addEventListener("pointerup", (event) => {
    const ended = timeAt(event);
    if (begun === null || Math.abs(ended - begun) < (edges[last] - edges[0]) / 200) return;
    [chosen.from, chosen.to] = begun < ended ? [begun, ended] : [ended, begun];
    at("from").value = new Date(chosen.from * 1000).toISOString().slice(0, 16);
    at("to").value = new Date(chosen.to * 1000).toISOString().slice(0, 16);
    draw();
  });
}

// Servers by time, named at the left, with the scale below; shades are logarithmic.
function drawLoad() {
  const direction = at("load-direction").value, rows = data.load[direction], edges = data.load.edges, bins = edges.length - 1;
  const seconds = (edges[bins] - edges[0]) / bins || 1, row = Math.max(2, Math.min(16, 320 / (rows.length || 1))), height = row * rows.length;
  const svg = drawing(at("load"), 1100, height + 58, `${direction}: each server over time`);
  const most = largest(rows.flat()), floor = Math.log(1 + most) - Math.log(1e4), step = Math.max(1, Math.ceil(12 / row));
  const shade = (value) => Math.max(0.04, Math.min(1, (Math.log(1 + value) - floor) / Math.log(1e4)));
  rows.forEach((values, line) => {
    if (line % step === 0) shape(svg, "text", { x: 116, y: (line + 0.5) * row + 4, "text-anchor": "end" }, shortened(data.load.servers[line]));
    values.forEach((value, bin) => {
      if (value > 0) shape(svg, "rect", { x: (122 + 968 * bin / bins).toFixed(2), y: line * row, width: (968 / bins + 0.2).toFixed(2), height: Math.max(row - 0.6, 1), class: direction, "fill-opacity": shade(value).toFixed(2) });
    });
  });
  shape(svg, "rect", { x: 122, y: 0, width: 968, height, class: "axis" });
  for (const part of [0, 0.25, 0.5, 0.75, 1]) shape(svg, "text", { x: 122 + 968 * part, y: height + 14, "text-anchor": part === 1 ? "end" : part ? "middle" : "start" }, moment(edges[0] + part * (edges[bins] - edges[0])));
  [0, 0.25, 0.5, 0.75, 1].forEach((part, number) => {
    const value = most * 1e-4 ** (1 - part);
    shape(svg, "rect", { x: 122 + 150 * number, y: height + 30, width: 24, height: 12, class: direction, "fill-opacity": shade(value).toFixed(2) });
    shape(svg, "text", { x: 152 + 150 * number, y: height + 40 }, `${number ? "" : "up to "}${rate(value / seconds)}`);
  });
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const bin = Math.floor(((event.clientX - box.left) / box.width * 1100 - 122) / 968 * bins), line = Math.floor((event.clientY - box.top) / box.height * (height + 58) / row);
    if (bin < 0 || bin >= bins || line < 0 || line >= rows.length) return;
    at("load-at").textContent = `${data.load.servers[line]}, ${moment(edges[bin])}: ${rate(rows[line][bin] / seconds)}`;
  });
}

const shortened = (name) => name.length > 18 ? `${name.slice(0, 8)}…${name.slice(-9)}` : name;

function draw() {
  const picked = selection();
  at("chosen").textContent = `${count(picked.length)} of ${count(ALL.length)} jobs`;
  drawFacts(picked);
  for (const direction of DIRECTIONS) drawHeat(direction, picked);
  drawEighty(picked);
  drawDistributions(picked);
  movers(at("users"), "user", picked);
  movers(at("accounts"), "account", picked);
  drawJobs(picked);
  drawTotal();
}

const duration = (seconds) => seconds >= 172800 ? `${digits(seconds / 86400)} days` : seconds >= 7200 ? `${digits(seconds / 3600)} hours` : seconds >= 120 ? `${digits(seconds / 60)} minutes` : `${digits(seconds)} seconds`;

function begin() {
  const edges = data.load.edges;
  at("span").textContent = `${moment(edges[0])} to ${moment(edges[edges.length - 1])} UTC, ${count(data.load.servers.length)} servers. Jobs of at least ${duration(data.settings.min_runtime)}.`;
  for (const warning of data.warnings) at("warnings").append(element("li", warning));
  for (const name of ["user", "account", "partition"]) {
    const select = at(name);
    select.append(new Option("all", ""));
    jobs[name].words.forEach((text, number) => select.append(new Option(text || "unknown", number)));
    select.addEventListener("change", () => { chosen[name] = select.value; chosen.cell = null; draw(); });
  }
  for (const name of ["from", "to"]) at(name).addEventListener("change", () => {
    const seconds = Date.parse(`${at(name).value}Z`) / 1000;
    chosen[name] = Number.isNaN(seconds) ? null : seconds;
    chosen.cell = null;
    draw();
  });
  at("filters").addEventListener("submit", (event) => event.preventDefault());
  at("filters").addEventListener("reset", () => { Object.assign(chosen, { from: null, to: null, user: "", account: "", partition: "", cell: null }); draw(); });
  at("load-direction").addEventListener("change", drawLoad);
  at("bin").textContent = `A bin is ${duration((edges[edges.length - 1] - edges[0]) / (edges.length - 1))}; bytes within a bin are shown as their mean rate.`;
  drawQuestions();
  draw();
  drawLoad();
}

begin();
