import assert from "node:assert/strict";
import { test } from "node:test";
import { decodeMarks, eachStretch, type Marks } from "../src/workbench/marks.ts";
import { Job } from "../src/workbench/model.ts";
import { lanesOf } from "../src/workbench/lanes.ts";
import { summarise, union, without } from "../src/workbench/summary.ts";
import { around, callKey, findCall } from "../src/workbench/calls.ts";
import { proofOf } from "../src/workbench/proof.ts";
import { RowLayout } from "../src/shared/tracks.ts";
import { buildRows } from "../src/workbench/rows.ts";
import { STANDARD } from "../src/workbench/state.ts";
import type { Cause, PageData } from "../src/workbench/types.ts";

// [rank, layer, operation, start, end, bytes], sorted as views/picture/packed.py sorts; ticks of 1 ms.
type Call = [number, number, number, number, number, number];
const COLUMNS: [string, number][] = [["start", 8], ["duration", 8], ["rank", 4], ["file", 4], ["bytes", 8], ["offset", 8], ["kind", 1], ["flags", 1]];

function planes(values: number[], width: number): number[] {
  const out: number[] = [];
  for (let plane = 0; plane < width; plane += 1) for (const value of values) out.push(Number(BigInt.asUintN(64, BigInt(value)) >> BigInt(8 * plane) & 255n));
  return out;
}

function marksOf(calls: Call[]): Marks {
  const sorted = [...calls].sort((a, b) => a[1] - b[1] || a[0] - b[0] || a[2] - b[2] || a[3] - b[3]), n = sorted.length;
  const diff = (values: number[]): number[] => values.map((value, i) => value - (i ? values[i - 1] : 0));
  const columns: Record<string, number[]> = {
    start: diff(sorted.map((call) => call[3])), duration: sorted.map((call) => call[4] - call[3]), rank: diff(sorted.map((call) => call[0])), file: diff(sorted.map(() => 1)),
    bytes: sorted.map((call) => call[5]), offset: sorted.map(() => 0), kind: sorted.map((call) => call[1] * 16 + call[2]), flags: sorted.map((call) => call[2] === 3 ? 0 : 1),
  };
  return decodeMarks({ count: n, origin: 0, tick: 0.001, functions: [], columns: COLUMNS }, Uint8Array.from(COLUMNS.flatMap(([name, width]) => planes(columns[name], width))));
}

function jobOf(calls: Call[], ranks = 4): Job {
  const data = {
    ranks, layers: ["posix", "mpiio", "application"], titles: {}, heights: { posix: 0, mpiio: 2, application: 5 }, operations: ["read", "write", "open", "other"], hosts: { names: [], of: [] }, threads: {},
    files: { 0: "/f" }, stripes: {}, phases: { posix: { phases: [{ start: 0, end: 2, kind: "write" }, { start: 5, end: 9, kind: "write" }] } }, time: [0, 10], timeline: { source: "calls" }, explore: false, findings: [], diagnosis: null,
  } as unknown as PageData, job = new Job(data);
  job.adopt(marksOf(calls));
  return job;
}

test("packed marks are read back, starts ascend within a stream", () => {
  const marks = marksOf([[0, 0, 1, 100, 300, 10], [0, 0, 1, 2000, 2500, 20], [1, 0, 1, 50, 90, 30]]);
  assert.deepEqual([...marks.start], [100, 2000, 50]);
  assert.deepEqual([...marks.rank], [0, 0, 1]);
  assert.deepEqual([...marks.streams], [0, 2, 3]);
});

test("a window finds a long call that began before it", () => {
  const marks = marksOf([[0, 0, 1, 0, 9000, 1], [0, 0, 1, 10, 20, 1], [0, 0, 1, 8000, 8100, 1]]), seen: number[] = [];
  eachStretch(marks, 5, 6, (from, to) => { for (let i = from; i < to; i += 1) seen.push(marks.duration[i]); });
  assert.ok(seen.includes(9000));
});

