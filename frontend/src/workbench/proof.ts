// The calls behind a cause: its worst phase, the slow rank and a median peer in it, and the excess time.
import { busyOf, eachStretch, endOf, lengthOf, timeOf } from "./marks.ts";
import type { Job, PhaseOf } from "./model.ts";
import { testOf } from "./highlight.ts";
import type { Cause } from "./types.ts";

export interface Proof {
  low: number; high: number; slow: number; peer: number | null; // ranks
  peerKind: "median" | "fastest"; slowSeconds: number; peerSeconds: number; excess: { from: number; to: number } | null; phase: PhaseOf | null; layer: string; // on which both are summed
}

interface RankTime { busy: number; affected: number; end: number }

export function proofOf(job: Job, cause: Cause): Proof | null {
  const test = cause.show ? testOf(job, cause.show) : () => true;
  if (job.loaded && (job.rankStep > 1 || job.loaded.low > job.data.time[0] || job.loaded.high < job.data.time[1])) return proofFromPhases(job, cause);
  if (!test || !job.marks.count) return null;
  // Peers do the same kind of calls: a rank that only waits for others is no healthy reader.
  const layer = affectedLayer(job, test), kinds = affectedKinds(job, test, layer), phases = phasesOn(job, layer);
  const spans: (PhaseOf | { start: number; end: number })[] = cause.show?.times?.map(([start, end]) => ({ start, end })) ?? (phases.length ? phases : [{ start: job.data.time[0], end: job.data.time[1] }]);
  const worst = spans.map((span) => ({ span, score: score(job, test, layer, kinds, span.start, span.end) })).sort((a, b) => b.score - a.score)[0];
  const { start, end } = worst.span, ranks = timesIn(job, test, layer, kinds, start, end), affected = [...ranks].filter(([, time]) => time.affected > 0);
  if (!affected.length) return null;
  const [slow, most] = affected.sort((a, b) => b[1].busy - a[1].busy)[0];
  const others = [...ranks].filter(([, time]) => time.affected === 0 && time.busy > 0), pool = (others.length ? others : [...ranks]).filter(([rank]) => rank !== slow);
  const middle = pool.sort((a, b) => a[1].busy - b[1].busy)[Math.floor((pool.length - 1) / 2)], median = middle && middle[1].busy <= most.busy ? middle : null, peer = median ? median[0] : null, peerBusy = median ? median[1].busy : 0;
  const over = most.busy - peerBusy, excess = median && over > 0 ? { from: Math.max(start, most.end - over), to: most.end } : null;
  const margin = 0.06 * (end - start) || 1e-6;
  return { low: start - margin, high: end + margin, slow, peer, peerKind: "median", slowSeconds: most.busy, peerSeconds: peerBusy, excess, phase: "layer" in worst.span ? worst.span as PhaseOf : null, layer: job.data.layers[layer] };
}

// Where not all calls are loaded: the phase whose slowest rank loses most, beside its fastest.
function proofFromPhases(job: Job, cause: Cause): Proof | null {
  const named = cause.show?.ranks ? new Set(cause.show.ranks) : null;
  const phases = job.allPhases().filter((phase) => phase.slowest.rank !== null && phase.fastest.rank !== null && (!named || named.has(phase.slowest.rank)));
  const worst = phases.sort((a, b) => (b.slowest.time - (b.typical ?? b.fastest.time)) - (a.slowest.time - (a.typical ?? a.fastest.time)))[0];
  if (!worst) return null;
  const margin = 0.06 * (worst.end - worst.start) || 1e-6;
  return { low: worst.start - margin, high: worst.end + margin, slow: worst.slowest.rank!, peer: worst.fastest.rank, peerKind: "fastest", slowSeconds: worst.slowest.time, peerSeconds: worst.fastest.time, excess: null, phase: worst, layer: worst.layer };
}

// The layer with most time in affected calls.
function affectedLayer(job: Job, test: (i: number) => boolean): number {
  const time = new Map<number, number>(), { marks } = job;
  for (let i = 0; i < marks.count; i += 1) if (!job.isProgram(marks.layer[i]) && test(i)) time.set(marks.layer[i], (time.get(marks.layer[i]) ?? 0) + busyOf(marks, i));
  return [...time].sort((a, b) => b[1] - a[1])[0]?.[0] ?? job.mainLayer();
}

function affectedKinds(job: Job, test: (i: number) => boolean, layer: number): Set<number> {
  const kinds = new Set<number>(), { marks } = job;
  for (let i = 0; i < marks.count; i += 1) if (marks.layer[i] === layer && test(i)) kinds.add(marks.operation[i]);
  return kinds;
}

function phasesOn(job: Job, layer: number): PhaseOf[] {
  const own = job.data.phases[job.data.layers[layer]]?.phases;
  return own?.length ? own.map((phase) => ({ ...phase, layer: job.data.layers[layer] })) : job.phases();
}

// Seconds that the slowest affected rank spends in a phase beyond the mean of all ranks in it.
function score(job: Job, test: (i: number) => boolean, layer: number, kinds: Set<number>, low: number, high: number): number {
  const ranks = timesIn(job, test, layer, kinds, low, high);
  let most = 0, sum = 0;
  for (const time of ranks.values()) { sum += time.busy; if (time.affected > 0) most = Math.max(most, time.busy); }
  const mean = ranks.size ? sum / ranks.size : 0;
  return most > 0 ? Math.max(most - mean, 1e-3 * most) : 0;
}

function timesIn(job: Job, test: (i: number) => boolean, layer: number, kinds: Set<number>, low: number, high: number): Map<number, RankTime> {
  const { marks } = job, ranks = new Map<number, RankTime>();
  eachStretch(marks, low, high, (from, to) => {
    if (marks.layer[from] !== layer || !kinds.has(marks.operation[from])) return;
    let time = ranks.get(marks.rank[from]);
    if (!time) { time = { busy: 0, affected: 0, end: 0 }; ranks.set(marks.rank[from], time); }
    for (let i = from; i < to; i += 1) {
      const a = timeOf(marks, i), b = endOf(marks, i), long = lengthOf(marks, i);
      const part = long > 0 ? Math.max(0, Math.min(high, b) - Math.max(low, a)) / long : 1, busy = busyOf(marks, i) * part;
      time.busy += busy;
      time.end = Math.max(time.end, Math.min(high, b));
      if (test(i)) time.affected += busy || 1e-12;
    }
  });
  return ranks;
}
