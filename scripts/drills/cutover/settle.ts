import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { modes, type Mode } from '../../../src/cutover/modes.ts';
import { createReplayQueue } from '../../../src/cutover/replay/queue/queue.ts';
import { recordVerified } from '../../../src/cutover/verdict/verified.ts';
import { replicationIdsOf, storeTime } from '../../../src/redis/connection/client.ts';
import { cutoverKey, gapsKey, organizationBase, unsettledKey } from '../../../src/redis/keys.ts';
import { keyPrefix } from '../history/deployment.ts';
import type { Traffic } from './clients.ts';
import { clearDenylists, importIntoLegacy, organizationId, switchTo, type Site } from './site.ts';

const base = organizationBase(keyPrefix, organizationId);

/** How long a switch may take to end, and one side to catch up with the other, in ms. */
const timeouts = { end: 20_000, equal: 60_000 };

/** Brings everything to the mode, with the same data on both sides and nothing in doubt. */
export async function prepare(site: Site, newName: (user: string) => string, mode: Mode): Promise<void> {
  const { store, players, bridges } = site;
  await goTo(site, mode);
  if (mode === 'reverse') await untilReplayed(site);
  // A previous kill has left doubts on purpose; here everything starts over.
  await store.del(unsettledKey(base), gapsKey(base));
  await store.hdel(cutoverKey(keyPrefix), 'gap');
  await clearDenylists(site);
  for (const { user, apiKey } of players) {
    const response = await fetch(`${bridges[0].url}/api/profile/`, {
      method: 'PUT',
      headers: {
        'x-api-key': apiKey,
        'x-platform-organization-id': organizationId,
        'content-type': 'application/json',
      },
      body: JSON.stringify({ username: newName(user) }),
    });
    const text = await response.text();
    if (!response.ok)
      throw new Error(`before the switch: ${user} was not renamed: ${response.status} ${text}`);
  }
  if (mode === 'shadow') return;
  await mustBeEqual(site);
  if (mode !== 'mirror') return;
  const replicationIds = await replicationIdsOf(store);
  await recordVerified(store, keyPrefix, {
    snapshotAt: await storeTime(store),
    replicationIds,
    hasConflicts: false,
  });
}

/** From mode to mode, as an operator would. */
async function goTo(site: Site, mode: Mode): Promise<void> {
  let { mode: now } = await site.state();
  if (now === 'native') {
    await importIntoLegacy(site);
    await switchTo(site, 'shadow');
    now = 'shadow';
  }
  while (now !== mode) {
    const next: Mode =
      modes[modes.indexOf(now) + Math.sign(modes.indexOf(mode) - modes.indexOf(now))] ?? mode;
    if (next === 'reverse') await mustBeEqual(site);
    await switchTo(site, next);
    now = next;
  }
}

async function mustBeEqual(site: Site): Promise<void> {
  const differences = await untilEqual(site);
  if (differences.length > 0) throw new Error(`before the switch: ${differences.join('; ')}`);
}

/** What was sent to the legacy service and not seen to arrive is sent again, even where both sides are equal. */
async function untilReplayed({ store }: Site): Promise<void> {
  const queue = createReplayQueue(store, keyPrefix);
  const deadline = performance.now() + timeouts.equal;
  while ((await queue.state()).entries > 0) {
    if (performance.now() > deadline) throw new Error('before the switch: the queue does not become empty');
    await sleep(250);
  }
}

/** Waits until no switch is under way and both bridges make changes; returns what is wrong if they never do. */
export async function untilSettled(site: Site, { calls }: Traffic): Promise<string[]> {
  const deadline = performance.now() + timeouts.end;
  while ((await site.state()).underWay !== undefined) {
    if (performance.now() > deadline) return ['the switch is neither made nor withdrawn'];
    await sleep(50);
  }
  const settledAt = Date.now();
  const hasChanged = (bridge: number): boolean =>
    calls.some(
      (call) =>
        call.bridge === bridge && call.kind === 'change' && call.status === 200 && call.sentAt > settledAt,
    );
  while (!hasChanged(0) || !hasChanged(1)) {
    if (performance.now() > deadline) return ['a bridge makes no changes any more'];
    await sleep(50);
  }
  return [];
}

/** Users with a change that may be missing in Redis; '' is the denylist. */
export async function inDoubt({ store }: Site): Promise<string[]> {
  const marks = await store.hkeys(unsettledKey(base));
  return (await store.exists(gapsKey(base))) === 1 ? [...marks, ''] : marks;
}

/**
 * In mirror and reverse: waits until both sides are equal, while users read; returns the differences if they never are.
 * In mirror the denylist may be in doubt.
 */
export async function untilEqual(site: Site): Promise<string[]> {
  const deadline = performance.now() + timeouts.equal;
  for (;;) {
    const [here, there] = [await site.stored(), site.storedByLegacy()];
    const { mode, since } = await site.state();
    const doubts = await inDoubt(site);
    const isDenylistEqual =
      mode === 'reverse'
        ? isDeepStrictEqual(here.denied, there.denied)
        : doubts.includes('') ||
          // What was banned before was not mirrored.
          site.legacyChanges.every(
            ({ name, at }) => at <= since || !there.denied.includes(name) || here.denied.includes(name),
          );
    const isEqual = isDenylistEqual && isDeepStrictEqual(here.usernames, there.usernames);
    if (isEqual && doubts.every((user) => user === '')) return [];
    if (performance.now() > deadline) {
      return [`both sides do not become equal: ${JSON.stringify({ here, there, doubts })}`];
    }
    for (const { apiKey } of site.players) {
      const response = await fetch(`${site.bridges[1].url}/api/profile/`, {
        headers: { 'x-api-key': apiKey, 'x-platform-organization-id': organizationId },
      });
      await response.text();
    }
    await sleep(250);
  }
}
