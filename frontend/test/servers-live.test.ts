import assert from "node:assert/strict";
import { test } from "node:test";
import { pastOf, spansOf, verdictOf, type LoadRow, type Past, type Round } from "../src/servers-live/rounds.ts";

const MIB = 2 ** 20, load = { read: 0, write: 3 * MIB, operations: 3, opens: 0 };
const row = (name: string, more: Partial<LoadRow> = {}): LoadRow => ({ ...load, name, user: "", share: 1, ...more });
const round = (more: Partial<Round> = {}): Round => ({ ...load, time: 20, round: 2, moved: { read: 0, write: 0 }, unattributed: 0, jobs: [row("7", { user: "alice", share: 0.75 })], users: [], targets: [row("t")], counts: { jobs: 2, users: 1, targets: 1, sources: 1, answered: 1 }, notes: [], ...more });
const silent = round({ write: 0, jobs: [], targets: [], counts: { jobs: 0, users: 0, targets: 0, sources: 1, answered: 0 } });
const heard = (...of: [number, number][]): Past[] => of.map(([number, time]) => pastOf(round({ round: number, time }), 20));

test("the verdict names who moves most", () => {
  assert.equal(verdictOf(round()), "0 B/s read and 3.00 MiB/s written by 2 jobs on 1 target; most by job 7 of alice (75%)");
  assert.match(verdictOf(round({ jobs: [], counts: { ...round().counts, jobs: 0 } })), /written on 1 target; most by target t \(100%\)$/);
  assert.match(verdictOf(round({ jobs: [row("7", { user: "unknown" })] })), /most by job 7 \(100%\)$/);
  assert.match(verdictOf(round({ round: 1 })), /rates follow/);
  assert.match(verdictOf(round({ write: 0 })), /^No bytes move/);
  assert.match(verdictOf(silent), /^No answer from the source/);
});

test("rates hold since the round before, and rounds that were not heard of are a gap", () => {
  assert.deepEqual(spansOf(heard([1, 10], [2, 20], [3, 31])), { edges: [0, 10, 20, 31], rounds: [0, 1, 2] });
  assert.deepEqual(spansOf(heard([2, 20], [3, 30], [6, 60])), { edges: [10, 20, 30, 50, 60], rounds: [0, 1, -1, 2] });
  assert.deepEqual(spansOf(heard([2, 20], [3, 30], [1, 90])), { edges: [10, 20, 30, 80, 90], rounds: [0, 1, -1, 2] });
  assert.deepEqual(spansOf(heard([5, 50])), { edges: [49, 50], rounds: [0] });
});

test("what is kept of a round is bounded, and rates that are not known are not 0", () => {
  const kept = pastOf(round({ jobs: Array.from({ length: 500 }, (_, n) => row(`job ${n}`)) }), 20);
  assert.equal(kept.jobs.size, 20);
  assert.equal(kept.whole?.write, 3 * MIB);
  assert.equal(pastOf(round({ round: 1 }), 20).whole, null);
  assert.equal(pastOf(silent, 20).whole, null);
});
