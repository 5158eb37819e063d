import assert from "node:assert/strict";
import { test } from "node:test";
import { reachOf, sampledColumns, signedTicks, sumOfWaves, waveColumns } from "../src/shared/columns.ts";

test("no peak is lost where many samples share a column", () => {
  const values = Array.from({ length: 1000 }, (_, n) => n === 537 ? 9 : n === 538 ? -4 : 1);
  const { low, high } = sampledColumns({ start: 0, step: 0.1, values }, 0, 100, 20);
  assert.equal(high[10], 9);
  assert.equal(low[10], -4);
  assert.equal(high[11], 1);
});

test("a column between two samples has the value that holds there, and none beyond the signal", () => {
  const { high } = sampledColumns({ start: 10, step: 5, values: [1, null, 3] }, 8, 28, 20);
  assert.ok(Number.isNaN(high[0]));
  assert.equal(high[2], 1);
  assert.ok(Number.isNaN(high[8]));
  assert.equal(high[13], 3);
  assert.ok(Number.isNaN(high[19]));
});

test("waves are drawn only where they hold", () => {
  const wave = { frequency: 0.1, amplitude: 2, phase: 0 }, { low, high } = waveColumns([wave], [[20, 40]], 0, 60, 60);
  assert.ok(Number.isNaN(low[10]));
  assert.ok(Math.abs(high[30] - sumOfWaves([wave], 30.5)) < 1e-9);
  assert.ok(Number.isNaN(low[45]));
});

test("a wave too fast for its columns is shown by its reach, not by an alias", () => {
  const { low, high } = waveColumns([{ frequency: 0, amplitude: 5, phase: 0 }, { frequency: 100, amplitude: 2, phase: 0 }], [[0, 100]], 0, 100, 50);
  assert.deepEqual(reachOf([{ low, high }]), [0, 7]);
  assert.equal(low[25], 3);
});

test("ticks of signed rates have 0 between them", () => {
  const ticks = signedTicks(-3 * 2 ** 30, 3 * 2 ** 30, "rate", 6);
  assert.ok(ticks.some(({ text }) => text === "−2 GiB/s"));
  assert.ok(ticks.some(({ value, text }) => value === 0 && text === "0"));
});
