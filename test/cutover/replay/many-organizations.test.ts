import { expect, jest, test } from '@jest/globals';
import type { LegacyRequest, LegacyResponse } from '../../../src/cutover/forward/legacy.ts';
import { createReplayQueue } from '../../../src/cutover/replay/queue/queue.ts';
import { startReplayer, type Replayer } from '../../../src/cutover/replay/replayer.ts';
import { createLog } from '../../../src/log.ts';
import { freshPrefix } from '../../support/redis.ts';
import { until } from '../../support/until.ts';
import { useTestStore } from '../../support/use-store.ts';

const store = await useTestStore();

/** Replays endless changes of these organizations, each of another user; `read` counts those that are in memory. */
function replayEndless(
  organizations: readonly string[],
  send: (request: LegacyRequest) => Promise<LegacyResponse>,
): { replayer: Replayer; read: ReadonlyMap<string, number> } {
  const keyPrefix = freshPrefix();
  const queue = createReplayQueue(store, keyPrefix);
  const read = new Map<string, number>();
  jest.spyOn(queue, 'listed').mockResolvedValue(organizations.map((id) => [id, 'token']));
  jest.spyOn(queue, 'read').mockImplementation((organizationId, count) => {
    const before = read.get(organizationId) ?? 0;
    read.set(organizationId, before + count);
    const changes = Array.from({ length: count }, (_, at) => {
      const userId = `user-${before + at}`;
      const caller = { organizationId, keyId: userId, role: 'player', userId } as const;
      const change = { kind: 'put', avatar: null } as const;
      return { id: `1-${before + at}`, at: 1, caller, sealedKey: 'sealed', change, isRetry: false };
    });
    return Promise.resolve(changes);
  });
  jest.spyOn(queue, 'mark').mockImplementation((_organizationId, _id, sender) => Promise.resolve(sender));
  jest.spyOn(queue, 'complete').mockResolvedValue();
  const replayer = startReplayer({
    store,
    keyPrefix,
    queue,
    organizationHeader: 'x-platform-organization-id',
    legacy: { timeoutMs: 1000, send, close: () => Promise.resolve() },
    media: { open: () => Promise.resolve(undefined) },
    cipher: { open: () => 'key' },
    cutover: { id: 'one', mayReplay: () => true },
    log: createLog('error'),
  });
  return { replayer, read };
}

test('few changes are kept in memory at a time, however many organizations have some', async () => {
  const organizations = Array.from({ length: 100 }, (_, at) => `org-${at}`);
  const { replayer, read } = replayEndless(organizations, () => Promise.reject(new Error('away')));
  await until(() => read.size === organizations.length);
  await replayer.close();
  const counts = [...read.values()];
  expect(counts.reduce((sum, count) => sum + count, 0)).toBeLessThanOrEqual(60_000);
  expect(Math.min(...counts)).toBeGreaterThan(100);
});

test('an organization with many changes does not hold up another one', async () => {
  const sent: string[] = [];
  const { replayer } = replayEndless(['acme', 'beta'], async ({ headers }) => {
    sent.push(headers[headers.indexOf('x-platform-organization-id') + 1] ?? '');
    await new Promise((resolve) => setTimeout(resolve, 10));
    return { status: 204, headers: [], body: (async function* () {})() };
  });
  await until(() => sent.length >= 200);
  await replayer.close();
  expect(sent.slice(0, 200).filter((organizationId) => organizationId === 'beta').length).toBeGreaterThan(50);
});
