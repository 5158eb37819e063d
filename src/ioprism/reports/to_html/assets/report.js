// Puts the page together, and keeps the pictures and the choices in step.
const data = JSON.parse(document.getElementById("data").textContent);
const find = (id) => document.getElementById(id);

function story() {
  find("facts").replaceChildren();
  find("warnings").replaceChildren();
  find("subject").textContent = data.source.join(", ");
  find("verdict").textContent = data.verdict.line;
  find("next-step").textContent = data.verdict.first || "";
  find("next-step").hidden = !data.verdict.first;
  for (const [name, text] of data.facts) { const pair = element("div"); pair.append(element("dt", name), element("dd", text)); pair.className = name === "program" ? "program" : ""; pair.title = name === "program" ? text : ""; find("facts").append(pair); }
  for (const text of data.warnings) find("warnings").append(element("p", text, "warning"));
}

// Causes and findings: what can be shown on the pictures.
const concerning = () => [...(data.diagnosis ? data.diagnosis.causes : []), ...data.findings];

// What is on the pictures: marks, which of them are lit, their colours and rows.
function sceneOf(marks, state) {
  const shown = { marks, ranks: Math.max(1, data.ranks), lit: null, category: null, rows: null };
  shown.restyle = () => { shown.category = categorise(shown.marks, state.colour); shown.used = largest(shown.category) + 1; };
  shown.choose = () => {
    shown.lit = litOf(shown.marks, state, concerning().find((finding) => finding.id === state.show));
    shown.rows = rowsOf(shown.ranks, state.ranks);
  };
  shown.explain = (layer, x, y, box) => { const i = callAt(shown, layer, x, y, box, state); return i < 0 ? null : factsOf(shown.marks, i, targetsTouched); };
  shown.restyle();
  shown.choose();
  return shown;
}

function inView(shown, state) {
  const all = { calls: 0, moved: 0, busy: 0 }, lit = { calls: 0, moved: 0, busy: 0 };
  const { marks } = shown, counted = deepest(marks), bins = data.timeline.source === "heat map";
  eachStretch(marks, state.time.low, state.time.high, (from, to) => {
    for (let i = from; i < to; i += 1) {
      if (!shown.lit[i] || data.layers[marks.layer[i]] === "application") continue;  // steps of the program are no calls
      for (const sums of shown.lit[i] === 2 ? [all, lit] : [all]) {
        sums.calls += callsOf(marks, i);
        sums.busy += busyOf(marks, i);
        if (counted.has(marks.layer[i]) && movesBytes(marks, i)) sums.moved += marks.bytes[i];
      }
    }
  });
  const told = (sums) => `${bins ? "" : `${count(sums.calls)} calls, `}${bytes(sums.moved)} moved, ${duration(sums.busy)} in calls`;
  const wrong = rankSpans(state.ranks) === null ? ` “${state.ranks}” names no ranks: write numbers and ranges, such as 0-3,8.` : "";
  find("ranks").setAttribute("aria-invalid", String(Boolean(wrong)));
  find("in-view").textContent = `In view: ${clock(state.time.low)} to ${clock(state.time.high)}: ${told(all)}.${state.show ? ` Affected: ${told(lit)}.` : ""}${wrong}`;
}

function fillChoices() {
  find("highlight").replaceChildren(find("highlight").options[0]);
  find("file-names").replaceChildren();
  for (const finding of concerning()) {
    if (!finding.show) continue;
    const option = element("option", finding.title.length > 60 ? `${finding.title.slice(0, 58)}…` : finding.title);
    option.value = finding.id;
    find("highlight").append(option);
  }
  const names = find("file-names");
  Object.values(data.files).slice(0, 2000).forEach((name) => { const option = element("option"); option.value = name; names.append(option); });
}

function filesNamed(text) {
  const needle = text.trim();
  if (!needle) return [];
  const every = Object.entries(data.files), exact = every.filter(([, name]) => name === needle);
  return (exact.length ? exact : every.filter(([, name]) => name.includes(needle))).map(([number]) => Number(number));
}

function bindChoices(state) {
  for (const key of ["colour", "operation"]) find(key).addEventListener("change", () => state.set({ [key]: find(key).value }));
  find("highlight").addEventListener("change", () => state.set({ show: find("highlight").value }));
  find("ranks").addEventListener("change", () => state.set({ ranks: find("ranks").value }));
  find("file").addEventListener("change", () => {
    const files = filesNamed(find("file").value);
    state.set({ files: find("file").value && !files.length ? [-2] : files });
  });
  find("log").addEventListener("change", () => state.set({ log: find("log").checked }));
  find("reset").addEventListener("click", () => { state.set({ show: "", ranks: "", files: [], operation: "" }); state.time.reset(); });
  find("theme").addEventListener("click", () => { document.documentElement.dataset.theme = isDark() ? "light" : "dark"; state.set({ theme: 1 }); });
}

function showChoices(state) {
  for (const key of ["colour", "operation", "ranks"]) find(key).value = state[key];
  find("highlight").value = state.show;
  if (state.files.length && state.files[0] >= 0 && !filesNamed(find("file").value).length) find("file").value = fileName(state.files[0]);
  if (!state.files.length) find("file").value = "";
  markShown(state);
}

