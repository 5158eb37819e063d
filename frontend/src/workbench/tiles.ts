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

const PAUSE = 80; // milliseconds after which what is seen is asked for as finely as it can be had
const BESIDE = 0.25, AHEAD = 0.5; // of the view: what is asked for on either side, and while it moves

// Asks for what is seen once the user pauses, and for what comes next while the view moves; the old picture stays until the new one is there.
export function followTiles(pane: Pane, adopt: (marks: Marks, header: TileHeader, loaded: Loaded) => void): () => void {
  const { axis, job } = pane;
  let pause = 0, busy = false, last = `${BESIDE} ${axis.first} ${axis.last} `; // the whole run is there from the start
  const within = (beside: number): boolean => !job.loaded || (job.loaded.low <= Math.max(axis.first, axis.low - beside * axis.span) && job.loaded.high >= Math.min(axis.last, axis.high + beside * axis.span));
  const ask = async (beside: number): Promise<void> => {
    const { low, high } = axis, seen = pane.visibleRanks();
    // Only where all ranks together are too many calls, those of the visible rows are asked for.
    const some = seen && seen[1] - seen[0] + 1 < job.ranks && !axis.whole && (job.data.timeline.width !== null || job.loaded?.ranks) ? seen : null;
    const ranks = some ? `${some[0]}-${some[1]}` : "", key = `${beside} ${low} ${high} ${ranks}`, margin = beside * (high - low), began = performance.now();
    if (busy || key === last) return;
    busy = true;
    try {
      const loaded = { low: Math.max(axis.first, low - margin), high: Math.min(axis.last, high + margin), ranks: some }, { marks, header } = await fetchTile(loaded.low, loaded.high, ranks);
      last = key;
      adopt(marks, header, loaded);
      document.documentElement.dataset["tile"] = String(Math.round(performance.now() - began));
      follow();
    } catch { document.documentElement.dataset["tile"] = "failed"; }
    busy = false;
  };
  const follow = (): void => {
    clearTimeout(pause);
    pause = window.setTimeout(() => void ask(BESIDE), PAUSE);
    if (!within(BESIDE / 2)) void ask(AHEAD);
  };
  return follow;
}

// Hosts, then causes, findings and tables, come when the analyses have finished.
export async function awaitStory(adopt: (data: Partial<PageData>, complete: boolean) => void): Promise<void> {
  for (let known = 0;;) {
    const answer = await fetch(`story?known=${known}`, { cache: "no-store" });
    if (!answer.ok) return;
    const data = await answer.json() as Partial<PageData> & { complete?: boolean } | null;
    if (data) { adopt(data, Boolean(data.complete)); if (data.complete) return; known += 1; }
    else await new Promise((resolve) => setTimeout(resolve, 700));
  }
}
