const data = JSON.parse(document.getElementById("data").textContent);
const find = (id) => document.getElementById(id);
const percent = (value) => `${(100 * value).toFixed(1)} %`;
const factor = (value) => value.toFixed(2);
const work = data.workload;
find("verdict").textContent = data.verdict;
find("source").textContent = `${work.source}: ${data.outcomes[0].jobs.length} jobs, ${rate(work.bandwidth)}, load ${(100 * work.load).toFixed(0)} %, ${plain(work.horizon)} s, ${count(work.seeds)} seeds`;

// One bar for each policy, with the interval of its mean.
function bars(place, label, key, text, from) {
  const line = 26, left = 150, width = Math.max(320, Math.min(1160, place.clientWidth || 1000)), height = data.outcomes.length * line + 24;
  const highest = Math.max(...data.outcomes.map((one) => one[key].high)), svg = drawing(place, width, height, label);
  const across = (value) => left + Math.max(0, value - from) / (highest - from) * (width - left - 250);
  shape(svg, "text", { fill: "var(--ink)", "font-size": 13, x: 4, y: 14 }, label);
  data.outcomes.forEach((one, n) => {
    const y = 22 + n * line, value = one[key];
    shape(svg, "text", { fill: "var(--ink)", "font-size": 13, x: left - 8, y: y + 14, "text-anchor": "end" }, one.name);
    shape(svg, "rect", { x: left, y, width: Math.max(1, across(value.mean) - left), height: 18, rx: 2, fill: one.policy === "set-10" ? "var(--c3)" : one.policy === "fair-share" ? "var(--dim)" : "var(--c1)" });
    shape(svg, "line", { x1: across(value.low), x2: across(value.high), y1: y + 9, y2: y + 9, stroke: "var(--ink)", "stroke-width": 2 });
    shape(svg, "text", { fill: "var(--ink)", "font-size": 13, x: across(value.high) + 8, y: y + 14 }, `${text(value.mean)} (${text(value.low)} to ${text(value.high)})`);
  });
}

function lanes(place, shown) {
  place.replaceChildren();
  const jobs = shown.jobs, line = 20, left = 150, width = Math.max(320, Math.min(1160, place.clientWidth || 1000)), height = jobs.length * line + 30;
  const last = Math.max(1, ...jobs.flatMap((one) => one.turns.map((turn) => turn[2]))), svg = drawing(place, width, height, `Turns under ${shown.policy}`);
  const across = (time) => left + time / last * (width - left - 16);
  for (const tick of ticks(0, last, 6)) {
    shape(svg, "line", { x1: across(tick), x2: across(tick), y1: 2, y2: height - 22, stroke: "var(--line)" });
    shape(svg, "text", { fill: "var(--ink)", "font-size": 13, x: across(tick), y: height - 6, "text-anchor": "middle" }, `${plain(tick)} s`);
  }
  jobs.forEach((one, n) => {
    const y = 4 + n * line;
    shape(svg, "text", { fill: "var(--ink)", "font-size": 13, x: left - 8, y: y + 12, "text-anchor": "end" }, one.job.length > 20 ? `${one.job.slice(0, 19)}…` : one.job);
    for (const [asked, served, end] of one.turns) {
      if (served > asked) shape(svg, "rect", { x: across(asked), y, width: Math.max(0.5, across(served) - across(asked)), height: 14, fill: "var(--mark)", opacity: 0.45 });
      const bar = shape(svg, "rect", { x: across(served), y, width: Math.max(0.8, across(end) - across(served)), height: 14, fill: "var(--c1)" });
      shape(bar, "title", {}, `${one.job}: asked at ${plain(asked)} s, served from ${plain(served)} to ${plain(end)} s`);
    }
  });
}

bars(find("utilisation"), "Utilisation", "utilisation", percent, Math.max(0, Math.min(...data.outcomes.map((one) => one.utilisation.low)) - 0.05));
bars(find("slowdown"), "I/O slowdown", "io_slowdown", factor, 0);
table(find("outcomes"), ["policy", "utilisation", "gain", "I/O slowdown", "less", "max stretch"], data.outcomes.map((one) => [
  one.name, percent(one.utilisation.mean), one.gain ? percent(one.gain.utilisation) : "", factor(one.io_slowdown.mean), one.gain ? percent(one.gain.io_slowdown) : "", factor(one.max_stretch.mean)]));
for (const [number, one] of data.lanes.entries()) {
  const option = element("option", one.policy);
  option.value = number;
  find("policy").append(option);
}
find("policy").addEventListener("change", () => lanes(find("lanes"), data.lanes[find("policy").value]));
lanes(find("lanes"), data.lanes[0]);
table(find("jobs"), ["job", ...data.outcomes.map((one) => one.name)], data.outcomes[0].jobs.map((job, n) => [
  job.name, ...data.outcomes.map((one) => factor(one.jobs[n].stretch))]));
document.documentElement.dataset.ready = "yes";
