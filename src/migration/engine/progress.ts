import { SingleBar } from 'cli-progress';
import { counted, number } from '../../lib/numbers.ts';

/** Tells an operator how far the work is. */
export interface Progress {
  /** `phase` may change at any call; `count` records more, by which `share` (0 to 1) of the phase is done. */
  advance: (phase: string, count: number, share: number) => void;
  stop: () => void;
}

interface Output {
  isTTY?: boolean | undefined;
  write: (text: string) => unknown;
}

/** Between two lines where there is no terminal, in ms. */
const lineInterval = 5000;

/** A bar with rate and time left on a terminal; elsewhere a line every few seconds. */
export function createProgress(output: Output, now: () => number = Date.now): Progress {
  return output.isTTY === true ? createBar(output, now) : createLines(output, now);
}

/** A phase under way. */
function createMeter(now: () => number) {
  let phase = '';
  let count = 0;
  let share = 0;
  let startedAt = now();
  return {
    /** Whether another phase has begun. */
    advance: (next: string, more: number, reached: number): boolean => {
      const isNew = next !== phase;
      if (isNew) {
        phase = next;
        count = 0;
        startedAt = now();
      }
      count += more;
      share = reached;
      return isNew;
    },
    read: () => {
      const seconds = Math.max(0.001, (now() - startedAt) / 1000);
      const left = share > 0 ? (seconds * (1 - share)) / share : undefined;
      return {
        phase,
        done: counted(count, 'record'),
        share,
        rate: number(Math.round(count / seconds)),
        left: left === undefined ? 'unknown' : duration(left),
      };
    },
  };
}

function createLines(output: Output, now: () => number): Progress {
  const meter = createMeter(now);
  let toldAt = now();
  return {
    advance: (phase, count, share) => {
      meter.advance(phase, count, share);
      if (now() - toldAt < lineInterval) return;
      toldAt = now();
      const { phase: doing, done, share: reached, rate, left } = meter.read();
      output.write(`${doing}: ${done}, ${Math.floor(100 * reached)} %, ${rate}/s, ${left} left\n`);
    },
    stop: () => {},
  };
}

function createBar(output: Output, now: () => number): Progress {
  const meter = createMeter(now);
  let bar: SingleBar | undefined;
  const stop = (): void => {
    bar?.stop();
    bar = undefined;
  };
  return {
    advance: (phase, count, share) => {
      if (meter.advance(phase, count, share)) stop();
      if (bar === undefined) {
        bar = new SingleBar({
          format: '{bar} {percentage} % {phase}: {done}, {rate}/s, {left} left',
          stream: output as unknown as NodeJS.WritableStream,
          hideCursor: true,
          clearOnComplete: true,
          gracefulExit: false,
        });
        bar.start(1, 0, meter.read());
      }
      bar.update(share, meter.read());
    },
    stop,
  };
}

function duration(seconds: number): string {
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}
