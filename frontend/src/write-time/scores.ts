// Errors of predictions: relative, as ratios, and their distributions.
export interface SampleSet { name: string; samples: number; measured: number[]; predicted: number[][]; within: (number | null)[]; too_low: string; stages: [string, number][] }

export const SMALLEST_ERROR = 0.001; // smaller ones are drawn there: a logarithmic axis has no 0

export function ratios(set: SampleSet, model: number): number[] {
  const predicted = set.predicted[model] ?? [];
  return predicted.map((value, n) => value / set.measured[n]);
}

export const errorsOf = (set: SampleSet, model: number): number[] => ratios(set, model).map((ratio) => ratio - 1);
export const sizesOf = (set: SampleSet, model: number): number[] => errorsOf(set, model).map((error) => Math.max(SMALLEST_ERROR, Math.abs(error)));

// The ends of a logarithmic axis that holds all values, at powers or halves of ten.
export function logReach(values: Iterable<number>, least = 1e-12): [number, number] {
  let low = Infinity, high = -Infinity;
  for (const value of values) { if (!(value > least)) continue; if (value < low) low = value; if (value > high) high = value; }
  if (!(low <= high)) return [0.1, 10];
  return low === high ? [low / 2, high * 2] : [low / 1.1, high * 1.1];
}
