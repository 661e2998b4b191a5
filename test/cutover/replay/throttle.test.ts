import { beforeEach, expect, test } from '@jest/globals';
import { connectLegacy } from '../../../src/cutover/forward/legacy.ts';
import { delayAfter } from '../../../src/cutover/replay/rules.ts';
import { createThrottle, type Throttle } from '../../../src/cutover/replay/throttle.ts';
import { createLog } from '../../../src/log.ts';
import { replayerKey } from '../../../src/redis/keys.ts';
import { until } from '../../support/until.ts';
import { useCleanup, useTestStore } from '../../support/use-store.ts';
import { openReplaying } from './replaying.ts';

const store = await useTestStore();
const cleanup = useCleanup();
let clock: number;
let throttle: Throttle;
beforeEach(() => {
  clock = 0;
  const now = (): number => clock;
  throttle = createThrottle(createLog('silent'), now, () => {});
});

test('after a pause one request is sent, and as many as usual once it was answered', () => {
  throttle.pause('the legacy service cannot be reached');
  clock += delayAfter(1);
  expect(throttle.free()).toBe(1);
  throttle.count(new Promise(() => {}));
  expect(throttle.free()).toBe(0);
  throttle.noteAnswer();
  expect(throttle.free()).toBe(15);
});

test('after six pauses in a row another instance should try, until the last one is over', () => {
  for (const pauses of [1, 2, 3, 4, 5, 6]) {
    clock += delayAfter(pauses - 1);
    expect(throttle.isStuck()).toBe(false);
    throttle.pause('the legacy service cannot be reached');
    expect(throttle.free()).toBe(0);
  }
  expect(throttle.isStuck()).toBe(true);
  clock += delayAfter(6);
  // The lease may be back here, as where there is no other instance.
  expect([throttle.isStuck(), throttle.free()]).toEqual([false, 1]);
});

test('an instance that cannot reach the legacy service leaves the replay to another one', async () => {
  const here = await openReplaying(store);
  const nowhere = connectLegacy('http://127.0.0.1:1', 1000);
  cleanup.push(here.close, nowhere.close);
  /** Fifty times as fast as the real one. */
  const now = (): number => performance.now() * 50;
  await here.put('ada', 'Ada');
  const cutOff = here.start('cut off', now, nowhere);
  cleanup.push(cutOff.close);
  await until(() => store.get(replayerKey(here.prefix)));
  const other = here.start('other', now);
  cleanup.push(other.close);
  await until(
    async () =>
      (await here.queue.state()).pausedBecause ===
      'the legacy service cannot be reached (connect ECONNREFUSED 127.0.0.1:1)',
  );
  await until(async () => (await here.waiting()) === 0);
  expect((await here.queue.state()).pausedBecause).toBeUndefined();
});
