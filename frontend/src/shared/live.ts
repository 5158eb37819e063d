// What pages of a running service share: asking it, how often, and memory that stays bounded.
export async function json<T>(path: string): Promise<T> {
  const answer = await fetch(path, { cache: "no-store", signal: AbortSignal.timeout(20000) });
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  return await answer.json() as T;
}

// How long to wait before asking again: not more than a tenth of the time is spent on answers.
export const pauseAfter = (tookMs: number, failures: number): number => Math.max(1000, Math.min(10 * tookMs, 10000), failures ? Math.min(500 * 2 ** failures, 10000) : 0);

// A list that forgets its oldest entries.
export class Recent<T> {
  private readonly kept: T[] = [];
  constructor(readonly most: number) {}
  add(entry: T): void { this.kept.push(entry); if (this.kept.length > this.most) this.kept.splice(0, this.kept.length - this.most); }
  get all(): readonly T[] { return this.kept; }
}
