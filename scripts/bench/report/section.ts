import type { Ratio } from './stats.ts';
import type { Resources } from '../resources.ts';

/** One group of rows; `npm run bench -- NAME` runs it alone. */
export interface Section {
  name: string;
  about: string;
  /** Skipped unless it is named. */
  onlyWhenNamed?: true;
  run: (resources: Resources) => Promise<Row[]>;
}

/** One line of the table, and of bench.json. */
export interface Row {
  what: string;
  result: string;
  /** Of a ratio: the lowest and the highest of the rounds. */
  spread?: string;
  aim?: string;
  /** Whether the aim is met; absent if there is none, or if the measurement is inconclusive. */
  met?: boolean;
  /** Absolute figures, which are only valid for this machine at this time. */
  noise?: string;
  figures: Record<string, unknown>;
}

export type Aim = { atLeast: number } | { atMost: number };

/** A row with a ratio, unless its rounds disagree too much. */
export function ratioRow(what: string, ratio: Ratio, noise: string, aim?: Aim): Row {
  const row: Row = {
    what,
    result: ratio.meaningful ? ratio.median.toFixed(2) : 'too noisy, run again',
    spread: `${ratio.min.toFixed(2)}..${ratio.max.toFixed(2)}`,
    noise,
    figures: { ...ratio },
  };
  return ratio.meaningful ? judged(row, ratio.median, aim) : judged(row, undefined, aim);
}

/** Adds the aim to a row, and whether `value` meets it. */
export function judged(row: Row, value: number | undefined, aim: Aim | undefined): Row {
  if (aim === undefined) return row;
  const [text, reached] =
    'atLeast' in aim
      ? [`>= ${aim.atLeast}`, (v: number) => v >= aim.atLeast]
      : [`<= ${aim.atMost}`, (v: number) => v <= aim.atMost];
  return { ...row, aim: text, ...(value !== undefined && { met: reached(value) }) };
}
