import { expect, test } from '@jest/globals';
import { startHeartbeats } from '../../../src/cutover/switch/heartbeats.ts';
import { newRegistration } from '../../../src/cutover/switch/registry.ts';
import { freshPrefix } from '../../support/redis.ts';
import { useTestStore } from '../../support/use-store.ts';

const store = await useTestStore();

test('no heartbeat is sent once they are stopped, not even for those who wait for one', async () => {
  const keyPrefix = freshPrefix();
  const { id, registration } = newRegistration({ kind: 'bridge', legacy: true, replay: true });
  let answers = 0;
  const heartbeats = await startHeartbeats(store, {
    keyPrefix,
    id,
    registration,
    unfinished: () => 0,
    isUnsaved: () => false,
    onAnswer: () => (answers += 1),
  });
  const asking = [heartbeats.refresh(), heartbeats.refresh()];
  await heartbeats.stop();
  const heard = answers;
  await Promise.all([...asking, heartbeats.refresh()]);
  expect(answers).toBe(heard);
});
