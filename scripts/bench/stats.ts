/** The middle value; of an even number the mean of the middle two. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}

/** A ratio of two things measured in turn: the median of the rounds, and how far the rounds lie apart. */
export interface Ratio {
  median: number;
  min: number;
  max: number;
  /** Whether the rounds agree well enough for the median to mean something. */
  meaningful: boolean;
}

/** Rounds further apart than this were disturbed by something else on the machine. */
const widest = 1.6;

/** What `ours` is to `theirs`, round by round. */
export function ratio(ours: readonly number[], theirs: readonly number[]): Ratio {
  const rounds = ours.map((value, round) => value / (theirs[round] ?? Number.NaN));
  const min = Math.min(...rounds);
  const max = Math.max(...rounds);
  return { median: median(rounds), min, max, meaningful: max / min <= widest };
}
