import assert from "node:assert/strict";
import { test } from "node:test";
import { countAt } from "../src/schedule/turns.ts";
import { distributionOf, markRows, shareUpTo } from "../src/shared/plot_parts.ts";
import { scaleTicks } from "../src/shared/ticks.ts";
import { wholeSeconds, withSpread } from "../src/shared/units.ts";
import { logReach, ratios, sizesOf, SMALLEST_ERROR } from "../src/write-time/scores.ts";

test("a distribution says which share of the values is up to one", () => {
  const curve = distributionOf([3, 1, 2, Infinity, 4]);
  assert.equal(shareUpTo(curve, 2.5), 0.5);
  assert.equal(shareUpTo(curve, 0), 0);
  assert.equal(shareUpTo(curve, 4), 1);
  const thinned = distributionOf(Array.from({ length: 100000 }, (_, n) => n), 500);
  assert.ok(thinned.x.length <= 501 && Math.abs(shareUpTo(thinned, 50000) - 0.5) < 0.01);
});

test("names of marks that would cover each other stand in different rows; the rest have none", () => {
  const rows = markRows([{ from: 0, to: 100 }, { from: 10, to: 90 }, { from: 104.5, to: 140 }, { from: 20, to: 80 }, { from: 21, to: 80 }, { from: 22, to: 80 }]);
  assert.deepEqual(rows, [0, 1, 0, 2, 3, null]);
});

test("logarithmic ticks of times are what people call round", () => {
  const names = scaleTicks({ low: 4, high: 7200, kind: "seconds", log: true }, 20).map(({ text }) => text);
  assert.deepEqual(names.filter((name) => /min|h$/.test(name)), ["1 min", "2 min", "5 min", "10 min", "30 min", "1 h", "2 h"]);
  assert.ok(names.includes("10 s") && !names.some((name) => name.includes(".")));
  assert.ok(scaleTicks({ low: 0.3, high: 3, kind: "number", log: true }, 6).length >= 3);
});

test("digits follow the deviation", () => {
  assert.equal(withSpread(10.1755, 0.787), "10.18 s, standard deviation 0.79 s");
  assert.equal(withSpread(10.00001, 0.0009), "10.00 s, standard deviation 900 µs");
  assert.equal(withSpread(9.99999, 0.0009), "10.00 s, standard deviation 900 µs");
  assert.equal(wholeSeconds(4.2), "4 s");
  assert.equal(wholeSeconds(125), "2 min 05 s");
});

test("errors are relative to what was measured, and have a place on a logarithmic axis", () => {
  const set = { name: "small", samples: 3, measured: [10, 20, 40], predicted: [[11, 20, 20]], within: [], too_low: "", stages: [] as [string, number][] };
  assert.deepEqual(ratios(set, 0), [1.1, 1, 0.5]);
  assert.equal(sizesOf(set, 0)[1], SMALLEST_ERROR);
  assert.ok(Math.abs(sizesOf(set, 0)[2] - 0.5) < 1e-12);
  const [low, high] = logReach([0, 5, 500]);
  assert.ok(low > 4 && low < 5 && high > 500 && high < 600);
});

test("jobs are served or wait", () => {
  assert.deepEqual(countAt([[0, 5, 10], [4, 10, 12]], 7), [1, 1]);
  assert.deepEqual(countAt([[0, 5, 10], [4, 10, 12]], 13), [0, 0]);
});
