import type { SingleBar } from 'cli-progress';
import { counted, number } from '../../lib/numbers.ts';

/** Shows an operator the progress of the work. */
export interface Progress {
  /** Sets the number of passes. */
  begin: (passes: number) => void;
  /** The next pass begins. */
  next: () => void;
  /** `phase` may change at any call; `count` records more, by which `share` (0 to 1) of the phase is done. */
  advance: (phase: string, count: number, share: number) => void;
  stop: () => void;
}

interface Output {
  isTTY?: boolean | undefined;
  write: (text: string) => unknown;
}

/** The time between two lines if there is no terminal, in ms. */
const lineInterval = 5000;

/** A bar with rate and time left on a terminal; elsewhere a line every few seconds. */
export async function createProgress(output: Output, now: () => number = Date.now): Promise<Progress> {
  return output.isTTY === true ? await createBar(output, now) : createLines(output, now);
}

/** Counts what is shown. */
function createMeter(now: () => number) {
  let [pass, passes] = [0, 0];
  let [phase, count, share, startedAt] = ['', 0, 0, now()];
  return {
    begin: (all: number): void => {
      [pass, passes] = [0, all];
    },
    next: (): void => {
      pass += 1;
    },
    /** Whether another phase has begun. */
    advance: (next: string, more: number, reached: number): boolean => {
      const isNew = next !== phase;
      if (isNew) [phase, count, startedAt] = [next, 0, now()];
      count += more;
      share = reached;
      return isNew;
    },
    read: () => {
      const seconds = Math.max(0.001, (now() - startedAt) / 1000);
      const left = share > 0 ? `${duration((seconds * (1 - share)) / share)} left` : 'time left unknown';
      return {
        phase: passes > 1 ? `${phase} (pass ${pass} of ${passes})` : phase,
        done: counted(count, 'record'),
        share,
        rate: number(Math.round(count / seconds)),
        left,
      };
    },
  };
}

function createLines(output: Output, now: () => number): Progress {
  const meter = createMeter(now);
  let shownAt = now();
  return {
    ...meter,
    advance: (phase, count, share) => {
      meter.advance(phase, count, share);
      if (now() - shownAt < lineInterval) return;
      shownAt = now();
      const { phase: doing, done, share: reached, rate, left } = meter.read();
      output.write(`${doing}: ${done}, ${Math.floor(100 * reached)} %, ${rate}/s, ${left}\n`);
    },
    stop: () => {},
  };
}

async function createBar(output: Output, now: () => number): Promise<Progress> {
  const { SingleBar: Bar } = await import('cli-progress');
  const meter = createMeter(now);
  let bar: SingleBar | undefined;
  const stop = (): void => {
    bar?.stop();
    bar = undefined;
  };
  return {
    ...meter,
    advance: (phase, count, share) => {
      if (meter.advance(phase, count, share)) stop();
      if (bar === undefined) {
        bar = new Bar({
          format: '{bar} {percentage} % {phase}: {done}, {rate}/s, {left}',
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
