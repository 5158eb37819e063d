import assert from "node:assert/strict";
import { test } from "node:test";
import { clearNames, type NamedPlace } from "../src/shared/curves.ts";
import { hostsFit } from "../src/workbench/rows.ts";

const rows: NamedPlace[] = [{ top: 0, bottom: 60, until: 140, below: 15 }, { top: 60, bottom: 120, until: 60, below: 75 }];
const placeOf = (y: number): NamedPlace => rows[y < 60 ? 0 : 1], wide = (text: string): number => 6 * text.length;
const kept = (...names: [string, number][]): [string, number][] => clearNames(names.map(([text, y]) => ({ text, y })), placeOf, wide, 176).map(({ text, y }) => [text, y]);

test("a tick's name gives way to the name of its row, where they would touch", () => {
  assert.deepEqual(kept(["100 MiB/s", 12], ["50 MiB/s", 34]), [["50 MiB/s", 34]]);
  assert.deepEqual(kept(["10", 72], ["5", 95]), [["10", 72], ["5", 95]]);
});

test("the only tick of a row is named below its name", () => {
  assert.deepEqual(kept(["100 MiB/s", 12]), [["100 MiB/s", 21]]);
});

test("names of ticks stay within their row and apart", () => {
  assert.deepEqual(kept(["rank 15", 59], ["rank 0", 61]), [["rank 15", 54], ["rank 0", 66]]);
  assert.deepEqual(kept(["0", 118], ["−200 MiB/s", 112]), [["0", 114]]);
});

test("hosts have names where these leave room for their ranks", () => {
  assert.equal(hostsFit(32, 192, 200), false); // 32 names would take more than 192 thin rows
  assert.equal(hostsFit(4, 16, 200), true);
  assert.equal(hostsFit(16, 1024, 200), true);
});
