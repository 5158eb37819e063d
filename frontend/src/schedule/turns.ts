// Turns of jobs at the file system: when each asked, was served, and was done (seconds).
export type Turn = [number, number, number];

// How many are served and how many wait at a time.
export function countAt(turns: readonly Turn[], time: number): [number, number] {
  let served = 0, waiting = 0;
  for (const [asked, begun, end] of turns) {
    if (time >= begun && time < end) served += 1;
    else if (time >= asked && time < begun) waiting += 1;
  }
  return [served, waiting];
}
