import { randomBytes } from 'node:crypto';
import { connectLegacy, type Legacy as Connection } from '../../../src/cutover/forward/legacy.ts';
import { createApiKeyCipher, type ApiKeyCipher } from '../../../src/cutover/replay/api-key-cipher.ts';
import { createReplayQueue, type ReplayQueue } from '../../../src/cutover/replay/queue/queue.ts';
import { createQueueing } from '../../../src/cutover/replay/queueing.ts';
import { startReplayer, type Replayer } from '../../../src/cutover/replay/replayer.ts';
import { defaultSettings } from '../../../src/domain/settings.ts';
import { createLog, type Log } from '../../../src/log.ts';
import { banUsernames, overwriteDenylist, removeDenied } from '../../../src/redis/denylist.ts';
import { organizationBase } from '../../../src/redis/keys.ts';
import { saveSettings } from '../../../src/redis/organizations.ts';
import { putProfile } from '../../../src/redis/profiles.ts';
import type { RedisClient } from '../../../src/redis/connection/client.ts';
import { readWriteSnapshot, type WriteSnapshot } from '../../../src/redis/changes.ts';
import { startLegacy, type Legacy } from '../../support/legacy/legacy.ts';
import { freshPrefix } from '../../support/redis.ts';

/** An organization whose changes are accepted in the mode reverse, with a legacy service of its own; no bridge. */
export interface Replaying {
  prefix: string;
  base: string;
  queue: ReplayQueue;
  legacy: Legacy;
  log: Log;
  /** Accepts a change of a user, whose API key the legacy service knows unless `isUnknown`. */
  put: (userId: string, username: string, isUnknown?: boolean) => Promise<void>;
  ban: (replacements: Record<string, string>) => Promise<void>;
  remove: (usernames: string[]) => Promise<void>;
  overwrite: (usernames: string[]) => Promise<void>;
  /**
   * Starts an instance's replayer; `now` is its clock, `connection` its way to the legacy service, and `opening` what its
   * secret opens.
   */
  start: (
    id: string,
    now?: () => number,
    connection?: Connection,
    opening?: Pick<ApiKeyCipher, 'open'>,
  ) => Replayer;
  waiting: () => Promise<number>;
  close: () => Promise<void>;
}

export const organizationId = 'acme';
const timeoutMs = 1000;

/** The public id of the key with which a user's changes are made. */
export const keyIdOf = (userId: string): string => `k_${userId}`;

export async function openReplaying(store: RedisClient): Promise<Replaying> {
  const prefix = freshPrefix();
  const base = organizationBase(prefix, organizationId);
  const queue = createReplayQueue(store, prefix);
  const cipher = createApiKeyCipher([randomBytes(32)]);
  const queueing = createQueueing({ kind: 'able', cipher }, 1000, queue);
  const legacy = await startLegacy();
  const ownConnection = connectLegacy(legacy.url, timeoutMs);
  const log = createLog('error');
  await saveSettings(store, prefix, organizationId, defaultSettings);
  legacy.addKey('secret of k_admin', { organization: organizationId, role: 'admin' });

  const snapshotOf = async (keyId: string, userId?: string): Promise<WriteSnapshot> => {
    const role = userId === undefined ? 'admin' : 'player';
    const caller = { organizationId, keyId, role, ...(userId !== undefined && { userId }) } as const;
    const queued = queueing(caller, `secret of ${keyId}`);
    return { ...(await readWriteSnapshot(store, base, userId)), queued };
  };
  const byAdmin = async () => ({ store, base, keyId: 'k_admin', snapshot: await snapshotOf('k_admin') });
  const expectKind = ({ kind }: { kind: string }, wanted: string): void => {
    if (kind !== wanted) throw new Error(`not accepted: ${kind}`);
  };
  return {
    prefix,
    base,
    queue,
    legacy,
    log,
    put: async (userId, username, isUnknown = false) => {
      const keyId = keyIdOf(userId);
      if (!isUnknown) {
        legacy.addKey(`secret of ${keyId}`, { organization: organizationId, role: 'player', user: userId });
      }
      const snapshot = await snapshotOf(keyId, userId);
      expectKind(await putProfile(store, base, userId, { username }, snapshot), 'put');
    },
    ban: async (replacements) => {
      expectKind(await banUsernames(await byAdmin(), new Map(Object.entries(replacements))), 'banned');
    },
    remove: async (usernames) => expectKind(await removeDenied(await byAdmin(), usernames), 'removed'),
    overwrite: async (usernames) =>
      expectKind(await overwriteDenylist(await byAdmin(), usernames), 'overwritten'),
    start: (id, now, connection = ownConnection, opening = cipher) =>
      startReplayer({
        store,
        keyPrefix: prefix,
        organizationHeader: 'x-platform-organization-id',
        legacy: connection,
        media: { open: () => Promise.resolve(undefined) },
        queue,
        cipher: opening,
        cutover: { id, mayReplay: () => true },
        log,
        ...(now !== undefined && { now }),
      }),
    waiting: async () => (await queue.state()).entries,
    close: async () => {
      await ownConnection.close();
      await legacy.close();
    },
  };
}
