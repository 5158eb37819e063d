const find = (id) => document.getElementById(id);
const REFRESH_MS = 2000, KEPT = 240, HEIGHT = 120;
const perSecond = (value) => `${bytes(value)}/s`;
const history = [];

function rows(list, kind) {
  const user = kind === "jobs" ? (row) => [row.user] : () => [];
  return list.map((row) => [row.name, ...user(row), perSecond(row.read), perSecond(row.write),
    Math.round(row.operations).toLocaleString("en"), Math.round(row.opens).toLocaleString("en"), `${(100 * row.share).toFixed(0)} %`]);
}

// Reads upwards in one colour, writes above them in another; one bar for every round.
function drawRounds() {
  const place = find("rounds"), width = place.clientWidth || 600;
  place.textContent = "";
  const top = Math.max(1, ...history.map((one) => one.read + one.write)), step = width / KEPT;
  const svg = drawing(place, width, HEIGHT, `read and written per round, at most ${perSecond(top)}`);
  history.forEach((one, number) => {
    const x = width - (history.length - number) * step, read = one.read / top * (HEIGHT - 16), write = one.write / top * (HEIGHT - 16);
    shape(svg, "rect", { x, y: HEIGHT - read, width: Math.max(1, step - 1), height: read, fill: "var(--c1, #26a)" });
    shape(svg, "rect", { x, y: HEIGHT - read - write, width: Math.max(1, step - 1), height: write, fill: "var(--c2, #c60)" });
  });
  shape(svg, "text", { x: 2, y: 12, "font-size": 12, fill: "currentColor" }, `${perSecond(top)} (blue: read, orange: written)`);
}

function show(state) {
  const counts = state.counts, first = state.jobs[0];
  find("verdict").textContent = state.round < 2 ? "First answers are in; rates follow with the next round"
    : `${perSecond(state.read)} read and ${perSecond(state.write)} written by ${counts.jobs.toLocaleString("en")} jobs`
      + (first && first.share > 0 ? `; ${first.name} moves ${(100 * first.share).toFixed(0)} %` : "");
  find("when").textContent = `${new Date(1000 * state.time).toLocaleTimeString("en-GB")}, round ${state.round}, ${counts.answered} of ${counts.sources} sources answer, ${counts.targets} ${counts.targets === 1 ? "target" : "targets"}`;
  find("notes").hidden = !state.notes.length;
  find("notes").textContent = state.notes.join(" · ");
  const head = ["read", "written", "requests/s", "opens/s", "share"];
  table(find("jobs"), ["job", "user", ...head], rows(state.jobs, "jobs"));
  table(find("users"), ["user", ...head], rows(state.users, "users"));
  table(find("targets"), ["target", ...head], rows(state.targets, "targets"));
}

async function refresh() {
  try {
    const state = await (await fetch("load")).json();
    find("link").textContent = "live";
    if (state.round && (!history.length || history[history.length - 1].round !== state.round)) {
      history.push({ round: state.round, read: state.read, write: state.write });
      if (history.length > KEPT) history.shift();
      show(state);
      drawRounds();
    }
  } catch (error) {
    find("link").textContent = "the service does not answer";
  }
  setTimeout(refresh, REFRESH_MS);
}
refresh();
