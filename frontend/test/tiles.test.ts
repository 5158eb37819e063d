import assert from "node:assert/strict";
import { test } from "node:test";
import { suffices, type Tile } from "../src/workbench/tiles.ts";

const tile = (width: number | null, ranks: [number, number] | null = null): Tile => ({ low: 0, high: 100, ranks, width, rankStep: 1, marks: {} as Tile["marks"] });

test("a tile with every call suffices for any window inside it", () => {
  assert.ok(suffices(tile(null), { low: 10, high: 10.001, ranks: null }));
  assert.ok(suffices(tile(null), { low: 0, high: 100, ranks: [3, 4] }));
  assert.ok(!suffices(tile(null), { low: 90, high: 100.1, ranks: null }));
});

test("runs of calls suffice while the window has enough of them", () => {
  assert.ok(suffices(tile(0.1), { low: 40, high: 90, ranks: null }));
  assert.ok(!suffices(tile(0.1), { low: 40, high: 89.9, ranks: null }));
  assert.ok(!suffices(tile(0.1), { low: 0, high: 100, ranks: [0, 9] })); // fewer ranks may be shown call by call
});

test("a tile of some ranks suffices for these only", () => {
  assert.ok(suffices(tile(null, [10, 20]), { low: 0, high: 1, ranks: [10, 12] }));
  assert.ok(!suffices(tile(null, [10, 20]), { low: 0, high: 1, ranks: [9, 12] }));
  assert.ok(!suffices(tile(null, [10, 20]), { low: 0, high: 1, ranks: null }));
});
