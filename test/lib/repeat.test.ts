import { expect, test } from '@jest/globals';
import { repeat } from '../../src/lib/repeat.ts';
import { until } from '../support/until.ts';

test('work is repeated until it is stopped, which aborts the run in progress and waits for its end', async () => {
  let [begun, ended] = [0, 0];
  let isWaiting = false;
  const stop = repeat(async (signal) => {
    begun++;
    if (begun === 3) {
      isWaiting = true;
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
      await Promise.resolve();
    }
    ended++;
  }, 1);
  await until(() => isWaiting);
  expect([begun, ended]).toEqual([3, 2]);
  await stop();
  expect([begun, ended]).toEqual([3, 3]);
});

test('work that is stopped before its first run never runs', async () => {
  let runs = 0;
  await repeat(async () => void runs++, 60_000)();
  expect(runs).toBe(0);
});
