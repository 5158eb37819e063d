import assert from "node:assert/strict";
import { test } from "node:test";
import { endOfAll, placeSegments, secondAt, segmentAt, slicesOf, stepsOnAxis, type Segment } from "../src/compare/aligned.ts";
import { calendarTicks, scaleTicks } from "../src/shared/ticks.ts";
import { squarify } from "../src/shared/treemap.ts";
import { duration } from "../src/shared/units.ts";

const SEGMENTS: Segment[] = [{ kind: "", before: [0, 2], after: [0, 2] }, { kind: "write", before: [2, 8], after: [2, 4] }, { kind: "", before: [8, 9], after: [4, 6] }];

test("stretches of the same work begin together, and gaps are the seconds saved", () => {
  const placed = placeSegments(SEGMENTS, true);
  assert.deepEqual(placed.map(({ at, long, saved }) => [at, long, saved]), [[0, 2, 0], [2, 6, 4], [8, 2, -1]]);
  assert.equal(endOfAll(placed), 10);
  assert.deepEqual([secondAt(placed, "before", 7), secondAt(placed, "after", 7), secondAt(placed, "after", 8.5)], [7, 4, 4.5]);
  assert.equal(segmentAt(placed, 2)?.name, "write phase 1");
  assert.deepEqual(slicesOf(placed, "after", 1, 9), [{ from: 1, to: 2, at: 1 }, { from: 2, to: 4, at: 2 }, { from: 4, to: 5, at: 8 }]);
});

test("by clock both runs are one stretch", () => {
  assert.deepEqual(placeSegments(SEGMENTS, false).map(({ long, saved, name }) => [long, saved, name]), [[9, 3, "whole run"]]);
});

test("steps have nothing where a run waits for the other", () => {
  const { edges, numbers } = stepsOnAxis([{ from: 2, to: 4, at: 2 }, { from: 4, to: 5, at: 8 }], 2, 1, [1, 2, 3]);
  assert.deepEqual([edges, numbers], [[2, 3, 4, 8, 9], [0, 1, -1, 2]]);
});

test("dates have ticks at midnight, at the hour or at the month", () => {
  const day = Date.UTC(2024, 2, 1) / 1000;
  assert.deepEqual(calendarTicks(day - 40000, day + 50000, 3).ticks.map(({ text }) => text), ["2024-03-01", "12:00"]);
  assert.deepEqual(calendarTicks(day, day + 300 * 86400, 4).ticks.map(({ text }) => text), ["2024-04", "2024-07", "2024-10"]);
  assert.deepEqual(scaleTicks({ low: 0, high: 2, kind: "names", names: ["a", "b"] }, 5).map(({ value }) => value), [0.5, 1.5]);
});

test("areas of a treemap fill it in proportion", () => {
  const boxes = squarify([6, 3, 1], 100, 50);
  assert.deepEqual(boxes.map(({ width, height }) => Math.round(width * height)), [3000, 1500, 500]);
});

test("negative lengths of time have a minus sign", () => assert.equal(duration(-0.5), "−500 ms"));
