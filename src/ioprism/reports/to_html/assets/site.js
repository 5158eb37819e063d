// Puts the page of a centre together.
const data = JSON.parse(document.getElementById("data").textContent);
const find = (id) => document.getElementById(id);
const hours = (value) => `${value >= 100 ? count(value) : +value.toPrecision(2)} node-hours`;
const DAY = 86400;
const dayOf = (seconds) => new Date(seconds * 1000).toISOString().slice(0, 10);

// One line for each event, on one axis of days.
function eventLines(place, events, [first, last]) {
  if (!events.length || !(last > first)) { place.hidden = true; return; }
  const shown = events.slice(0, 30), width = 1000, left = 190, line = 22, height = shown.length * line + 34;
  const across = (time) => left + (time - first) / (last - first) * (width - left - 20), svg = drawing(place, width, height, "When targets, nodes and applications changed");
  for (let i = 0; i <= 4; i += 1) {
    const time = first + i / 4 * (last - first);
    shape(svg, "line", { x1: across(time), x2: across(time), y1: 4, y2: height - 24, class: "axis" });
    shape(svg, "text", { x: across(time), y: height - 8, "text-anchor": i === 4 ? "end" : "middle" }, dayOf(time));
  }
  shown.forEach((event, n) => {
    const y = 6 + n * line, end = event.to === null ? event.from + DAY : event.to, tone = event.kind.startsWith("slow") ? "slow" : event.kind.startsWith("changed") ? "changed" : "noisy";
    const name = `${event.kind.replace("-", " ")}: ${event.subject}`;
    shape(svg, "text", { x: 4, y: y + 13 }, name.length > 28 ? `${name.slice(0, 27)}…` : name);
    const bar = shape(svg, "rect", { x: across(event.from), y, width: Math.max(4, across(end) - across(event.from)), height: line - 8, rx: 2, class: tone });
    shape(bar, "title", {}, event.text);
  });
}

function adviceItem(one) {
  const item = element("li"), head = element("p");
  head.append(element("strong", `${one.application}: ${hours(one.hours)}`), document.createTextNode(` in ${count(one.jobs)} jobs. ${one.title}.`));
  item.append(head);
  if (one.advice) item.append(element("p", one.advice, "advice"));
  const look = element("p", one.report ? "Look at one of them: " : `Look at one of them: ioprism report ${one.log} -o job.html`, "hint");
  if (one.report) { const link = element("a", one.log); link.href = encodeURI(one.report); look.append(link); }
  item.append(look);
  return item;
}

function main() {
  find("line").textContent = data.line;
  for (const [name, text] of data.facts) { const pair = element("div"); pair.append(element("dt", name), element("dd", text)); find("facts").append(pair); }
  find("advice").append(...data.advice.map(adviceItem));
  if (!data.advice.length) find("advice").replaceWith(element("p", "No job has a cause worth removing.", "calm"));
  eventLines(find("timeline"), data.events, data.span);
  find("events").append(...data.events.map((event) => element("li", event.text)));
  if (!data.events.length) find("events").replaceWith(element("p", "Nothing certain.", "calm"));
  treemap(find("treemap"), data.savings, hours);
  for (const one of data.tables) sortableTable(find("tables"), one);
  document.documentElement.dataset.ready = "yes";
}

main();
