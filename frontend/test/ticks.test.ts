import assert from "node:assert/strict";
import { test } from "node:test";
import { amountTicks, scaleTicks, timeTicks } from "../src/shared/ticks.ts";

const texts = (low: number, high: number): string[] => timeTicks(low, high, 8).ticks.map((tick) => tick.text);

test("a long run has ticks at whole minutes and hours", () => {
  assert.deepEqual(texts(0, 600), ["0", "2 min", "4 min", "6 min", "8 min", "10 min"]);
  assert.equal(texts(0, 36000)[1], "2 h");
});

test("no two ticks of a view read the same, at any zoom", () => {
  for (const middle of [0.5, 90.123456, 36000.5]) {
    for (let span = 100; span > 1e-9; span /= 3.7) {
      const { ticks } = timeTicks(middle - span / 2, middle + span / 2, 8), names = ticks.map((tick) => tick.text);
      assert.equal(new Set(names).size, names.length, `${middle} ± ${span}: ${names.join(" ")}`);
      assert.ok(names.length >= 1, `${middle} ± ${span}`);
    }
  }
});

test("close to a moment far from the start, ticks count from a base", () => {
  const { ticks, base } = timeTicks(90.123456, 90.123466, 8);
  assert.equal(ticks[1].text, "+2 µs");
  assert.match(base ?? "", /^90\.12345\d s$/);
});

test("ticks of bandwidth are round binary amounts", () => {
  assert.deepEqual(amountTicks(57.2 * 2 ** 20, "rate", 3).map((tick) => tick.text), ["20 MiB/s", "40 MiB/s"]);
  assert.deepEqual(amountTicks(1.2 * 2 ** 30, "rate", 3).map((tick) => tick.text), ["512 MiB/s", "1 GiB/s"]);
});

test("every series that is not empty has a tick", () => {
  for (let high = 3; high < 2 ** 50; high *= 1.37) for (const most of [1, 2, 3]) assert.ok(amountTicks(high, "rate", most).length >= 1, String(high));
});

test("an empty series has no ticks", () => {
  assert.deepEqual(amountTicks(0, "rate", 3), []);
});

test("ticks of shares that lie close together differ", () => {
  const names = scaleTicks({ low: 0.92, high: 0.95, kind: "share" }, 12).map(({ text }) => text);
  assert.ok(names.length > 4);
  assert.equal(new Set(names).size, names.length);
});

test("counts have whole ticks", () => {
  assert.deepEqual(amountTicks(1.4, "count", 3).map((tick) => tick.text), ["1"]);
});

test("one axis has one unit of time", () => {
  assert.deepEqual(texts(0, 1.64), ["0.0 s", "0.5 s", "1.0 s", "1.5 s"]);
  assert.deepEqual(texts(0, 0.0395).slice(0, 2), ["0 ms", "5 ms"]);
});

test("a track with room for one tick has one", () => {
  for (const [high, text] of [[16, "10"], [5.9, "5"], [1, "1"], [1360, "1,000"]] as const) assert.deepEqual(amountTicks(high, "count", 1).map((tick) => tick.text), [text]);
  assert.deepEqual(amountTicks(0.4, "count", 1), []);
});
