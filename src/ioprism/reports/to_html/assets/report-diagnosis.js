// What stalls the job: the ledger as one bar, then a card for each cause with its contrast drawn.
const LEDGER_NAMES = { transfer: "transfer at the job's best rate", library: "inside MPI-IO and libraries, nothing at storage", programs: "loading programs and their libraries", "first-reads": "cold-cache reads", unexplained: "unexplained", untraced: "calls that only counters show", rest: "not stalled by I/O" };

function diagnosisSection(section, state) {
  const found = data.diagnosis, place = section.querySelector(".causes");
  section.hidden = !found;
  if (!found) return;
  ledgerBar(section.querySelector(".ledger"), found);
  place.replaceChildren(...found.causes.map((cause) => causeCard(cause, state)));
  if (!found.causes.length && !found.possible.length) place.append(element("p", found.calm, "calm"));
  const first = place.querySelector("details");
  if (first) first.open = true;
  if (found.possible.length) place.append(possibleList(found.possible));
  if (found.history) place.append(historyBlock(found.history));
  const notes = section.querySelector(".notes");
  notes.replaceChildren(...found.opportunities.map((text) => element("p", text, "hint")));
  if (found.not_checked.length) notes.append(uncheckedList(found.not_checked));
}

// What may be a cause: the log does not exclude that it costs nothing.
function possibleList(rows) {
  const block = element("div", undefined, "possible"), list = element("ul");
  block.append(element("h3", "Possible causes: the log cannot tell"));
  list.append(...rows.map((one) => {
    const item = element("li", `${one.title}: at most ${duration(one.upper)}; ${one.decide.text}`);
    if (one.decide.command) item.append(example(one.decide.command));
    return item;
  }));
  block.append(list);
  return block;
}

// What other jobs of the site and earlier runs say: sentences, and a small chart for each number.
function historyBlock(history) {
  const block = element("div", undefined, "history"), list = element("ul"), table = element("table");
  block.append(element("h3", "Against the history of the site"), list);
  list.append(...history.lines.map((line) => element("li", line)));
  if (!history.lines.length) list.append(element("li", `Nothing unusual beside ${history.runs} earlier runs at similar scale.`));
  for (const metric of history.metrics) {
    const row = element("tr", undefined, metric.unusual ? "unusual" : ""), chart = element("td");
    chart.append(historyChart(metric));
    row.append(element("th", metric.name), element("td", inUnit(metric.value, metric.unit)), element("td", `usually ${inUnit(metric.median, metric.unit)}`), chart);
    table.append(row);
  }
  if (history.metrics.length) block.append(table);
  return block;
}

function inUnit(value, unit) {
  if (unit === "s") return duration(value);
  if (unit === "B") return bytes(value);
  if (unit === "B/s") return `${bytes(value)}/s`;
  return unit === "share" ? `${Math.round(100 * value)} %` : Math.round(value).toLocaleString("en");
}

function historyChart(metric) {
  const space = "http://www.w3.org/2000/svg", picture = document.createElementNS(space, "svg");
  const values = [...metric.earlier.map(([, value]) => value), metric.value], top = Math.max(...values) || 1;
  picture.setAttribute("viewBox", "0 0 160 30");
  picture.setAttribute("width", "160");
  picture.setAttribute("role", "img");
  picture.setAttribute("aria-label", `${metric.name} of ${values.length - 1} earlier runs and of this one`);
  values.forEach((value, place) => {
    const dot = document.createElementNS(space, "circle"), last = place === values.length - 1;
    dot.setAttribute("cx", String(4 + 152 * place / Math.max(1, values.length - 1)));
    dot.setAttribute("cy", String(26 - 22 * value / top));
    dot.setAttribute("r", last ? "3.5" : "1.5");
    dot.setAttribute("fill", last ? "crimson" : "currentColor");
    picture.append(dot);
  });
  return picture;
}

function uncheckedList(rows) {
  const folded = element("details", undefined, "more"), list = element("ul");
  list.append(...rows.map(({ code, needs }) => element("li", `${code}: needs ${needs}`)));
  folded.append(element("summary", `${rows.length} cause${rows.length > 1 ? "s" : ""} that this trace cannot show`), list);
  return folded;
}

