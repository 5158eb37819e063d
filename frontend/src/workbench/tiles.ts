// The same page over a trace of any size: marks come from the local server as the user moves.
import { decodeMarks, type Marks } from "./marks.ts";
import type { Pane } from "./pane.ts";
import type { Header, PageData } from "./types.ts";

type Ranks = [number, number] | null; // first and last; null: all
export interface Loaded { low: number; high: number; ranks: Ranks }
export interface Tile extends Loaded { marks: Marks; width: number | null; rankStep: number } // width: seconds of a run of calls; null: every call is there

export async function fetchTile(low: number, high: number, ranks: Ranks): Promise<Tile> {
  const wanted = new URLSearchParams({ start: String(low), end: String(high), columns: String(Math.min(1200, Math.max(400, window.innerWidth))), ranks: ranks?.join("-") ?? "" });
  const answer = await fetch(`tile?${wanted}`, { cache: "no-store" });
  if (!answer.ok) throw new Error(`tile: ${answer.status}`);
  const raw = new Uint8Array(await answer.arrayBuffer()), length = new DataView(raw.buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(raw.subarray(4, 4 + length))) as Header & { width: number | null; rank_step: number };
  return { low, high, ranks, marks: decodeMarks(header, raw.subarray(4 + length)), width: header.width, rankStep: header.rank_step };
}

const PAUSE = 80; // milliseconds after which what is seen is asked for as finely as it can be had
const BESIDE = 0.25, AHEAD = 0.5; // of the view: what is asked for on either side, and while it moves
const FEWEST = 500; // columns of a window that the server finds fine enough; see views/tiles.py

const covers = (tile: Loaded, { low, high, ranks }: Loaded): boolean => tile.low <= low && tile.high >= high && (!tile.ranks || (ranks !== null && tile.ranks[0] <= ranks[0] && tile.ranks[1] >= ranks[1]));
// Whether the server's answer for a window would show no more than a tile that is there.
export const suffices = (tile: Tile, window: Loaded): boolean => covers(tile, window) && (tile.width === null || (!window.ranks && (window.high - window.low) / tile.width >= FEWEST));

// Asks for what is seen once the user pauses, and for what comes next while the view moves; the old picture stays until the new one is there.
// While the view moves, the tile of the whole run will do where it is fine enough: fetching takes longer than a frame.
export function followTiles(pane: Pane, whole: Tile, adopt: (tile: Tile) => void): () => void {
  const { axis, job } = pane;
  let pause = 0, busy = false, current = whole, last = "";
  const around = (beside: number, ranks: Ranks): Loaded => ({ low: Math.max(axis.first, axis.low - beside * axis.span), high: Math.min(axis.last, axis.high + beside * axis.span), ranks });
  // Only where all ranks together are too many calls, those of the visible rows are asked for.
  const ranksSeen = (): Ranks => { const seen = pane.visibleRanks(); return seen && seen[1] - seen[0] + 1 < job.ranks && !axis.whole && (current.width !== null || current.ranks) ? seen : null; };
  const take = (tile: Tile, key: string): void => { current = tile; last = key; adopt(tile); };
  const ask = async (moving: boolean): Promise<void> => {
    const window = around(moving ? AHEAD : BESIDE, ranksSeen()), key = JSON.stringify(window), there = [current, whole].find((tile) => suffices(tile, moving ? { ...window, ranks: null } : window)), began = performance.now();
    if (there && there !== current) take(there, "");
    if (there || busy || key === last) return;
    busy = true;
    try {
      take(await fetchTile(window.low, window.high, window.ranks), key);
      document.documentElement.dataset["tile"] = String(Math.round(performance.now() - began));
      follow(); // the view may have moved on, or fewer ranks be asked for
    } catch { document.documentElement.dataset["tile"] = "failed"; }
    busy = false;
  };
  const follow = (): void => {
    clearTimeout(pause);
    pause = window.setTimeout(() => void ask(false), PAUSE);
    if (!covers(current, around(BESIDE / 2, ranksSeen()))) void ask(true);
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
