// Puts the page of a centre together.
const data = JSON.parse(document.getElementById("data").textContent);
const find = (id) => document.getElementById(id);
const hours = (value) => `${value >= 100 ? count(value) : +value.toPrecision(2)} node-hours`;
const DAY = 86400;
const dayOf = (seconds) => new Date(seconds * 1000).toISOString().slice(0, 10);

// One line for each event, on one axis of days; on narrow screens with its name above it.
function eventLines(place, events, [first, last]) {
  place.hidden = !events.length || !(last > first);
  if (place.hidden) return;
  const width = Math.max(320, Math.min(1000, place.clientWidth)), narrow = width < 640, left = narrow ? 4 : 190, above = narrow ? 18 : 0;
  const shown = events.slice(0, 30), line = 22 + above, height = shown.length * line + 34, ticks = narrow ? 2 : 4;
  const across = (time) => left + (time - first) / (last - first) * (width - left - 20), svg = drawing(place, width, height, "When targets, nodes and applications changed");
  for (let i = 0; i <= ticks; i += 1) {
    const time = first + i / ticks * (last - first);
    shape(svg, "line", { x1: across(time), x2: across(time), y1: 4, y2: height - 24, class: "axis" });
    shape(svg, "text", { x: across(time), y: height - 8, "text-anchor": i === ticks ? "end" : i || !narrow ? "middle" : "start" }, dayOf(time));
  }
  shown.forEach((event, n) => {
    const y = 6 + n * line + above, end = event.to === null ? event.from + DAY : event.to, tone = event.kind.startsWith("slow") ? "slow" : event.kind.startsWith("changed") ? "changed" : "noisy";
    const name = `${event.kind.replace("-", " ")}: ${event.subject}`, most = narrow ? 44 : 28;
    shape(svg, "text", { x: 4, y: narrow ? y - 4 : y + 12 }, name.length > most ? `${name.slice(0, most - 1)}…` : name);
    const bar = shape(svg, "rect", { x: across(event.from), y, width: Math.max(6, across(end) - across(event.from)), height: 14, rx: 2, class: tone });
    shape(bar, "title", {}, event.text);
  });
}

function adviceItem(one) {
  const item = element("li"), head = element("p");
  head.append(element("strong", `${one.applications}: ${hours(one.hours)}`), document.createTextNode(` in ${count(one.jobs)} jobs. ${one.title}.`));
  item.append(head);
  if (one.advice) item.append(element("p", one.advice, "advice"));
  const look = element("p", one.report ? "Look at one of them: " : `Look at one of them: ioprism report ${one.log} -o job.html`, "hint");
  if (one.report) { const link = element("a", one.log); link.href = encodeURI(one.report); look.append(link); }
  item.append(look);
  return item;
}

// Shows what has this text in it: advice, events, savings and rows of tables.
function showMatching(needle) {
  const has = (text) => text.toLowerCase().includes(needle);
  for (const item of document.querySelectorAll("#advice > li, #events > li")) item.hidden = !has(item.dataset.words);
  eventLines(find("timeline"), data.events.filter((event) => has(`${event.kind} ${event.text}`)), data.span);
  treemap(find("treemap"), data.savings.filter((one) => has(`${one.name} ${Object.keys(one.parts).join(" ")}`)), hours);
  for (const filter of document.querySelectorAll("#tables input")) { filter.value = needle; filter.dispatchEvent(new Event("input")); }
}

function listed(place, items, nothing) {
  if (!items.length) { place.replaceWith(element("p", nothing, "calm")); return; }
  for (const [item, words] of items) { item.dataset.words = words; place.append(item); }
}

function main() {
  find("line").textContent = data.line;
  for (const [name, text] of data.facts) { const pair = element("div"); pair.append(element("dt", name), element("dd", text)); find("facts").append(pair); }
  listed(find("advice"), data.advice.map((one) => [adviceItem(one), `${one.words} ${one.title} ${one.advice}`]), "No job has a cause worth removing.");
  listed(find("events"), data.events.map((event) => [element("li", event.text), `${event.kind} ${event.text}`]), "Nothing certain.");
  for (const one of data.tables) sortableTable(find("tables"), one);
  showMatching("");
  find("filter").addEventListener("input", (typed) => showMatching(typed.target.value.toLowerCase()));
  document.documentElement.dataset.ready = "yes";
}

main();
