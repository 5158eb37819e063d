const find = (id) => document.getElementById(id);
const seconds = (value) => `${plain(value)} s`;
const latest = new Map();
const MOST_CHANGES = 50, REDRAW_MS = 500;
let shown = null, drawn = null, waiting = false, again = false;

const time = axis(0, 1);
const signal = { name: "bandwidth", colour: "--c1", start: 0, step: 1, values: [] };
const picture = { label: "Bandwidth over time", axis: time, height: 280, curves: [signal], bands: [], marks: [], upText: rate };

function chosen() { return find("job").value; }

function list(job) {
  if ([...find("job").options].some((option) => option.value === job)) return;
  const option = element("option", job);
  option.value = job;
  find("job").append(option);
}

function hear(prediction) {
  latest.set(prediction.job, prediction);
  list(prediction.job);
  if (prediction.change) announce(prediction);
  if (prediction.job === chosen()) refresh();
}

function announce(prediction) {
  const { before, after, time: since } = prediction.change;
  const what = after === null ? `the rhythm of ${seconds(before)} ended`
    : before === null ? `a rhythm of ${seconds(after)} began` : `the period changed from ${seconds(before)} to ${seconds(after)}`;
  find("changes").prepend(element("li", `${prediction.job}, ${seconds(prediction.time)}: ${what}, since ${seconds(since)}`));
  while (find("changes").children.length > MOST_CHANGES) find("changes").lastChild.remove();
}

// At most one picture every REDRAW_MS, and none that nobody looks at.
function refresh() {
  if (waiting) { again = true; return; }
  waiting = true;
  show(chosen()).catch(() => { find("link").textContent = "not connected"; }).finally(() => setTimeout(() => {
    waiting = false;
    if (again) { again = false; refresh(); }
  }, REDRAW_MS));
}

async function show(job) {
  const prediction = latest.get(job);
  if (!prediction) return;
  tell(prediction);
  if (document.hidden) return;
  const answer = await fetch(`signal?job=${encodeURIComponent(job)}`);
  if (!answer.ok) return;
  draw(prediction, await answer.json());
}

function tell(prediction) {
  const found = prediction.period, next = prediction.next_phase;
  find("verdict").textContent = found ? `${prediction.job}: a period of ${seconds(found.seconds)}` : `${prediction.job}: no period`;
  const facts = [["time of the job", seconds(prediction.time)]];
  if (found) {
    facts.push(["period", `${seconds(found.seconds)}, give or take ${seconds(found.spread)}`]);
    facts.push(["false-alarm probability", plain(found.false_alarm_probability)]);
  }
  if (next) facts.push(["next phase", `from ${plain(next.start)} to ${seconds(next.end)}, about ${bytes(next.bytes)}, ${(100 * next.confidence).toFixed(0)} % sure`]);
  facts.push(["looked at", `${plain(prediction.window[0])} to ${seconds(prediction.window[1])}, ${count(prediction.messages)} messages`]);
  table(find("facts"), ["", ""], facts);
  table(find("ranges"), ["period", "frequency", "probability"], prediction.probabilities.map((range) => [
    `${plain(1 / range.high)} to ${seconds(1 / range.low)}`, `${plain(range.low)} to ${plain(range.high)} Hz`, `${(100 * range.probability).toFixed(0)} %`]));
}

function draw(prediction, curve) {
  const found = prediction.period, next = prediction.next_phase;
  const all = time.low === time.first && time.high === time.last, other = shown !== prediction.job;
  Object.assign(signal, { start: curve.start, step: curve.step, values: curve.values });
  picture.bands = found ? found.valid_ranges : [];
  picture.marks = next ? [{ x: next.start, name: "next phase" }] : [];
  time.first = curve.start;
  time.last = Math.max(curve.end, next ? next.end : curve.end);
  if (!drawn) drawn = plot(find("signal"), picture);
  shown = prediction.job;
  if (all || other) time.reset(); else time.show(time.low, time.high);
}

find("job").addEventListener("change", refresh);
document.addEventListener("visibilitychange", () => { if (!document.hidden) refresh(); });

const events = new EventSource("events");
events.addEventListener("open", () => { find("link").textContent = "connected"; });
events.addEventListener("error", () => { find("link").textContent = "not connected"; });
events.addEventListener("message", (event) => hear(JSON.parse(event.data)));
fetch("jobs").then((answer) => answer.json()).then(({ jobs }) => {
  for (const job of jobs) if (job.window && !latest.has(job.job)) hear(job);
  refresh();
}).catch(() => { find("link").textContent = "not connected"; });
