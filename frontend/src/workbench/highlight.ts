// Which marks something is about: a cause, a finding, a file, a function, a rank, a target.
import type { Job } from "./model.ts";
import { callsOf, endOf, hasPlace, movesBytes, timeOf } from "./marks.ts";
import type { Show } from "./types.ts";

export type Test = (i: number) => boolean;

export function testOf(job: Job, show: Show): Test | null {
  const tests: Test[] = [], { data } = job;
  const numbers = (names: string[], all: string[]): Set<number> => new Set(names.map((name) => all.indexOf(name)));
  if (show.layers) { const wanted = numbers(show.layers, data.layers); tests.push((i) => wanted.has(job.marks.layer[i])); }
  if (show.operations) { const wanted = numbers(show.operations, data.operations); tests.push((i) => wanted.has(job.marks.operation[i])); }
  if (show.ranks) { const wanted = new Set(show.ranks); tests.push((i) => wanted.has(job.marks.rank[i])); }
  if (show.files) { const wanted = new Set(show.files); tests.push((i) => wanted.has(job.marks.file[i])); }
  if (show.targets) { const wanted = new Set(show.targets); tests.push((i) => job.targetsOf(i).some((target) => wanted.has(target))); }
  if (show.below) { const limit = show.below; tests.push((i) => movesBytes(job.marks, i) && job.marks.bytes[i] / Math.max(1, callsOf(job.marks, i)) < limit); }
  if (show.misaligned) { const unit = show.misaligned; tests.push((i) => hasPlace(job.marks, i) && job.marks.offset[i] % unit !== 0); }
  if (show.times) { const spans = show.times; tests.push((i) => { const a = timeOf(job.marks, i), b = endOf(job.marks, i); return spans.some(([from, to]) => b >= from && a <= to); }); }
  if (show.slowest) { const spans = show.slowest; tests.push((i) => spans.some(([from, to, rank]) => job.marks.rank[i] === rank && timeOf(job.marks, i) >= from - 1e-9 && timeOf(job.marks, i) <= to)); }
  return tests.length ? (i) => tests.every((test) => test(i)) : null;
}

export interface Subject { title: string; test: Test; show: Show | null }

// What `show` in a link names: "file:3", "fn:12", "rank:7", "target:2", or the id of a cause or finding.
export function subjectOf(job: Job, name: string): Subject | null {
  const { data } = job, [kind, value] = name.split(":"), number = Number(value);
  if (kind === "file" && Object.hasOwn(data.files, value ?? "")) return { title: `calls on ${job.fileName(number)}`, test: (i) => job.marks.file[i] === number, show: { files: [number] } };
  if (kind === "fn" && value !== undefined) return functionSubject(job, name.slice(3));
  if (kind === "rank" && Number.isInteger(number)) return { title: `calls of rank ${number}`, test: (i) => job.marks.rank[i] === number, show: { ranks: [number] } };
  if (kind === "target" && Number.isInteger(number)) return { title: `calls on target ${number}`, test: (i) => job.targetsOf(i).includes(number), show: { targets: [number] } };
  const about = [...(data.diagnosis?.causes ?? []), ...data.findings].find((one) => one.id === name);
  const test = about?.show ? testOf(job, about.show) : null;
  return about && test ? { title: about.title, test, show: about.show } : null;
}

function functionSubject(job: Job, name: string): Subject | null {
  const code = job.marks.functions.indexOf(name) + 1, operation = job.data.operations.indexOf(name);
  if (code) return { title: `calls of ${name}`, test: (i) => job.marks.fn !== null && job.marks.fn[i] === code, show: null };
  return operation < 0 ? null : { title: `${name} calls`, test: (i) => job.marks.operation[i] === operation, show: { operations: [name] } };
}

// Whether each mark is lit (1) or faded (0); null: nothing is highlighted.
export function litMarks(job: Job, subject: Subject | null): Uint8Array | null {
  if (!subject) return null;
  const lit = new Uint8Array(job.marks.count);
  for (let i = 0; i < lit.length; i += 1) if (subject.test(i)) lit[i] = 1;
  return lit;
}