test("totals count only what is inside of the window, on one layer", () => {
  const job = jobOf([[0, 0, 1, 0, 2000, 100], [1, 0, 1, 500, 1500, 100], [0, 1, 1, 0, 2000, 100]]);
  const half = summarise(job, 0, 0, 1, () => true);
  assert.equal(half.busy, 1.5);
  assert.equal(half.written, 100);
  assert.equal(half.wall, 1);
  const rest = without(summarise(job, 0, 0, 10, () => true), half);
  assert.equal(rest.busy, 1.5);
});

test("waiting for another process is no I/O time", () => {
  const job = jobOf([[0, 0, 3, 0, 9000, 0], [1, 0, 1, 500, 1500, 100]]), all = summarise(job, 0, 0, 10, () => true);
  assert.deepEqual([all.busy, all.wall, [...all.byRank.keys()]], [1, 1, [1]]);
  assert.deepEqual([...job.rankStats().time], [0, 1, 0, 0]);
});

test("the union of intervals counts overlaps once", () => assert.equal(union([0, 1, 5], [2, 3, 6]), 4));

test("nested calls get lanes below each other, neighbours share one", () => {
  const job = jobOf([[0, 2, 2, 0, 1000, 0], [0, 2, 2, 100, 400, 0], [0, 2, 2, 150, 200, 0], [0, 2, 2, 500, 900, 0]]), lanes = lanesOf(job, 0, -1, 2, "");
  assert.deepEqual([...lanes.lane], [0, 1, 2, 1]);
  assert.equal(lanes.count, 3);
});

test("a link finds its call again; the layer above and its neighbours are known", () => {
  const job = jobOf([[0, 1, 1, 0, 1000, 8], [0, 0, 1, 100, 400, 8], [0, 0, 1, 500, 900, 8]]), second = [...job.marks.start].indexOf(500);
  assert.equal(findCall(job, callKey(job, second)), second);
  const { before, above, after } = around(job, second);
  assert.equal(job.marks.start[before], 100);
  assert.equal(after, -1);
  assert.deepEqual(above.map((i) => job.marks.layer[i]), [1]);
  assert.equal(findCall(job, "0~posix~x~y"), -1);
});

test("the proof shows the worst phase, the slow rank and a median peer", () => {
  const calls: Call[] = [];
  for (const rank of [0, 1, 2, 3]) { calls.push([rank, 0, 1, 0, 1000, 8]); calls.push([rank, 0, 1, 5000, rank === 2 ? 9000 : 6000, 8]); }
  const proof = proofOf(jobOf(calls), { id: "c", show: { ranks: [2] } } as unknown as Cause);
  assert.ok(proof);
  assert.equal(proof.slow, 2);
  assert.notEqual(proof.peer, 2);
  assert.deepEqual([proof.phase?.start, proof.slowSeconds, proof.peerSeconds], [5, 4, 1]);
  assert.deepEqual(proof.excess, { from: 6, to: 9 });
});

test("a hundred thousand ranks are grouped and found by height at once", () => {
  const job = jobOf([[0, 0, 1, 0, 10, 1], [99999, 0, 1, 0, 10, 1]], 100000), rows = buildRows(job, STANDARD, [], 400), layout = new RowLayout(rows);
  assert.ok(rows.length <= 300);
  const all = buildRows(job, { ...STANDARD, open: [rows[0].key] }, [], 400);
  assert.equal(all.length, rows.length + rows[0].ranks.length);
  assert.equal(layout.indexAt(layout.tops[7] + 1), 7);
});

test("a window that misses the end of a call by a rounding error does not count the call", () => {
  const job = jobOf([[0, 0, 1, 0, 1000, 4096]]), after = summarise(job, 0, 1 - 4e-13, 2, () => true);
  assert.deepEqual([after.calls, after.busy, after.written], [0, 0, 0]);
});

test("functions of a program are ranked by their own time, without what they call", () => {
  const job = jobOf([[0, 2, 2, 0, 1000, 0], [0, 2, 2, 0, 900, 0], [0, 2, 2, 950, 960, 0]]);
  Object.assign(job.marks, { functions: ["main", "compute", "log"], fn: Int32Array.from([1, 2, 3]) });
  assert.deepEqual(job.programFunctions(3), ["compute", "main"]);
});
