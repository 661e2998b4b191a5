import type { Instances } from './instances.ts';

/** What clients saw while one mode was in force. */
export interface Phase {
  name: string;
  seconds: number;
  reads: number;
  /** Changes that were acknowledged, and those refused for a reason in the contract. */
  changes: number;
  refused: number;
  /** On a connection to an instance that was killed meanwhile. */
  cutOff: number;
  /** How often each instance was killed. */
  kills: number[];
  /** Times of responses, in ms. */
  readTimes: number[];
  changeTimes: number[];
}

/** What clients saw so far, by mode. */
export function createPhases(instances: Instances) {
  const all: Phase[] = [];
  let beganAt = performance.now();

  const end = (): void => {
    const now = performance.now();
    const last = all.at(-1);
    if (last !== undefined) last.seconds = (now - beganAt) / 1000;
    beganAt = now;
  };
  return {
    all,
    current: (): Phase => {
      const phase = all.at(-1);
      if (phase === undefined) throw new Error('no phase has begun');
      return phase;
    },
    /** Begins a new phase; the one before ends. */
    begin: (name: string): void => {
      end();
      all.push({
        name,
        seconds: 0,
        reads: 0,
        changes: 0,
        refused: 0,
        cutOff: 0,
        kills: instances.all.map(() => 0),
        readTimes: [],
        changeTimes: [],
      });
    },
    /** Ends the last phase. */
    end,
  };
}
