import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { isAnyKeyAccepted } from '../../../src/cutover/replay/api-keys.ts';
import type { QueuedChange } from '../../../src/cutover/replay/queue/changes.ts';
import { until } from '../../support/until.ts';
import { useCleanup, useTestStore } from '../../support/use-store.ts';
import { keyIdOf, openReplaying, organizationId, type Replaying } from './replaying.ts';

const store = await useTestStore();
const cleanup = useCleanup();
let here: Replaying;
beforeEach(async () => {
  here = await openReplaying(store);
  cleanup.push(here.close);
});
afterEach(() => {
  jest.restoreAllMocks();
});

const untilReplayed = () => until(async () => (await here.waiting()) === 0);

test('a change is not sent once the replay has ended while it was marked', async () => {
  const { mark } = here.queue;
  let closing: Promise<void> | undefined;
  jest.spyOn(here.queue, 'mark').mockImplementation(async (...entry) => {
    const marked = await mark(...entry);
    closing = replayer.close();
    return marked;
  });
  await here.put('ada', 'Ada');
  const replayer = here.start('one');
  await until(() => closing !== undefined);
  await closing;
  expect([here.legacy.received, await here.waiting()]).toEqual([[], 1]);
});

test('a change that was sent waits until it can no longer take effect if what became of it cannot be stored', async () => {
  const times: number[] = [];
  const now = (): number => performance.now() * 2;
  here.legacy.behaviour.gate = async () => void times.push(now());
  jest.spyOn(here.queue, 'complete').mockRejectedValueOnce(new Error('CLUSTERDOWN a master is away'));
  await here.put('ada', 'Ada');
  const replayer = here.start('one', now);
  cleanup.push(replayer.close);
  await untilReplayed();
  const [first = 0, second = 0, ...more] = times;
  expect(more).toEqual([]);
  // Twice as long as the legacy service may take.
  expect(second - first).toBeGreaterThanOrEqual(2000);
});

test('a retry goes behind a later change that claims its name, since it sends what is true by then', async () => {
  here.legacy.behaviour.failWith = 400;
  await here.put('ada', 'One');
  const first = here.start('one');
  const refused = await until(async () => (await here.queue.listSetAside(organizationId)).at(0));
  here.legacy.behaviour.failWith = undefined;
  await here.put('ada', 'Two');
  await untilReplayed();
  await first.close();

  const before = here.legacy.received.length;
  await here.queue.retry(organizationId, refused.id);
  await here.put('bob', 'One');
  const second = here.start('two');
  cleanup.push(second.close);
  await untilReplayed();
  const keys = here.legacy.received.slice(before).map(({ headers }) => headers['x-api-key']);
  expect(keys).toEqual(['bob', 'ada'].map((user) => `secret of ${keyIdOf(user)}`));
});

test('ten API keys at most are tried to see whether the legacy service accepts any', async () => {
  const changes = Array.from({ length: 12 }, (_, at): QueuedChange => {
    const caller = { organizationId, keyId: `k_${at}`, role: 'player', userId: `user-${at}` } as const;
    return { id: `1-${at}`, at: 1, caller, sealedKey: 'sealed', change: { kind: 'put' }, isRetry: false };
  });
  const tried: string[] = [];
  const probe = ({ caller }: QueuedChange) => Promise.resolve(tried.push(caller.keyId) > 10);
  expect(await isAnyKeyAccepted({ open: () => 'key' }, changes, { probe })).toBe(false);
  expect(tried).toHaveLength(10);
});
