import type { Mode } from '../../../src/cutover/modes.ts';

/** A switch that is interrupted. */
export interface Switch {
  from: Mode;
  to: Mode;
  /** Of `cutover set`. */
  options: readonly string[];
}

export const switches: readonly Switch[] = [
  { from: 'shadow', to: 'mirror', options: [] },
  { from: 'mirror', to: 'shadow', options: [] },
  { from: 'mirror', to: 'reverse', options: ['--wait', '20'] },
  { from: 'reverse', to: 'mirror', options: [] },
  // Takes authority at once, and needs --force since it skips a mode.
  { from: 'mirror', to: 'native', options: ['--force'] },
];

export const nameOf = ({ from, to }: Switch): string => `${from} -> ${to}`;

/** Whether the switch ignores changes in doubt. */
export const isForced = ({ options }: Switch): boolean => options.includes('--force');
