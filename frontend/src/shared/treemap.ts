// Areas as rectangles that stay near squares (Bruls, Huizing and van Wijk 2000).
export interface Rect { x: number; y: number; width: number; height: number }

// Values from large to small, all above 0.
export function squarify(values: number[], wide: number, high: number): Rect[] {
  const total = values.reduce((sum, value) => sum + value, 0), areas = values.map((value) => value / total * wide * high), placed: Rect[] = [];
  const worst = (row: number[], side: number): number => { const sum = row.reduce((a, b) => a + b, 0); return Math.max(...row.map((area) => Math.max(side * side * area / (sum * sum), sum * sum / (side * side * area)))); };
  let x = 0, y = 0, width = wide, height = high;
  for (let done = 0; done < areas.length;) {
    const side = Math.min(width, height), row = [areas[done]];
    while (done + row.length < areas.length && worst([...row, areas[done + row.length]], side) <= worst(row, side)) row.push(areas[done + row.length]);
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
