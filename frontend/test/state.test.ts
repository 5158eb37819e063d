import assert from "node:assert/strict";
import { test } from "node:test";
import { inRanks, rankSpans, writeRanks } from "../src/shared/state.ts";
import { LINK, STANDARD, type View } from "../src/workbench/state.ts";

test("a link brings back the view exactly, at a microsecond in ten hours", () => {
  const view: View = { ...STANDARD, low: 35999.123456, high: 35999.123457, select: { low: 35999.1234561, high: 35999.1234569, ranks: "0-3,8" }, show: "file:3", call: "3~posix~35999.1234562~1e-7", tab: "files", colour: "size", layer: "mpiio", log: true, theme: "dark", sort: "late", group: "none", rows: "thin", filter: "node0001", pins: ["rank:3", "chart:bandwidth"], open: ["rank:3"], proof: "cause-1-x" };
  assert.deepEqual(LINK.read(`#${LINK.write(view)}`), view);
});

test("the standard view has an empty link", () => {
  assert.equal(LINK.write(STANDARD), "");
  assert.deepEqual(LINK.read(""), STANDARD);
});

test("a made-up link changes nothing that it should not", () => {
  const view = LINK.read("#t=x~y&colour=__proto__&theme=<b>&pins=<img>,rank:1&select=5~1~a&sort=drop");
  assert.deepEqual([view.low, view.colour, view.theme, view.pins, view.select, view.sort], [null, "operation", "", ["rank:1"], null, "rank"]);
});

test("ranks are written as ranges and read back", () => {
  assert.equal(writeRanks([8, 0, 1, 2, 3, 1]), "0-3,8");
  assert.equal(rankSpans("node1"), null);
  assert.deepEqual([2, 7, 8].map(inRanks("0-3,8")), [true, false, true]);
});