// The whole run as one bar: each cause, healthy transfer, and what I/O does not stall.
function ledgerBar(place, found) {
  const titles = new Map(found.causes.map((cause) => [cause.code, cause.title]));
  const lines = found.ledger.map((line) => ({ ...line })), held = lines.reduce((sum, line) => sum + line.seconds, 0);
  const rest = Math.max(0, (found.runtime || held) - held);
  if (rest > 0) lines.push({ what: "rest", seconds: rest });
  const whole = held + rest || 1, bar = element("div", undefined, "stack"), list = element("ul", undefined, "legend");
  let number = 0;
  for (const line of lines) {
    if (!(line.seconds > 0)) continue;
    const known = LEDGER_NAMES[line.what], tone = known ? `ledger-${line.what}` : `ledger-${(number += 1) % 8}`;
    const part = element("span", undefined, tone), name = titles.get(line.what) || known || line.what;
    part.style.width = `${100 * line.seconds / whole}%`;
    part.title = `${name}: ${duration(line.seconds)}`;
    bar.append(part);
    list.append(element("li", `${name}: ${duration(line.seconds)}`, `swatch ${tone}`));
  }
  bar.setAttribute("role", "img");
  bar.setAttribute("aria-label", `The run of ${duration(whole)}, by what it is spent on`);
  place.replaceChildren(bar, list);
}

function causeCard(cause, state) {
  const card = element("details", undefined, "finding cause high"), head = element("summary"), body = element("div", undefined, "body");
  card.id = `cause-${cause.id}`;
  const { seconds, low, high } = cause.saving;
  head.append(element("span", cause.title, "what"), element("span", `saves ${duration(seconds)} (${duration(low)} to ${duration(high)})`, "stake"));
  if (cause.show && data.timeline.count) body.append(showButton(cause, state));
  body.append(contrastOf(cause.contrast));
  cause.advice.forEach((advice) => {
    body.append(element("p", advice.text, "advice"));
    if (advice.snippet) body.append(example(advice.snippet));
  });
  const symptoms = data.findings.filter((finding) => finding.cause === cause.code);
  if (symptoms.length) {
    const folded = element("details", undefined, "more");
    folded.append(element("summary", `${symptoms.length} symptom${symptoms.length > 1 ? "s" : ""} on the same calls`), ...symptoms.map((finding) => findingCard(finding, state)));
    body.append(folded);
  }
  const hours = cause.core_hours >= 1 ? `, ${count(Math.round(cause.core_hours))} core-hours` : "";
  body.append(element("p", `cause: ${cause.code}, confidence ${(100 * cause.confidence).toFixed(0)} %${hours}`, "hint"));
  card.append(head, body);
  return card;
}

// The slow group beside its peers: the same work, drawn to scale.
function contrastOf({ what, names, slow, peers }) {
  const place = element("div", undefined, "contrast"), rows = [[names[0], slow], ...(peers ? [[names[1], peers]] : [])];
  if (what) place.append(element("p", what, "hint"));
  const measures = [["median call", "median_seconds", duration], ["rate", "rate", rate]].filter(([, key]) => rows.some(([, group]) => group[key] !== null && group[key] !== undefined));
  const made = element("table", undefined, "bars"), top = made.createTHead().insertRow();
  top.append(element("th", ""), element("th", "calls"), element("th", "bytes"), ...measures.flatMap(([title]) => [element("th", title), element("td", "")]));
  const body = made.createTBody();
  rows.forEach(([name, group], n) => {
    const line = body.insertRow(), title = element("th", name);
    title.scope = "row";
    line.append(title);
    line.insertCell().textContent = count(group.count);
    line.insertCell().textContent = group.bytes === null ? "–" : bytes(group.bytes);
    for (const [, key, text] of measures) {
      if (rows.length < 2) { line.insertCell().textContent = group[key] === null || group[key] === undefined ? "–" : text(group[key]); line.insertCell(); continue; }  // nothing to compare with
      const most = Math.max(...rows.map(([, one]) => one[key] || 0)) || 1, drawn = element("span", undefined, `bar part${n ? 1 : 2}`);
      line.insertCell().textContent = group[key] === null || group[key] === undefined ? "–" : text(group[key]);
      drawn.style.width = `${100 * (group[key] || 0) / most}%`;
      const cell = line.insertCell();
      cell.className = "drawn";
      cell.append(drawn);
    }
  });
  const holder = element("div", undefined, "scroll");
  holder.append(made);
  place.append(holder);
  return place;
}
