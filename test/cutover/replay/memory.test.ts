import { expect, jest, test } from '@jest/globals';
import { createReplayQueue } from '../../../src/cutover/replay/queue/queue.ts';
import { startReplayer } from '../../../src/cutover/replay/replayer.ts';
import { createLog } from '../../../src/log.ts';
import { freshPrefix } from '../../support/redis.ts';
import { until } from '../../support/until.ts';
import { useTestStore } from '../../support/use-store.ts';

const store = await useTestStore();

test('few changes are kept in memory at a time, however many organizations have some', async () => {
  const keyPrefix = freshPrefix();
  const queue = createReplayQueue(store, keyPrefix);
  const organizations = Array.from({ length: 100 }, (_, at) => `org-${at}`);
  const inMemory = new Map<string, number>();
  jest.spyOn(queue, 'listed').mockResolvedValue(organizations);
  jest.spyOn(queue, 'read').mockImplementation((organizationId, count) => {
    const before = inMemory.get(organizationId) ?? 0;
    inMemory.set(organizationId, before + count);
    const caller = { organizationId, keyId: 'k', role: 'player', userId: 'ada' } as const;
    const change = { kind: 'put', username: 'Ada' } as const;
    const entry = { at: 1, caller, sealedKey: 'sealed', change, isRetry: false };
    return Promise.resolve(Array.from({ length: count }, (_, at) => ({ ...entry, id: `1-${before + at}` })));
  });
  const replayer = startReplayer({
    store,
    keyPrefix,
    queue,
    organizationHeader: 'x-platform-organization-id',
    legacy: {
      timeoutMs: 1000,
      send: () => Promise.reject(new Error('away')),
      close: () => Promise.resolve(),
    },
    media: { read: () => Promise.resolve(undefined) },
    credentials: { open: () => undefined },
    cutover: { id: 'one', mode: () => 'reverse' },
    log: createLog('error'),
  });
  await until(() => inMemory.size === organizations.length);
  await replayer.close();
  const counts = [...inMemory.values()];
  expect(counts.reduce((sum, count) => sum + count, 0)).toBeLessThanOrEqual(50_000);
  expect(Math.min(...counts)).toBeGreaterThan(100);
});
