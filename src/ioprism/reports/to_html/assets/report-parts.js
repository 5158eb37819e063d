// The parts of the storage path, each with the rate that its calls reached; and time by directory.
function pathParts(section, key) {
  const parts = data.parts[key];
  section.hidden = !parts.rows.length;
  if (!parts.rows.length) return;
  section.querySelector(".hint").textContent = parts.note;
  const holder = section.querySelector(".rates");
  rateBars(holder, parts.rows, parts.title);
}

// Those with most time in calls first; a slow part is the shortest bar of its kind.
function rateBars(place, rows, title) {
  const known = rows.filter((row) => row.rate !== null).sort((a, b) => b.seconds - a.seconds), rates = known.map((row) => row.rate).sort((a, b) => a - b);
  const most = Math.max(1e-300, ...rates), middle = rates.length ? rates[Math.floor(rates.length / 2)] : 0;
  const made = element("table", undefined, "bars"), head = made.createTHead().insertRow();
  head.append(element("th", title), ...["calls", "read", "written", "time in calls", "rate"].map((name) => element("th", name)), element("td", ""));
  const body = made.createTBody();
  for (const row of known.slice(0, 256)) {
    const line = body.insertRow(), name = element("th", row.name), drawn = element("span", undefined, `bar ${row.rate < 0.5 * middle ? "part2" : "part1"}`);
    name.scope = "row";
    line.append(name);
    for (const text of [count(row.calls), bytes(row.read), bytes(row.written), duration(row.seconds), rate(row.rate)]) line.insertCell().textContent = text;
    drawn.style.width = `${100 * row.rate / most}%`;
    const cell = line.insertCell();
    cell.className = "drawn";
    cell.append(drawn);
  }
  place.replaceChildren(made);
}

// Time in calls by directory: a row for each level, as wide as the time; a click goes down, the first row up.
function directoryTree() {
  const sheet = data.tables.find((one) => one.title === "Files"), root = { name: "/", path: "", seconds: 0, inner: new Map() };
  if (!sheet) return root;
  const at = (name) => sheet.columns.findIndex((column) => column.name === name), file = at("file"), spent = at("time in calls"), layer = at("interface");
  const lowest = data.heights, seen = new Map();
  for (const row of sheet.rows) {
    if (row[file] === null) continue;
    const kept = seen.get(row[file]);
    if (kept === undefined || lowest[row[layer]] < lowest[kept[layer]]) seen.set(row[file], row);
  }
  for (const row of seen.values()) {
    const names = String(row[file]).split("/").filter(Boolean);
    let node = root;
    node.seconds += row[spent] || 0;
    for (const name of names) {
      if (!node.inner.has(name)) node.inner.set(name, { name, path: `${node.path}/${name}`, seconds: 0, inner: new Map(), above: node });
      node = node.inner.get(name);
      node.seconds += row[spent] || 0;
    }
  }
  return shortened(root);
}

// Directories that hold nothing but one directory are drawn as one.
function shortened(node) {
  while (node.inner.size === 1) {
    const [only] = node.inner.values();
    if (!only.inner.size) break;
    Object.assign(node, { name: node.name === "/" ? `/${only.name}` : `${node.name}/${only.name}`, path: only.path, inner: only.inner });
    for (const one of node.inner.values()) one.above = node;
  }
  for (const one of node.inner.values()) shortened(one);
  return node;
}

function directoryIcicle(section, state) {
  const root = directoryTree();
  section.hidden = !(root.seconds > 0) || root.inner.size === 0;
  if (section.hidden) return;
  const place = section.querySelector(".icicle"), top = root;
  const draw = (node) => {
    const rows = [[node]], LEVELS = 4;
    for (let level = 1; level < LEVELS; level += 1) rows.push(rows[level - 1].flatMap((one) => (one && one.inner.size ? [...one.inner.values()].sort((a, b) => b.seconds - a.seconds) : [])));
    place.replaceChildren();
    for (const [level, nodes] of rows.entries()) {
      if (!nodes.length) break;
      const line = element("div", undefined, "level");
      for (const one of nodes) {
        const part = one.seconds / node.seconds;
        if (part < 0.004) continue;
        const cell = element("button", `${one === node && one !== top ? "▲ " : ""}${one.name}`);
        cell.type = "button";
        cell.style.left = `${100 * offsetOf(one, node)}%`;
        cell.style.width = `${100 * part}%`;
        cell.title = `${one.path || "/"}: ${duration(one.seconds)}, ${(100 * part).toFixed(1)} %`;
        cell.addEventListener("click", () => {
          if (one === node) { if (node !== top) draw(node.above); } else if (one.inner.size) draw(one);
          else state.set({ files: filesNamed(one.path) });
        });
        line.append(cell);
      }
      place.append(line);
      if (level + 1 === LEVELS) break;
    }
  };
  draw(top);
}

// Where a node begins below another, as a share: after its larger siblings at every level between.
function offsetOf(node, root) {
  let from = 0;
  for (let one = node; one !== root; one = one.above) {
    for (const other of [...one.above.inner.values()].sort((a, b) => b.seconds - a.seconds)) {
      if (other === one) break;
      from += other.seconds;
    }
  }
  return from / root.seconds;
}
