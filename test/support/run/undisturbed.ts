import { monitorEventLoopDelay } from 'node:perf_hooks';

/** How long the machine may hold this process up until promises of time mean nothing, in ms. */
const tolerable = 500;

/** Runs it again, twice at most, if it fails while the machine holds this process up, and so the others, for long. */
export async function undisturbed<Result>(
  run: () => Promise<Result>,
  hasFailed: (result: Result) => boolean,
): Promise<Result> {
  for (let attempt = 1; ; attempt++) {
    const delays = monitorEventLoopDelay();
    delays.enable();
    const result = await run();
    delays.disable();
    if (!hasFailed(result) || delays.max / 1e6 < tolerable || attempt === 3) return result;
  }
}
