// Areas as rectangles that stay near squares (Bruls, Huizing and van Wijk 2000).
function squarified(values, wide, high) {
  const total = values.reduce((sum, value) => sum + value, 0), rest = values.map((value) => value / total * wide * high), placed = [];
  let x = 0, y = 0, width = wide, height = high, done = 0;
  const worst = (row, side) => { const sum = row.reduce((a, b) => a + b, 0); return Math.max(...row.map((area) => Math.max(side * side * area / (sum * sum), sum * sum / (side * side * area)))); };
  while (done < rest.length) {
    const side = Math.min(width, height), row = [rest[done]];
    while (done + row.length < rest.length && worst([...row, rest[done + row.length]], side) <= worst(row, side)) row.push(rest[done + row.length]);
    const thick = row.reduce((a, b) => a + b, 0) / side;
    let along = 0;
    for (const area of row) {
      const long = area / thick;
      placed.push(width >= height ? { x, y: y + along, width: thick, height: long } : { x: x + along, y, width: long, height: thick });
      along += long;
    }
    if (width >= height) { x += thick; width -= thick; } else { y += thick; height -= thick; }
    done += row.length;
  }
  return placed;
}

// groups: [{ name, parts: { cause: hours } }]; shows groups, and the parts of the one that was clicked.
function treemap(place, groups, text) {
  const sum = (parts) => Object.values(parts).reduce((a, b) => a + b, 0), MOST = 60;
  const draw = (chosen) => {
    const every = chosen ? Object.entries(chosen.parts).map(([name, value]) => ({ name, value })) : groups.map((group) => ({ name: group.name, value: sum(group.parts), group }));
    const items = every.filter((item) => item.value > 0).sort((a, b) => b.value - a.value).slice(0, MOST);
    place.replaceChildren();
    if (chosen) { const up = element("button", `▲ ${chosen.name}: ${text(sum(chosen.parts))}`, "up"); up.type = "button"; up.addEventListener("click", () => draw(null)); place.append(up); }
    if (!items.length) { place.append(element("p", "Nothing to save.", "calm")); return; }
    const area = element("div", undefined, "area"), wide = place.clientWidth || 900, high = 416;
    squarified(items.map((item) => item.value), wide, high).forEach((box, n) => {
      const item = items[n], readable = box.width >= 48 && box.height >= 20, cell = element("button", readable ? `${item.name} ${text(item.value).split(" ")[0]}` : "", `tone${n % 5}`);
      cell.type = "button"; cell.title = `${item.name}: ${text(item.value)}`;
      Object.assign(cell.style, { left: `${100 * box.x / wide}%`, top: `${100 * box.y / high}%`, width: `${100 * box.width / wide}%`, height: `${100 * box.height / high}%` });
      if (item.group) cell.addEventListener("click", () => draw(item.group));
      area.append(cell);
    });
    place.append(area);
  };
  draw(null);
}
