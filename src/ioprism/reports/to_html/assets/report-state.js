// What is chosen: time, colours, a finding, ranks, files, operations. A deep link holds all of it.
function stateOf(time) {
  const listeners = new Set();
  const state = { time, log: false, colour: "operation", show: "", ranks: "", files: [], operation: "", listeners };
  state.set = (changes) => { Object.assign(state, changes); listeners.forEach((listener) => listener(Object.keys(changes))); };
  return state;
}

// "0-3, 8" to spans; null where a part of it is no rank.
function rankSpans(text) {
  const parts = text.split(",").map((part) => part.trim()).filter(Boolean).map((part) => part.match(/^(\d+)(?:\s*-\s*(\d+))?$/));
  return parts.every(Boolean) ? parts.map(([, a, b]) => [Number(a), b === undefined ? Number(a) : Number(b)]) : null;
}

// Everything where nothing is chosen, nothing where what was written cannot be meant.
function rankTest(text) {
  const spans = rankSpans(text);
  if (spans === null) return () => false;
  return spans.length ? (rank) => spans.some(([a, b]) => rank >= a && rank <= b) : () => true;
}

// Whether each mark is hidden (0), faded (1) or lit (2).
function litOf(marks, state, finding) {
  const lit = new Uint8Array(marks.count).fill(2);
  const inRanks = rankTest(state.ranks), files = new Set(state.files);
  const group = state.operation ? new Set(data.operations.map((name, n) => [name, n]).filter(([name]) => groupName(name) === state.operation).map(([, n]) => n)) : null;
  if (state.ranks || files.size || group) {
    for (let i = 0; i < marks.count; i += 1) {
      if (!inRanks(marks.rank[i]) || (files.size && !files.has(marks.file[i])) || (group && !group.has(marks.operation[i]))) lit[i] = 0;
    }
  }
  const concerns = finding && finding.show ? concernOf(marks, finding.show) : null;
  if (concerns) for (let i = 0; i < marks.count; i += 1) if (lit[i] && !concerns(i)) lit[i] = 1;
  return lit;
}

const groupName = (operation) => operation === "read" || operation === "write" ? operation : "metadata";

// The test for the calls that a finding is about; all conditions must hold.
function concernOf(marks, show) {
  const tests = [];
  const numbers = (names, all) => new Set(names.map((name) => all.indexOf(name)));
  if (show.layers) { const wanted = numbers(show.layers, data.layers); tests.push((i) => wanted.has(marks.layer[i])); }
  if (show.operations) { const wanted = numbers(show.operations, data.operations); tests.push((i) => wanted.has(marks.operation[i])); }
  if (show.ranks) { const wanted = new Set(show.ranks); tests.push((i) => wanted.has(marks.rank[i])); }
  if (show.files) { const wanted = new Set(show.files); tests.push((i) => wanted.has(marks.file[i])); }
  if (show.targets) { const wanted = new Set(show.targets); tests.push((i) => targetsTouched(marks, i).some((target) => wanted.has(target))); }
  if (show.below) tests.push((i) => movesBytes(marks, i) && marks.bytes[i] / Math.max(1, callsOf(marks, i)) < show.below);
  if (show.misaligned) tests.push((i) => (marks.flags[i] & HAS_PLACE) > 0 && marks.offset[i] % show.misaligned !== 0);
  if (show.times) {
    const spans = show.times;
    tests.push((i) => { const a = timeOf(marks, i), b = a + lengthOf(marks, i); return spans.some(([from, to]) => b >= from && a <= to); });
  }
  if (show.slowest) { // [[from, to, rank]]: the slowest rank of each phase
    tests.push((i) => show.slowest.some(([from, to, rank]) => marks.rank[i] === rank && timeOf(marks, i) >= from - 1e-9 && timeOf(marks, i) <= to));
  }
  return tests.length ? (i) => tests.every((test) => test(i)) : null;
}

function linkOf(state) {
  const { time } = state, parts = new URLSearchParams();
  if (time.low > time.first || time.high < time.last) parts.set("time", `${time.low.toPrecision(8)}-${time.high.toPrecision(8)}`);
  for (const [key, standard] of [["colour", "operation"], ["show", ""], ["ranks", ""], ["operation", ""]]) if (state[key] !== standard) parts.set(key, state[key]);
  if (state.files.length) parts.set("files", state.files.join("."));
  return parts.toString();
}

function readLink(state, text) {
  const parts = new URLSearchParams(text.replace(/^#/, ""));
  const paint = parts.get("colour"), operation = parts.get("operation") || "";
  state.set({
    colour: paint && Object.hasOwn(PAINTS, paint) ? paint : "operation",
    show: parts.get("show") || "",
    ranks: (parts.get("ranks") || "").slice(0, 200),
    operation: ["read", "write", "metadata"].includes(operation) ? operation : "",
    files: (parts.get("files") || "").split(".").filter((part) => /^\d+$/.test(part)).map(Number),
  });
  const span = (parts.get("time") || "").match(/^(-?[\d.e+]+)-(-?[\d.e+]+)$/);
  if (span && Number(span[2]) > Number(span[1])) state.time.show(Number(span[1]), Number(span[2]));
  else if (parts.has("time") || text.length < 2) state.time.reset();
}
