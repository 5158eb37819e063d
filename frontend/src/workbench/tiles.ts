// The same page over a trace of any size: marks come from the local server as the user moves.
import { decodeMarks, type Marks } from "./marks.ts";
import type { Pane } from "./pane.ts";
import type { Header, PageData } from "./types.ts";

export interface TileHeader extends Header { width: number | null; rank_step: number }
export interface Loaded { low: number; high: number; ranks: [number, number] | null }

export async function fetchTile(low: number, high: number, ranks: string): Promise<{ marks: Marks; header: TileHeader }> {
  const wanted = new URLSearchParams({ start: String(low), end: String(high), columns: String(Math.min(1200, Math.max(400, window.innerWidth))), ranks });
  const answer = await fetch(`tile?${wanted}`, { cache: "no-store" });
  if (!answer.ok) throw new Error(`tile: ${answer.status}`);
  const raw = new Uint8Array(await answer.arrayBuffer()), length = new DataView(raw.buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(raw.subarray(4, 4 + length))) as TileHeader;
  return { marks: decodeMarks(header, raw.subarray(4 + length)), header };
}

// Asks for what is seen, once the user pauses; the old picture stays until the new one is there.
export function followTiles(pane: Pane, adopt: (marks: Marks, header: TileHeader, loaded: Loaded) => void): () => void {
  let asked = 0, number = 0, last = `${pane.axis.first} ${pane.axis.last} `; // the whole run is there from the start
  return () => {
    const { low, high, first, last: end } = pane.axis, margin = 0.25 * (high - low), seen = pane.visibleRanks();
    // Only where all ranks together are too many calls, those of the visible rows are asked for.
    const some = seen && seen[1] - seen[0] + 1 < pane.job.ranks && !pane.axis.whole && (pane.job.data.timeline.width !== null || pane.job.loaded?.ranks) ? seen : null;
    const ranks = some ? `${some[0]}-${some[1]}` : "", key = `${low} ${high} ${ranks}`;
    if (key === last) return;
    last = key;
    clearTimeout(asked);
    asked = window.setTimeout(() => {
      number += 1;
      const mine = number, began = performance.now();
      const loaded = { low: Math.max(first, low - margin), high: Math.min(end, high + margin), ranks: some };
      fetchTile(loaded.low, loaded.high, ranks).then(({ marks, header }) => {
        if (mine !== number) return;
        adopt(marks, header, loaded);
        document.documentElement.dataset["tile"] = String(Math.round(performance.now() - began));
      }).catch(() => { document.documentElement.dataset["tile"] = "failed"; last = ""; });
    }, 80);
  };
}

// Causes, findings and tables come when the analyses have finished.
export async function awaitStory(adopt: (data: PageData) => void): Promise<void> {
  for (;;) {
    const answer = await fetch("story", { cache: "no-store" });
    if (!answer.ok) return;
    const data = await answer.json() as PageData | null;
    if (data) { adopt(data); return; }
    await new Promise((resolve) => setTimeout(resolve, 700));
  }
}
