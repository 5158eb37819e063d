// What administrators ask of a machine: whose bytes, when, how small, who disturbs whom.
const machine = JSON.parse(document.getElementById("data").textContent);
const WEEKDAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
const PART_NAMES = { attributed: "attributed to one job", shared: "shared by several jobs", unattributed: "no job of the list" };
const hours = (value) => value === null ? "–" : value.toLocaleString("en", { maximumFractionDigits: 1 });
const change = (value) => value === null ? "–" : `${value >= 0 ? "+" : "−"}${Math.abs(100 * value).toFixed(0)} %`;

function drawParts() {
  const place = document.getElementById("parts");
  for (const direction of ["read", "write"]) {
    const totals = machine.machine[direction], figure = element("figure"), bar = element("div"), legend = element("ul", undefined, "legend");
    figure.append(element("b", `${direction}: ${bytes(totals.bytes)} moved by the servers`), bar, legend);
    place.append(figure);
    const svg = drawing(bar, 540, 24, `${direction}: whose bytes`);
    let left = 0;
    Object.entries(PART_NAMES).forEach(([part, name], number) => {
      const width = totals.bytes ? 540 * totals[part] / totals.bytes : 0, share = totals.bytes ? `, ${(100 * totals[part] / totals.bytes).toFixed(1)} %` : "";
      shape(svg, "rect", { x: left, y: 2, width, height: 20, class: `${direction} part${number}` });
      const line = element("li");
      line.append(element("span", "", `swatch ${direction} part${number}`), `${name}: `, element("b", `${bytes(totals[part])}${share}`));
      legend.append(line);
      left += width;
    });
    if (totals.outside > 0) figure.append(element("p", `Of the latter, ${bytes(totals.outside)} were moved before the first or after the last job of the list.`, "hint"));
  }
}

// A map of 7 days by 24 hours, with names at its edges and the scale below.
function drawWeek(direction) {
  const svg = drawing(document.getElementById(`week-${direction}`), 540, 224, `${direction} by weekday and hour`);
  const rows = machine.profile[direction], most = largest(rows.flat().map((value) => value || 0));
  shape(svg, "text", { x: 40, y: 14, class: "title" }, `${direction}: mean rate by hour (${machine.profile.timezone})`);
  rows.forEach((row, day) => {
    shape(svg, "text", { x: 34, y: 40 + 20 * day, "text-anchor": "end" }, WEEKDAYS[day]);
    row.forEach((value, hour) => {
      const cell = shape(svg, "rect", { x: 40 + 20.6 * hour, y: 26 + 20 * day, width: 19.6, height: 19, class: value === null ? "unknown" : direction, "fill-opacity": value === null ? 1 : most ? (0.06 + 0.94 * value / most).toFixed(3) : 0.06 });
      shape(cell, "title", {}, `${WEEKDAYS[day]} ${String(hour).padStart(2, "0")}:00: ${value === null ? "not recorded" : rate(value)}`);
    });
  });
  for (let hour = 0; hour < 24; hour += 3) shape(svg, "text", { x: 40 + 20.6 * hour, y: 180 }, `${String(hour).padStart(2, "0")}:00`);
  scale(svg, direction, 40, 200, most, "");
}

// Shades of one colour from nothing to the most, and the values at both ends.
function scale(svg, direction, left, top, most, ending) {
  for (let step = 0; step < 20; step += 1) shape(svg, "rect", { x: left + 60 + 8 * step, y: top - 9, width: 8, height: 11, class: direction, "fill-opacity": (0.06 + 0.94 * step / 19).toFixed(3) });
  shape(svg, "text", { x: left + 54, y: top, "text-anchor": "end" }, "0");
  shape(svg, "text", { x: left + 228, y: top }, `${rate(most)}${ending}`);
}

function drawQuestions() {
  const found = machine.machine, at = (id) => document.getElementById(id);
  at("dominance").textContent = found.dominance;
  for (const said of found.attribution) at("attribution").append(element("li", said));
  drawParts();
  for (const direction of ["read", "write"]) drawWeek(direction);
  const sizes = ["read", "write"].map((direction) => found[direction].sizes), sums = sizes.map((rows) => rows.reduce((sum, row) => sum + row[2], 0));
  table(at("sizes"), ["mean request in a sampling step", "read operations", "", "bytes read", "write operations", "", "bytes written"], sizes[0].map((row, line) => [
    row[1] === null ? `${bytes(row[0])} and more` : `${bytes(row[0])} to ${bytes(row[1])}`,
    ...sizes.flatMap((rows, number) => [count(rows[line][2]), sums[number] ? `${(100 * rows[line][2] / sums[number]).toFixed(1)} %` : "–", bytes(rows[line][3])])]));
  at("small").textContent = `Small: reads ${found.read.small}; writes ${found.write.small}.`;
  at("trend").textContent = machine.trend.sentence;
  table(at("months"), ["month", "days recorded", "read", "change per day", "written", "change per day"], machine.trend.months.map((row) => [row[0], hours(row[1]), bytes(row[2]), change(row[4]), bytes(row[3]), change(row[5])]));
  if (machine.trend.compared) table(at("changes"), ["account", `per day in ${machine.trend.compared[0]}`, `per day in ${machine.trend.compared[1]}`], machine.trend.accounts.map((row) => [row[0], bytes(row[1]), bytes(row[2])]));
  at("interference").textContent = machine.interference.sentence;
  if (machine.interference.pairs.length) table(at("pairs"), ["application", "beside", "compared by", "times slower", "observations beside", "quiet", "hours beside", "p, corrected", "slower?"], machine.interference.pairs.map((row) => row.map((value) => typeof value === "number" ? hours(value) : value)));
  if (machine.contacts.length) table(at("contacts"), ["user", "why", "jobs", "job-hours", "hours at stake"], machine.contacts.map((row) => [row[0], row[1], count(row[2]), hours(row[3]), hours(row[4])]));
  else at("contacts").replaceChildren(element("p", "No user's jobs stand out.", "hint"));
  unattributed();
}

function unattributed() {
  const load = machine.load, place = document.getElementById("unattributed");
  const rows = load.servers.map((server, number) => [server, load.unattributed[0][number], load.unattributed[1][number]]);
  const most = rows.filter((row) => row[1] + row[2] > 0).sort((a, b) => b[1] + b[2] - a[1] - a[2]).slice(0, 8);
  if (!most.length) place.replaceChildren(element("p", "All bytes belong to jobs of the list.", "hint"));
  else table(place, ["server", "read by no listed job", "written by no listed job"], most.map((row) => [row[0], bytes(row[1]), bytes(row[2])]));
}
