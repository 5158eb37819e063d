import assert from "node:assert/strict";
import { test } from "node:test";
import { bytes, cellText, clock, count, duration, plain, rate, share, span, withSpread } from "../src/shared/units.ts";

test("what rounding leaves is nothing", () => {
  assert.deepEqual([bytes(1.9e-9), bytes(-1e-9), withSpread(10, 1e-12), withSpread(10, 0)], ["0 B", "0 B", "10.0 s", "10.0 s"]);
});

test("bytes keep three digits and a binary unit", () => {
  assert.deepEqual([0, 512, 1024, 47008, 3 * 2 ** 20, 2 ** 40].map(bytes), ["0 B", "512 B", "1.00 KiB", "45.9 KiB", "3.00 MiB", "1.00 TiB"]);
  assert.equal(rate(null), "–");
});

test("durations use the unit that a reader expects", () => {
  assert.deepEqual([2e-9, 4.68e-2, 0.9999, 43.217, 140.2, 3900, 37517].map(duration), ["2.00 ns", "46.8 ms", "1.00 s", "43.2 s", "2 min 20 s", "1 h 05 min", "10 h 25 min"]);
});

test("a length just below a minute or an hour does not read 60", () => {
  assert.equal(duration(3599.7), "1 h 00 min");
  assert.equal(duration(119.6), "2 min 00 s");
});

test("a point in time has as many digits as the view needs", () => {
  assert.equal(clock(90.123456789, 1e-6), "90.123457 s");
  assert.equal(clock(90.123456789, 1), "90 s");
});

test("counts are grouped, shares are percent, unknown kinds are text", () => {
  assert.equal(count(1234567), "1,234,567");
  assert.equal(share(0.052), "5.2%");
  assert.deepEqual([share(-0.9961), share(0.99999), share(1), share(0.985), share(0)], ["−99.6%", "99.9%", "100%", "99%", "0%"]);
  assert.equal(cellText("__proto__", 3), "3");
});

test("two points in time have the digits that tell them apart", () => {
  assert.equal(span(0, 0.0395), "0 to 39.5 ms");
  assert.equal(span(4.644, 6.966), "4.64 s to 6.97 s");
  assert.equal(span(0, 37517), "0 to 10 h 25 min");
  assert.equal(span(9700, 9850), "2 h 41 min 40 s to 2 h 44 min 10 s");
});

test("negative numbers have a minus sign", () => {
  assert.deepEqual([rate(-5.83e6), plain(-0.5), duration(-2), share(-0.5)], ["−5.56 MiB/s", "−0.5", "−2.00 s", "−50%"]);
});
