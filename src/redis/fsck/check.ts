import { wrongTypeOf, type RedisClient } from '../connection/client.ts';
import { script } from '../connection/script-loader.ts';
import { settingsKey } from '../keys.ts';
import { readWriteSnapshot, type WriteSnapshot } from '../changes.ts';

const confirm = script<[sighting: string], 'confirmed' | 'changed'>('fsck/confirm');

const makeRepair = script<[repair: string], 'repaired' | 'changed' | 'busy'>('fsck/repair');

/** README.md of src/redis explains each. */
export type FaultKind =
  | 'unregistered-organization'
  | 'settings-missing'
  | 'settings-invalid'
  | 'wrong-type'
  | 'profile-undated'
  | 'profile-mark-unreadable'
  | 'picture-loose'
  | 'reference-unreadable'
  | 'username-malformed'
  | 'username-not-indexed'
  | 'username-shared'
  | 'index-entry-stale'
  | 'generation-left-over'
  | 'denied-name-misfiled'
  | 'key-invalid'
  | 'key-not-listed'
  | 'key-list-stale'
  | 'loose-file-undated';

export interface Fault {
  /** '' where it belongs to none. */
  organizationId: string;
  kind: FaultKind;
  /** One sentence: what is wrong, and the remedy where it cannot be repaired. */
  detail: string;
  isRepaired: boolean;
}

/** Of each kind, how many were checked. */
export const noCounts = {
  organizations: 0,
  profiles: 0,
  usernames: 0,
  deniedNames: 0,
  apiKeys: 0,
  references: 0,
};
export type Counts = typeof noCounts;

type CommandPart = string | number;

/** A repair, and what it is based on (lua/fsck/repair.lua). */
export interface Repair {
  /** The generation of the name index that must be in force. */
  generation?: string;
  /** The reply that each command must still give, false for none. */
  expect: (readonly [reply: CommandPart | false, ...command: CommandPart[]])[];
  /** Who gets a normalized name in the name index. */
  claim?: readonly [normalized: string, userId: string];
  commands: (readonly CommandPart[])[];
  /** Fields and values of an entry in the audit trail. */
  audit?: readonly string[];
}

/**
 * Reports a fault, after repairing it if that is requested and possible. A script first confirms what was seen, so that
 * nothing is reported that the running service was changing just then: false if the fault no longer existed, or another
 * generation of the name index is in force. A repair that is more than one script returns the same.
 */
export type ReportFault = (
  kind: FaultKind,
  detail: string,
  repair?: Repair | (() => Promise<boolean>),
) => Promise<boolean>;

/** What names are checked by. */
export interface Naming {
  snapshot: WriteSnapshot;
  /** How many buckets the name index has; null where the settings do not say, and then it has one. */
  buckets: string | null;
}

/** One organization that is being examined. */
export interface Check extends Naming {
  store: RedisClient;
  base: string;
  counts: Counts;
  report: ReportFault;
}

export async function readNaming(store: RedisClient, base: string): Promise<Naming> {
  const snapshot = await readWriteSnapshot(store, base);
  return { snapshot, buckets: await store.hget(settingsKey(base), `n${snapshot.index}`) };
}

/** How faults are reported. */
export interface ReportOptions {
  repair: boolean;
  onFault: (fault: Fault) => void;
  /** Called with the error of a repair that a full Redis refuses; others may free what it needs. */
  onFull: (error: unknown) => void;
}

/** Reports faults of an organization, each once it is confirmed, and repairs those that it can if asked to. */
export function createReport(
  store: RedisClient,
  base: string,
  organizationId: string,
  { repair: isRepairing, onFault, onFull }: ReportOptions,
): ReportFault {
  const attempt = async (repair: Parameters<ReportFault>[2]) => {
    if (repair === undefined || (typeof repair === 'function' && !isRepairing)) return 'confirmed';
    if (typeof repair === 'function') return (await repair()) ? 'repaired' : 'changed';
    const outcome = await (isRepairing ? makeRepair : confirm)(store, base, JSON.stringify(repair));
    // What is not UTF-8 was not read as it is, so it always seems to have changed.
    const mayBeMisread = JSON.stringify(repair.expect).includes('\uFFFD');
    return outcome === 'changed' && mayBeMisread ? 'confirmed' : outcome;
  };
  return async (kind, detail, repair) => {
    const outcome = await attempt(repair).catch((error: unknown) => {
      if (!String(error).includes('OOM ')) throw error;
      onFull(error);
      return 'refused';
    });
    if (outcome === 'changed') return false;
    onFault({ organizationId, kind, detail, isRepaired: outcome === 'repaired' });
    return true;
  };
}

export type KeyType = 'hash' | 'list' | 'set' | 'stream' | 'string' | 'zset';

/** Whether a key exists with this type; another type is reported as a fault. */
export async function hasType(
  { store, report }: Pick<Check, 'store' | 'report'>,
  key: string,
  type: KeyType,
  repair?: (found: string) => Repair,
): Promise<boolean> {
  const found = await store.type(key);
  if (found === type) return true;
  if (found !== 'none') {
    await report(
      'wrong-type',
      `${quote(key)} is a ${found} instead of a ${type}: remove it`,
      repair?.(found),
    );
  } else if (key.includes('\uFFFD')) {
    await report('wrong-type', `the bytes of key ${quote(key)} are not UTF-8: remove it`);
  }
  return false;
}

/** A command's reply; undefined for a key of another type, which is reported by itself. */
export async function ofRightType<Reply>(reply: Promise<Reply>): Promise<Reply | undefined> {
  return await reply.catch((error: unknown) => {
    if (wrongTypeOf(error) !== undefined) return undefined;
    throw error;
  });
}

/** Whether this is a time in ms. */
export const isStoredTime = (text: string): boolean => /^\d{1,15}$/.test(text);

/** Removes a field that cannot be read from a hash; the audit trail keeps it. */
export function removeField(key: string, field: string, value: string): Repair {
  return {
    expect: [[value, 'hget', key, field]],
    commands: [['hdel', key, field]],
    audit: ['removed', key, 'field', field, 'value', value],
  };
}

/** A text as it appears in a fault's detail. */
export const quote = (text: string): string => JSON.stringify(text);
