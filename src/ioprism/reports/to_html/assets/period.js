const data = JSON.parse(document.getElementById("data").textContent);
const find = (id) => document.getElementById(id);
const seconds = (value) => `${plain(value)} s`;
const found = data.period;
find("verdict").textContent = data.verdict;
find("source").textContent = data.source.join(", ");
for (const text of data.warnings) find("warnings").append(element("p", text, "warning"));

const facts = [];
if (found) {
  facts.push(["period", `${seconds(found.seconds)}, standard deviation ${seconds(found.spread)}`]);
  facts.push(["frequency", `${plain(found.frequency)} Hz`]);
  facts.push(["false-alarm probability", plain(found.false_alarm_probability)]);
  facts.push(["confidence", `${(100 * found.confidence).toFixed(0)} % (${found.method})`]);
  facts.push(["holds in", found.valid_ranges.map(([a, b]) => `${plain(a)} to ${seconds(b)}`).join(", ")]);
  facts.push(["explains", `${(100 * found.bytes_share).toFixed(0)} % of the ${data.direction === "both" ? "bytes" : `bytes of all ${data.direction}s`}, ${(100 * found.time_share).toFixed(0)} % of the time`]);
} else facts.push(["answer", data.verdict]);
if (data.burst) facts.push(["each phase", `${bytes(data.burst.bytes)}, nearly all that it moves, within ${seconds(data.burst.width)}, ${(100 * data.burst.duty_cycle).toFixed(0)} % of the period`]);
if (data.next) facts.push(["next phase", `from ${plain(data.next.start)} to ${seconds(data.next.end)}, about ${bytes(data.next.bytes)}`]);
table(find("facts"), ["", ""], facts);
const percent = (value) => value === null ? "" : `${(100 * value).toFixed(value < 0.1 ? 1 : 0)} %`;
if (data.rhythms.length > 1 || (!found && data.rhythms.length)) {
  table(find("rhythms"), ["period", "of", "bytes", "holds in", "false alarm", "confidence"], data.rhythms.map((one) => [
    seconds(one.seconds), one.part || one.direction, percent(one.bytes_share), one.valid_ranges.map(([a, b]) => `${plain(a)} to ${seconds(b)}`).join(", "),
    plain(one.false_alarm_probability), `${(100 * one.confidence).toFixed(0)} %`]));
} else find("rhythms-section").remove();

const last = data.next ? Math.max(data.signal.end, data.next.end) : data.signal.end;
const time = axis(data.signal.start, last);
const wave = (w) => (x) => w.amplitude * Math.cos(2 * Math.PI * w.frequency * x + w.phase);
const within = (ranges, at) => (x) => ranges.some(([a, b]) => x >= a && x <= b) ? at(x) : null;
const sum = (waves) => { const all = waves.map(wave); return (x) => all.reduce((total, one) => total + one(x), 0); };
const curves = [{ name: data.direction === "both" ? "bandwidth" : `bandwidth of ${data.direction}s`, colour: "--c1", ...data.signal }];
if (found) {
  const cosine = wave(found);
  curves.push({ name: "dominant wave, where the period holds", colour: "--c2", width: 2, at: within(found.valid_ranges, (x) => Math.max(0, data.signal.mean + cosine(x))) });
}
const marks = data.next ? [{ x: data.next.start, name: "next phase" }] : [];
plot(find("signal"), {
  label: "Bandwidth over time", axis: time, height: 280, curves, bands: found ? found.valid_ranges : [], marks, upText: rate,
  phases: data.phases, ahead: data.next ? [[data.next.start, data.next.end]] : [],
});

const sampled = { name: "sampled signal", colour: "--c1", ...data.signal };
const fitted = { name: `fit of ${data.fit.waves.length - 1} waves`, colour: "--c2", width: 2, at: sum(data.fit.waves) };
const TONES = ["--c3", "--c4", "--mark", "--dim", "--ink"];
const sums = data.sums.map((one, n) => ({ name: `${one.count} waves`, colour: TONES[n % TONES.length], width: 1.6, at: sum(one.waves), count: one.count }));
const chosenSums = new Set(sums.map((one) => one.count));
function drawWaves() {
  find("waves").replaceChildren();
  plot(find("waves"), { label: "Sampled signal, sums of waves and fit", axis: time, height: 260, upText: rate, curves: [sampled, ...sums.filter((one) => chosenSums.has(one.count)), fitted] });
}
for (const one of sums) {
  const box = element("label"), tick = element("input");
  tick.type = "checkbox";
  tick.checked = true;
  tick.addEventListener("change", () => { if (tick.checked) chosenSums.add(one.count); else chosenSums.delete(one.count); drawWaves(); });
  box.append(tick, document.createTextNode(` ${one.count} waves `));
  find("counts").append(box);
}
drawWaves();
table(find("fit"), ["", ""], [["fit", `mean square error ${plain(data.fit.before)} for the waves of the spectrum, ${plain(data.fit.after)} fitted (${data.fit.before > 0 ? (100 * (1 - data.fit.after / data.fit.before)).toFixed(1) : 0} % less)`]]);

if (data.asynchronous.length) for (const one of data.asynchronous) {
  const figure = element("figure"), below = element("div");
  find("asynchronous").append(element("h3", `${one.direction}s`), figure, below);
  plot(figure, { label: "Required and measured bandwidth", axis: time, height: 200, upText: rate, curves: [
    { name: "required (B)", colour: "--c2", width: 2, ...one.b }, { name: "measured (T)", colour: "--c1", ...one.t }] });
  table(below, ["", ""], [["required", `${rate(one.required.peak)} so that all ${count(one.requests)} requests stay hidden`], ["measured", `${rate(one.measured.peak)} at most`],
    ["hidden", `${percent(one.hidden)} of the requests; ranks waited ${seconds(one.waited)} in all`]]);
} else find("asynchronous-section").remove();

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

for (const one of data.levels) {
  const figure = element("figure"), name = one.details ? `level ${one.level}: periods of ${plain(one.shortest)} to ${seconds(one.longest)}` : `approximation of level ${one.level}`;
  const shown = one.details || one.approximation, most = Math.max(...shown.values.map(Math.abs)) || 1;
  find("levels").append(figure);
  plot(figure, { label: name, axis: time, height: 110, upText: rate, low: one.details ? -most : 0, high: most, curves: [{ name, colour: one.details ? "--c4" : "--c1", ...shown }] });
}
if (!data.levels.length) find("levels-section").remove();

if (data.hybrid) {
  const h = data.hybrid, cosine = wave(h);
  plot(find("approximation"), {
    label: "Approximation and dominant wave", axis: time, height: 180, bands: h.ranges, upText: rate,
    curves: [{ name: `approximation, level ${h.level}`, colour: "--c1", ...h.approximation }, { name: "wave", colour: "--c2", width: 2, at: within(h.ranges, (x) => Math.max(0, data.signal.mean + cosine(x))) }],
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
