import { dropGeneration, generationOf } from '../reindex/generations.ts';
import { organizationBase, organizationOf, profileKey, rebuildKey, settingsKey } from '../keys.ts';
import { registerOrganization } from '../organizations.ts';
import type { ReindexStore } from '../reindex/scripts.ts';
import type { FsckStore } from './scripts.ts';
import { readWriteSnapshot } from '../write-snapshot.ts';
import { tell, type Check, type Counts, type Fault, type Teller } from './check.ts';
import { checkKeyRecord } from './keys.ts';
import { checkBucket } from './names.ts';
import { checkOrganization } from './organization.ts';
import { checkProfiles } from './profiles.ts';
import { checkCollection } from './references.ts';

/** Keys examined at once: what travels together keeps others waiting together. */
const atOnce = 8;

export interface Run {
  /** Examines an organization's single keys; false where there is no such organization. */
  begin: (organizationId: string, isRegistered: boolean) => Promise<boolean>;
  /** Examines keys that a scan has found; those it does not know are none of its business. */
  examine: (keys: readonly string[]) => Promise<void>;
  /** Examines what only the whole scan can tell. */
  end: () => Promise<void>;
}

interface RunOptions {
  repair: boolean;
  counts: Counts;
  report: (fault: Fault) => void;
}

/** One fsck under way. */
export function createRun(
  store: FsckStore & ReindexStore,
  prefix: string,
  { repair, counts, report }: RunOptions,
): Run {
  /** By the organization's base; undefined where it cannot be examined. */
  const checks = new Map<string, Check | undefined>();
  const leftovers = new Map<Check, Leftovers>();

  const begin: Run['begin'] = async (organizationId, isRegistered) => {
    const base = organizationBase(prefix, organizationId);
    const teller: Teller = { organizationId, repair, report };
    const type = await store.type(settingsKey(base));
    if (type === 'none' && !isRegistered) return false;
    if (type !== 'hash') {
      checks.set(base, undefined);
      if (type === 'none') await tell(teller, 'settings-missing', 'there are no settings: use org set');
      else await tell(teller, 'wrong-type', `"${settingsKey(base)}" is no hash: remove it, then use org set`);
      return true;
    }
    if (!isRegistered) {
      await tell(teller, 'unregistered-organization', 'the organization is not in the registry', async () => {
        await registerOrganization(store, prefix, organizationId);
        return 'mended';
      });
    }
    const snapshot = await readWriteSnapshot(store, base);
    const check: Check = { ...teller, store, base, snapshot, counts };
    checks.set(base, check);
    await checkOrganization(check);
    return true;
  };

  const checkOf = async (base: string): Promise<Check | undefined> => {
    if (!checks.has(base)) {
      const id = organizationOf(prefix, base);
      // Keys without settings: told as those of an organization that has lost them.
      if (id !== undefined && !(await begin(id, false))) await begin(id, true);
    }
    return checks.get(base);
  };

  const examineKey = async (check: Check, key: string): Promise<void> => {
    const rest = key.slice(check.base.length);
    const generation = generationOf(check.base, key);
    if (generation !== undefined && generation !== check.snapshot.index) {
      const own = leftovers.get(check) ?? new Map<string, number>();
      const bucket = Number(rest.split(':')[1] ?? 0);
      leftovers.set(check, own.set(generation, Math.max(own.get(generation) ?? 0, bucket + 1)));
    } else if (generation !== undefined && rest.startsWith('n')) {
      await checkBucket(check, rest.slice(rest.indexOf(':') + 1));
    } else if (rest.startsWith('key:')) {
      await checkKeyRecord(check, rest.slice('key:'.length));
    } else if (rest.startsWith('c:')) {
      await checkCollection(check, rest.slice('c:'.length));
    }
  };

  return {
    begin,
    examine: async (keys) => {
      for (const [base, own] of byBase(prefix, keys)) {
        const check = await checkOf(base);
        if (check === undefined) continue;
        const profiles = profileKey(base, '');
        const users = own.filter((key) => key.startsWith(profiles));
        await checkProfiles(
          check,
          users.map((key) => key.slice(profiles.length)),
        );
        for (let at = 0; at < own.length; at += atOnce) {
          await Promise.all(own.slice(at, at + atOnce).map(async (key) => await examineKey(check, key)));
        }
      }
    },
    end: async () => {
      for (const [check, generations] of leftovers) await checkLeftovers(check, generations);
    },
  };
}

/** A generation of which keys were seen → how many buckets it has at least. */
type Leftovers = Map<string, number>;

/** A generation that is neither in force nor being built was left by a rebuild that died. */
async function checkLeftovers(check: Check, leftovers: Leftovers): Promise<void> {
  const { store, base } = check;
  for (const [generation, buckets] of leftovers) {
    const { index } = await readWriteSnapshot(store, base);
    if (generation === index || (await store.exists(rebuildKey(base))) === 1) continue;
    const detail = `generation ${generation} of the name index is not in force, and nobody is building it`;
    await tell(check, 'generation-left-over', detail, async () =>
      (await dropGeneration(store, base, generation, buckets)) ? 'mended' : 'changed',
    );
  }
}

function byBase(prefix: string, keys: readonly string[]): Map<string, string[]> {
  const groups = new Map<string, string[]>();
  for (const key of keys) {
    const end = key.indexOf('}:', prefix.length);
    if (end === -1) continue;
    const base = key.slice(0, end + 2);
    const group = groups.get(base);
    if (group === undefined) groups.set(base, [key]);
    else group.push(key);
  }
  return groups;
}
