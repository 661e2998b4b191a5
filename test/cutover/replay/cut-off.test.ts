import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { connectLegacy, type Legacy as Connection } from '../../../src/cutover/forward/legacy.ts';
import { replayerKey } from '../../../src/redis/keys.ts';
import { until } from '../../support/until.ts';
import { useTestStore } from '../../support/use-store.ts';
import { openReplaying, type Replaying } from './replaying.ts';

const store = await useTestStore();
let here: Replaying;
let nowhere: Connection;
beforeAll(async () => {
  here = await openReplaying(store);
  nowhere = connectLegacy('http://127.0.0.1:1', 1000);
});
afterAll(async () => {
  await nowhere.close();
  await here.close();
});

/** Fifty times as fast as the real one. */
const now = (): number => performance.now() * 50;

test('an instance that cannot reach the legacy service leaves the replay to another one', async () => {
  await here.put('ada', 'Ada');
  const cutOff = here.start('cut off', now, nowhere);
  await until(() => store.get(replayerKey(here.prefix)));
  const other = here.start('other', now);
  try {
    await until(
      async () => (await here.queue.state()).pausedBecause === 'the legacy service cannot be reached',
    );
    await until(async () => (await here.waiting()) === 0);
    expect((await here.queue.state()).pausedBecause).toBeUndefined();
  } finally {
    await cutOff.close();
    await other.close();
  }
});
