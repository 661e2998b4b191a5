import type { SingleBar } from 'cli-progress';
import { counted, formatNumber } from '../../lib/numbers.ts';

/** Shows an operator the progress of the work. */
export type Progress = Awaited<ReturnType<typeof createProgress>>;

interface Output {
  isTTY?: boolean | undefined;
  write: (text: string) => unknown;
}

/** The time between two lines if there is no terminal, in ms. */
const lineInterval = 5000;

/** A bar with rate and time left on a terminal; elsewhere a line every few seconds. */
export async function createProgress(output: Output, now: () => number = () => performance.now()) {
  const display = output.isTTY === true ? await createBar(output) : createLines(output, now);
  let [pass, passes] = [0, 0];
  let [phase, count, startedAt] = ['', 0, now()];
  return {
    /** Sets the number of passes. */
    begin: (all: number): void => {
      [pass, passes] = [0, all];
    },
    /** The next pass begins. */
    next: (): void => {
      pass += 1;
    },
    /** The phase may change at any call; `more` records, by which `share` (0 to 1) of it is done, or 0 if unknown. */
    advance: (next: string, more: number, share: number): void => {
      if (next !== phase) {
        display.stop();
        [phase, count, startedAt] = [next, 0, now()];
      }
      count += more;
      display.show(share, () => {
        const seconds = Math.max(0.001, (now() - startedAt) / 1000);
        const [percent, left] =
          share > 0
            ? [`, ${Math.floor(100 * share)} %`, `, ${duration((seconds * (1 - share)) / share)} left`]
            : ['', ''];
        const name = passes > 1 ? `${phase} (pass ${pass} of ${passes})` : phase;
        return `${name}: ${counted(count, 'record')}${percent}, ${formatNumber(Math.round(count / seconds))}/s${left}`;
      });
    },
    stop: display.stop,
  };
}

function createLines(output: Output, now: () => number) {
  let shownAt = now();
  return {
    /** Shows the share that is done, 0 to 1, and the text if it is due. */
    show: (_: number, text: () => string): void => {
      if (now() - shownAt < lineInterval) return;
      shownAt = now();
      output.write(`${text()}\n`);
    },
    // A phase that has just begun has no speed yet.
    stop: (): void => {
      shownAt = Math.max(shownAt, now() - lineInterval + 1000);
    },
  };
}

async function createBar(output: Output): Promise<ReturnType<typeof createLines>> {
  const { SingleBar: Bar } = await import('cli-progress');
  let bar: SingleBar | undefined;
  return {
    show: (share, text) => {
      if (bar === undefined) {
        bar = new Bar({
          format: '{bar} {text}',
          stream: output as unknown as NodeJS.WritableStream,
          hideCursor: true,
          clearOnComplete: true,
          gracefulExit: false,
        });
        bar.start(1, share, { text: text() });
      } else {
        bar.update(share, { text: text() });
      }
    },
    stop: () => {
      bar?.stop();
      bar = undefined;
    },
  };
}

function duration(seconds: number): string {
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}
