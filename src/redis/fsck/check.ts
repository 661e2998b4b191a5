import type { RedisClient } from '../connection/client.ts';
import { script } from '../connection/script-loader.ts';
import type { Refusal, WriteSnapshot } from '../write-snapshot.ts';

/** `changed`: what was to be repaired is no longer so. */
export type RepairReply = 'repaired' | 'changed' | Refusal;

const repairIf = script<[generation: string, expected: string, commands: string, audit: string], RepairReply>(
  'fsck/repair',
);

/** The faults that fsck can find; src/redis/README.md explains each. */
export type FaultKind =
  | 'unregistered-organization'
  | 'settings-missing'
  | 'settings-invalid'
  | 'wrong-type'
  | 'profile-undated'
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
  organizationId: string;
  kind: FaultKind;
  /** One sentence: what is wrong, and the remedy where it cannot be repaired. */
  detail: string;
  isRepaired: boolean;
}

/** How much was examined. */
export interface Counts {
  organizations: number;
  profiles: number;
  usernames: number;
  deniedNames: number;
  apiKeys: number;
  references: number;
}

type CommandPart = string | number;

/** A repair that is made only if its conditions still hold (lua/fsck/repair.lua). */
export interface ConditionalRepair {
  /** The generation of the name index that must be in force. */
  generation?: string;
  /** What each command must still reply, false for nothing. */
  expect: (readonly [reply: CommandPart | false, ...command: CommandPart[]])[];
  commands: (readonly CommandPart[])[];
  /** Fields and values of an entry in the audit trail. */
  audit?: readonly string[];
}

export type Repair = ConditionalRepair | (() => Promise<RepairReply | 'staged'>);

/**
 * Repairs a fault, if that is requested and possible, and reports it. A fault that the running service has fixed or
 * changed in the meantime is not reported.
 */
export type Report = (kind: FaultKind, detail: string, repair?: Repair) => Promise<void>;

/** One organization that is being examined. */
export interface Check {
  store: RedisClient;
  base: string;
  /** Read again when a script says that it is stale. */
  snapshot: WriteSnapshot;
  counts: Counts;
  report: Report;
}

interface ReportOptions {
  organizationId: string;
  /** Whether to repair. */
  repair: boolean;
  onFault: (fault: Fault) => void;
}

export function createReport(
  store: RedisClient,
  base: string,
  { organizationId, repair: isRepairing, onFault }: ReportOptions,
): Report {
  const run = async (repair: Repair): Promise<RepairReply | 'staged'> => {
    if (typeof repair === 'function') return await repair();
    const { generation = '', expect, commands, audit = [] } = repair;
    const [expected, changes, entry] = [expect, commands, audit].map((part) => JSON.stringify(part));
    return await repairIf(store, base, generation, expected ?? '', changes ?? '', entry ?? '');
  };
  return async (kind, detail, repair) => {
    const outcome = isRepairing && repair !== undefined ? await run(repair) : undefined;
    if (outcome !== 'changed') onFault({ organizationId, kind, detail, isRepaired: outcome === 'repaired' });
  };
}

/** Whether a key exists with this type; another type is reported as a fault. */
export async function hasType(
  { store, report }: Check,
  key: string,
  type: 'hash' | 'set' | 'zset' | 'stream',
  repair?: Repair,
): Promise<boolean> {
  const found = await store.type(key);
  if (found !== type && found !== 'none') {
    await report('wrong-type', `${quote(key)} is a ${found} instead of a ${type}: remove it`, repair);
  }
  return found === type;
}

/** Removes a field that cannot be read from a hash; the audit trail keeps it. */
export function removeField(key: string, field: string, value: string): ConditionalRepair {
  return {
    expect: [[value, 'hget', key, field]],
    commands: [['hdel', key, field]],
    audit: ['removed', key, 'field', field, 'value', value],
  };
}

/** Text as it appears in a fault's detail. */
export const quote = (text: string): string => JSON.stringify(text);

/** Users or names in one script call: few enough that none holds Redis for more than a few milliseconds. */
export const namesAtOnce = 200;