function notices(shown) {
  const about = data.timeline, bins = about.source === "heat map";
  find("no-calls").hidden = shown.marks.count > 0 && !bins;
  find("no-calls").textContent = bins
    ? `This log has no single calls. The charts show Darshan's heat map: every bar is ${duration(about.width)} long and shows how much was moved in it. To see single calls, record the job with DXT_ENABLE_IO_TRACE=1.`
    : "This trace has no single calls, so there is nothing to draw over time. To see them, record the job with DXT_ENABLE_IO_TRACE=1.";
  find("coarse").hidden = !about.width || bins;
  find("coarse").textContent = data.explore
    ? "Calls that would share a pixel are drawn as one; zoom in to see each."
    : `${count(about.calls)} calls are too many for one page: calls of a rank that begin within ${duration(about.width || 0)} are drawn as one. To see each call, use ioprism explore.`;
  for (const id of ["timeline-title", "heat-section", "concurrency-section", "sizes-section", "toolbar", "in-view", "how-to-look", "save-csv", "save-png", "save-svg"]) find(id).hidden = !shown.marks.count;
  find("bandwidth-section").hidden = !shown.marks.count && !data.rhythm;
  find("phases-section").hidden = !Object.keys(data.phases).length;
  if (bins) { find("timeline-title").textContent = "Bytes in bins: rank over time"; find("concurrency-section").hidden = true; find("sizes-section").hidden = true; }
}

function build(shown, state) {
  const frames = [];
  if (shown.marks.count) {
    frames.push(...timeline(find("timeline"), shown, state, {}));
  }
  frames.push(...bandwidthPlots(find("bandwidth"), shown, state));
  const strips = phaseStrips(find("phases"), state);
  if (strips) frames.push(strips);
  if (shown.marks.count) {
    frames.push(rankHeat(find("heat"), shown, state));
    if (!find("concurrency-section").hidden) frames.push(concurrencyPlot(find("concurrency"), shown, state));
    if (allTargets().length) { find("targets-section").hidden = false; frames.push(targetHeat(find("targets"), find("target-totals"), shown, state)); }
  }
  rhythmSection(find("rhythm-section"), state);
  return frames;
}

function keepInStep(shown, state, frames, space) {
  let asked = 0;
  const settle = () => {
    clearTimeout(asked);
    asked = setTimeout(() => {
      inView(shown, state);
      if (!find("sizes-section").hidden) sizeHistogram(find("sizes"), shown, state);
      const link = linkOf(state);
      history.replaceState(null, "", link ? `#${link}` : location.pathname + location.search);
    }, 150);
  };
  const redraw = () => { state.time.plots.forEach((plot) => plot.draw()); if (space) space.refresh(); settle(); };
  state.time.plots.add({ draw: settle });
  state.listeners.add((changed) => {
    if (changed.includes("colour")) shown.restyle();
    shown.choose();
    showChoices(state);
    legend(find("legend"), shown, state);
    redraw();
  });
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { legend(find("legend"), shown, state); redraw(); });
  window.addEventListener("hashchange", () => readLink(state, location.hash));
  find("save-csv").addEventListener("click", () => saveText("calls.csv", csvOf(selectedRows(shown, state)), "text/csv"));
  find("save-png").addEventListener("click", () => savePng(frames, "pictures.png"));
  find("save-svg").addEventListener("click", () => saveText("pictures.svg", svgOf(frames), "image/svg+xml"));
  return redraw;
}

function storagePath(state) {
  pathParts(find("target-rates"), "targets");
  pathParts(find("host-rates"), "hosts");
  find("path").hidden = find("target-rates").hidden && find("host-rates").hidden;
  directoryIcicle(find("directories"), state);
}

// Shows one picture by itself, as a notebook asks for it.
function alone(name) {
  const others = document.querySelectorAll("body > header, .skip, footer, #diagnosis, #story, #path, #directories, #numbers, #pictures > h2, #pictures > .hint, #pictures > section");
  for (const other of others) if (other.id !== `${name}-section`) other.classList.add("apart");
}

// Takes over what the server found out while the user was already looking.
function adopt(told, shown, state, frames) {
  for (const key of ["verdict", "facts", "warnings", "diagnosis", "parts", "findings", "phases", "rhythm", "tables", "files", "stripes"]) data[key] = told[key];
  story();
  diagnosisSection(find("diagnosis"), state);
  findingsSection(find("findings"), state);
  storagePath(state);
  fillChoices();
  notices(shown);
  const strips = phaseStrips(find("phases"), state);
  if (strips) frames.push(strips);
  rhythmSection(find("rhythm-section"), state);
  for (const one of data.tables) sortableTable(find("tables"), one, state);
  document.documentElement.dataset.told = "yes";
}

async function main() {
  story();
  if (data.only) alone(data.only);
  const about = data.timeline, [first, last] = data.time;
  const state = stateOf(axis(first, last > first ? last : first + 1));
  diagnosisSection(find("diagnosis"), state);
  findingsSection(find("findings"), state);
  const marks = data.explore ? await fetchTile(state.time.low, state.time.high, "") : marksOf(about, await inflate(fromBase64(about.data)));
  const shown = sceneOf(marks, state);
  fillChoices();
  notices(shown);
  const frames = build(shown, state);
  const space = shown.marks.count ? spaceSection(find("space-section"), shown, state) : null;
  bindChoices(state);
  const redraw = keepInStep(shown, state, frames, space);
  if (data.explore) {
    followTiles(shown, state, redraw);
    awaitStory((told) => { adopt(told, shown, state, frames); redraw(); });
  }
  storagePath(state);
  for (const one of data.tables) sortableTable(find("tables"), one, state);
  legend(find("legend"), shown, state);
  readLink(state, location.hash);
  window.ioprism = { state, shown, frames };
  requestAnimationFrame(() => requestAnimationFrame(() => { document.documentElement.dataset.ready = String(Math.round(performance.now())); }));
}

main();
