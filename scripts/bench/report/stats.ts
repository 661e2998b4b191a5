/** The middle value; of an even number the mean of the middle two. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}

/** A ratio of two things measured in turn: the median of the rounds, and their spread. */
export interface Ratio {
  median: number;
  min: number;
  max: number;
  /** Whether the rounds agree well enough for the median to mean something. */
  meaningful: boolean;
}

/** Rounds with a larger spread were disturbed by something else on the machine. */
const widest = 1.6;

/**
 * The ratio of `ours` to `theirs`, round by round. With seven rounds or more, the lowest and the highest are ignored:
 * one disturbance does not move a median.
 */
export function ratio(ours: readonly number[], theirs: readonly number[]): Ratio {
  const rounds = ours.map((value, round) => value / (theirs[round] ?? Number.NaN)).toSorted((a, b) => a - b);
  const agreeing = rounds.length >= 7 ? rounds.slice(1, -1) : rounds;
  const apart = (agreeing.at(-1) ?? Number.NaN) / (agreeing[0] ?? Number.NaN);
  return {
    median: median(rounds),
    min: rounds[0] ?? Number.NaN,
    max: rounds.at(-1) ?? Number.NaN,
    meaningful: apart <= widest,
  };
}
