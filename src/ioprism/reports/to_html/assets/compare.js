// Two runs on the same axes.
const data = JSON.parse(document.getElementById("data").textContent);
const find = (id) => document.getElementById(id);

function listed(place, title, findings) {
  if (!findings.length) return;
  place.append(element("h3", `${title} (${findings.length})`));
  for (const finding of findings) {
    const line = element("div", undefined, `finding ${finding.level}`), row = element("p", undefined, "line");
    row.append(element("span", LEVEL_NAMES[finding.level], `level ${finding.level}`), element("span", finding.title, "what"), element("span", finding.stake, "stake"));
    line.append(row);
    place.append(line);
  }
}

function told() {
  find("verdict").textContent = data.verdict;
  find("subject").textContent = data.runs.map((run) => `${run.name}: ${run.source.join(", ")}`).join(" · ");
  for (const text of data.details) find("details").append(element("p", text));
  for (const text of data.warnings) find("warnings").append(element("p", text, "warning"));
  for (const run of data.runs) for (const text of run.warnings) find("warnings").append(element("p", `${run.name}: ${text}`, "warning"));
  table(find("metrics"), ["", "before", "after", "change", ""], data.metrics);
  listed(find("findings"), "Gone", data.gone);
  listed(find("findings"), "New", data.new);
  listed(find("findings"), "Kept", data.kept);
}

async function sceneOfRun(run, state) {
  const shown = { marks: marksOf(run.timeline, await inflate(fromBase64(run.timeline.data))), ranks: run.ranks };
  shown.restyle = () => { shown.category = categorise(shown.marks, state.colour); shown.used = largest(shown.category) + 1; };
  shown.lit = new Uint8Array(shown.marks.count).fill(2);
  shown.rows = rowsOf(Math.max(1, run.ranks), "");
  shown.explain = (layer, x, y, box) => { const i = callAt(shown, layer, x, y, box, state); return i < 0 ? null : factsOf(shown.marks, i).filter(([name]) => name !== "file"); };
  shown.restyle();
  return shown;
}

// The highest bandwidth of both runs in view, so that their curves have one scale.
function sharedHeight(scenes, state, operation) {
  return Math.max(1, ...scenes.filter((shown) => shown.marks.count).map((shown) => largest(bandwidthOf(shown, state, 400, operation).values)));
}

function drawRun(run, shown, scenes, state) {
  const section = element("section"), place = element("div");
  section.append(element("h3", run.name === "before" ? "Before" : "After"), place);
  find("runs").append(section);
  if (!shown.marks.count) { place.append(element("p", "This trace has no single calls to draw.", "notice")); return; }
  timeline(place, shown, state, { height: 180, name: `${run.name}: ` });
  for (const operation of [0, 1]) {
    if (!scenes.some((scene) => movedBy(scene.marks, operation) > 0)) continue;
    const figure = element("figure", undefined, "linked"), curve = { name: `${run.name}: ${operation ? "written" : "read"}`, colour: operation ? "--c2" : "--c1", start: 0, step: 1, values: [] };
    const options = { label: `Bandwidth ${curve.name}`, axis: state.time, height: 110, curves: [curve], upText: rate, binary: true, lazily: whenSeen };
    options.prepare = (columns) => {
      options.high = sharedHeight(scenes, state, operation);
      Object.assign(curve, bandwidthOf(shown, state, columns, operation));
    };
    place.append(figure);
    plot(figure, options);
  }
}

async function main() {
  told();
  const state = stateOf(axis(0, Math.max(1e-6, ...data.runs.map((run) => run.end))));
  const scenes = await Promise.all(data.runs.map((run) => sceneOfRun(run, state)));
  data.runs.forEach((run, n) => drawRun(run, scenes[n], scenes, state));
  const relabel = () => legend(find("legend"), scenes[0].marks.count ? scenes[0] : scenes[1], state);
  find("colour").addEventListener("change", () => {
    state.colour = find("colour").value;
    scenes.forEach((shown) => shown.restyle());
    relabel();
    state.time.plots.forEach((one) => one.draw());
  });
  relabel();
  window.ioprism = { state, scenes };
  requestAnimationFrame(() => requestAnimationFrame(() => { document.documentElement.dataset.ready = String(Math.round(performance.now())); }));
}

main();
