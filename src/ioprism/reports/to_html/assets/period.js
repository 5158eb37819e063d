const data = JSON.parse(document.getElementById("data").textContent);
const find = (id) => document.getElementById(id);
const seconds = (value) => `${plain(value)} s`;
const found = data.period;
const subject = data.direction === "both" ? "The job's I/O" : `The job's ${data.direction} phases`;
const maybe = found && found.certainty === "maybe" ? "maybe " : "";
const verdict = !found ? `${subject}: no period`
  : data.turns ? `Reads and writes take turns; each repeats every ${seconds(found.seconds)}` : `${subject}: ${maybe}a period of ${seconds(found.seconds)}`;
find("verdict").textContent = verdict;
find("source").textContent = data.source.join(", ");
for (const text of data.warnings) find("warnings").append(element("p", text, "warning"));

const facts = [];
if (found) {
  facts.push(["period", `${seconds(found.seconds)}, give or take ${seconds(found.spread)}`]);
  facts.push(["frequency", `${plain(found.frequency)} Hz`]);
  facts.push(["false-alarm probability", plain(found.false_alarm_probability)]);
  facts.push(["confidence", `${(100 * found.confidence).toFixed(0)} % (${found.method})`]);
  facts.push(["holds in", found.valid_ranges.map(([a, b]) => `${plain(a)} to ${seconds(b)}`).join(", ")]);
} else facts.push(["answer", "a signal without rhythm would often look like this"]);
if (data.burst) facts.push(["each phase", `${bytes(data.burst.bytes)}, nearly all that it moves, within ${seconds(data.burst.width)}, ${(100 * data.burst.duty_cycle).toFixed(0)} % of the period`]);
if (data.next) facts.push(["next phase", `from ${plain(data.next.start)} to ${seconds(data.next.end)}, about ${bytes(data.next.bytes)}`]);
if (data.fit) facts.push(["fit", `mean square error ${plain(data.fit.before)} before, ${plain(data.fit.after)} after`]);
table(find("facts"), ["", ""], facts);
if (data.rhythms.length > 1) {
  table(find("rhythms"), ["period", "of", "holds in", "false alarm", "confidence"], data.rhythms.map((one) => [
    seconds(one.seconds), one.part || one.direction, one.valid_ranges.map(([a, b]) => `${plain(a)} to ${seconds(b)}`).join(", "),
    plain(one.false_alarm_probability), `${(100 * one.confidence).toFixed(0)} %`]));
} else find("rhythms-section").remove();

const last = data.next ? Math.max(data.signal.end, data.next.end) : data.signal.end;
const time = axis(data.signal.start, last);
const wave = (w) => (x) => w.amplitude * Math.cos(2 * Math.PI * w.frequency * x + w.phase);
const curves = [{ name: "bandwidth", colour: "--c1", ...data.signal }];
if (found) {
  const cosine = wave(found);
  curves.push({ name: "dominant wave", colour: "--c2", width: 2, at: (x) => Math.max(0, data.signal.mean + cosine(x)) });
}
if (data.waves.length) {
  const all = data.waves.map(wave);
  curves.push({ name: `sum of ${data.waves.filter((w) => w.frequency > 0).length} waves`, colour: "--c3", width: 1.6, at: (x) => all.reduce((sum, one) => sum + one(x), 0) });
}
const marks = data.next ? [{ x: data.next.start, name: "next phase" }] : [];
plot(find("signal"), {
  label: "Bandwidth over time", axis: time, height: 280, curves, bands: found ? found.valid_ranges : [], marks, upText: rate,
  phases: data.phases, ahead: data.next ? [[data.next.start, data.next.end]] : [],
});

const lines = data.spectrum, step = lines.frequency.length > 1 ? lines.frequency[1] - lines.frequency[0] : 1;
const highest = Math.max(...data.candidates.map((c) => c.frequency), found ? found.frequency : 0);
const hertz = axis(0, lines.frequency.length ? lines.frequency[lines.frequency.length - 1] : 1);
plot(find("spectrum"), {
  label: "Power spectrum", axis: hertz, unit: "Hz",
  curves: [{ name: "share of variance", colour: "--c1", start: (lines.frequency[0] || 0) - step / 2, step, values: lines.share }],
  marks: [
    ...(found ? [{ x: found.frequency, name: `the answer: every ${seconds(found.seconds)}`, colour: "--c2" }] : []),
    ...data.candidates.map((c) => ({ x: c.frequency, name: `${plain(c.frequency)} Hz` })),
  ],
});
if (highest > 0) hertz.show(0, Math.min(hertz.last, 12 * highest));
if (data.candidates.length) {
  table(find("candidates"), ["frequency", "period", "power", "score", "confidence"], data.candidates.map((c) => [
    `${plain(c.frequency)} Hz`, seconds(1 / c.frequency), `${(100 * c.power_share).toFixed(1)} %`, c.score.toFixed(1), `${(100 * c.confidence).toFixed(0)} %`]));
}

const answer = found ? found.seconds : null;
if (data.scalogram) {
  heat(find("scalogram"), { label: "Scalogram", axis: time, answer, ...data.scalogram });
  heat(find("spectrogram"), { label: "Spectrogram", axis: time, answer, ...data.spectrogram });
} else find("scalogram-section").remove();

if (data.hybrid) {
  const h = data.hybrid, cosine = wave(h);
  plot(find("approximation"), {
    label: "Approximation and dominant wave", axis: time, height: 180, bands: h.ranges, upText: rate,
    curves: [{ name: `approximation, level ${h.level}`, colour: "--c1", ...h.approximation }, { name: "wave", colour: "--c2", width: 2, at: (x) => Math.max(0, data.signal.mean + cosine(x)) }],
  });
  plot(find("correlation"), {
    label: "Correlation of wave and approximation", axis: time, height: 140, bands: h.ranges, low: -1, high: 1,
    curves: [{ name: "correlation", colour: "--c4", ...h.correlation }],
  });
} else find("hybrid-section").remove();

find("save").addEventListener("click", () => {
  const link = element("a");
  link.href = find("signal").querySelector("canvas").toDataURL("image/png");
  link.download = "bandwidth.png";
  link.click();
});
