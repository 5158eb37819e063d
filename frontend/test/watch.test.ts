import assert from "node:assert/strict";
import { test } from "node:test";
import { pauseAfter, Recent } from "../src/shared/live.ts";
import { byNeed, EMPTY, PeriodLog, whenText, type Job } from "../src/watch/jobs.ts";

const job = (name: string, more: Partial<Job> = {}): Job => ({ job: name, ranks: 4, messages: 1, silent_seconds: 1, clock: 100, period: 10, spread: 0.1, confidence: 0.9, direction: "both", ahead: [{ job: name, start: 5, end: 7, bytes: 1, confidence: 0.9 }], predicted: [], on_time_share: 1, likely: [], ...more });

test("overlaps come first, then wrong predictions, the next phase, unknown periods and silent jobs", () => {
  const fleet = { ...EMPTY, jobs: [job("silent", { silent_seconds: 500 }), job("unknown", { period: null, ahead: [] }), job("soon"), job("wrong", { on_time_share: 0.2 }), job("a"), job("b")], overlaps: [{ start: 5, end: 6, jobs: ["a", "b"], rate: 1 }] };
  assert.deepEqual(byNeed(fleet).map((one) => one.job.job), ["a", "b", "wrong", "soon", "unknown", "silent"]);
  assert.match(byNeed(fleet)[0].need.text, /overlaps with b/);
});

test("memory stays bounded for days", () => {
  const log = new PeriodLog(64, 400), changes = new Recent<number>(200);
  for (let n = 0; n < 200000; n += 1) { log.add(`job ${n % 500}`, n, n); changes.add(n); }
  assert.equal(log.size, 64);
  assert.ok(log.of("job 499").length <= 400);
  assert.equal(changes.all.length, 200);
  assert.equal(changes.all[199], 199999);
  for (let n = 0; n < 1000; n += 1) log.add("one", n, 10);
  assert.equal(log.of("one").length, 400);
});

test("a slow or absent server is asked less often, and never less than every ten seconds", () => {
  assert.equal(pauseAfter(5, 0), 1000);
  assert.equal(pauseAfter(400, 0), 4000);
  assert.ok(pauseAfter(5, 3) > pauseAfter(5, 1));
  assert.equal(pauseAfter(60000, 30), 10000);
});

test("a countdown says when, now, or how late", () => {
  const write = (value: number): string => `${value} s`;
  assert.equal(whenText(11.2, 13, write), "in 12 s");
  assert.equal(whenText(-0.5, 1, write), "now");
  assert.equal(whenText(-3, -1, write), "3 s late");
});
