import {
  apiKeyKey,
  collectionKey,
  loadingKey,
  organizationBase,
  organizationOf,
  profileKey,
  rebuildKey,
  settingsKey,
} from '../keys.ts';
import { groupBy } from '../../lib/group-by.ts';
import { yieldingChunks } from '../../lib/time-slices.ts';
import { registerOrganization } from '../organizations.ts';
import { dropGeneration, generationOf } from '../reindex/generations.ts';
import type { RedisClient } from '../connection/client.ts';
import { readWriteSnapshot } from '../write-snapshot.ts';
import { checkKeyRecord } from './api-keys.ts';
import { createReport, type Check, type Counts, type Fault } from './check.ts';
import { checkBucket } from './names.ts';
import { checkOrganization } from './organization.ts';
import { checkProfiles } from './profiles.ts';
import { checkCollection } from './references.ts';

/** Keys examined at once: few, since commands sent together delay other requests. */
const atOnce = 8;

/** One walk over all keys. */
export interface Pass {
  /** Examines the single keys of an organization; false if it does not exist. */
  begin: (organizationId: string, isRegistered: boolean) => Promise<boolean>;
  /** Examines keys found by a scan; keys of other kinds are ignored. */
  examine: (keys: readonly string[]) => Promise<void>;
  /** Examines what is only known after the whole scan. */
  end: () => Promise<{ counts: Counts; loading: string[] }>;
}

/** A generation of the name index whose keys were seen → the least number of buckets that it has. */
type Generations = Map<string, number>;

export function createPass(
  store: RedisClient,
  prefix: string,
  options: { repair: boolean; onFault: (fault: Fault) => void },
): Pass {
  const counts: Counts = {
    organizations: 0,
    profiles: 0,
    usernames: 0,
    deniedNames: 0,
    apiKeys: 0,
    references: 0,
  };
  const loading = new Set<string>();
  /** By the organization's base; undefined where it cannot be examined. */
  const checks = new Map<string, Check | undefined>();
  const otherGenerations = new Map<Check, Generations>();

  const begin: Pass['begin'] = async (organizationId, isRegistered) => {
    const base = organizationBase(prefix, organizationId);
    const report = createReport(store, base, { organizationId, ...options });
    const settings = settingsKey(base);
    const type = await store.type(settings);
    if (type !== 'hash') {
      const isLoading = type === 'none' && (await store.exists(loadingKey(base))) === 1;
      if (type === 'none' && !isLoading && !isRegistered) return false;
      checks.set(base, undefined);
      if (isLoading) loading.add(organizationId);
      else if (type === 'none') await report('settings-missing', 'there are no settings: run org set');
      else await report('wrong-type', `"${settings}" is not a hash: remove it, then run org set`);
      return true;
    }
    if (!isRegistered) {
      await report('unregistered-organization', 'the organization is not in the registry', async () => {
        await registerOrganization(store, prefix, organizationId);
        return 'repaired';
      });
    }
    const check: Check = { store, base, snapshot: await readWriteSnapshot(store, base), counts, report };
    checks.set(base, check);
    await checkOrganization(check);
    return true;
  };

  const checkOf = async (base: string): Promise<Check | undefined> => {
    if (!checks.has(base)) {
      const id = organizationOf(prefix, base);
      // Keys without settings: reported like an organization that has lost them.
      if (id !== undefined && !(await begin(id, false))) await begin(id, true);
    }
    return checks.get(base);
  };

  const examineKey = async (check: Check, key: string): Promise<void> => {
    const { base, snapshot } = check;
    const [records, collections] = [apiKeyKey(base, ''), collectionKey(base, '')];
    const generation = generationOf(base, key);
    const [, bucket] = key.slice(base.length).split(':');
    if (generation !== undefined && generation !== snapshot.index) {
      const seen: Generations = otherGenerations.get(check) ?? new Map<string, number>();
      seen.set(generation, Math.max(seen.get(generation) ?? 0, Number(bucket ?? 0) + 1));
      otherGenerations.set(check, seen);
    } else if (generation !== undefined && bucket !== undefined) {
      await checkBucket(check, bucket);
    } else if (key.startsWith(records)) {
      await checkKeyRecord(check, key.slice(records.length));
    } else if (key.startsWith(collections)) {
      await checkCollection(check, key.slice(collections.length));
    }
  };

  return {
    begin,
    examine: async (keys) => {
      for (const [base, own] of byBase(prefix, keys)) {
        const check = await checkOf(base);
        if (check === undefined) continue;
        const profiles = profileKey(base, '');
        const users = own.filter((key) => key.startsWith(profiles)).map((key) => key.slice(profiles.length));
        await checkProfiles(check, users);
        for await (const chunk of yieldingChunks(own, atOnce)) {
          await Promise.all(chunk.map((key) => examineKey(check, key)));
        }
      }
    },
    end: async () => {
      for (const [check, generations] of otherGenerations) await checkGenerations(check, generations);
      return { counts, loading: [...loading] };
    },
  };
}

/** A generation that is neither in force nor being built was left behind by a rebuild that died. */
async function checkGenerations({ store, base, report }: Check, generations: Generations): Promise<void> {
  for (const [generation, buckets] of generations) {
    const { index } = await readWriteSnapshot(store, base);
    if (generation === index || (await store.exists(rebuildKey(base))) === 1) continue;
    const detail = `generation ${generation} of the name index is neither in force nor being built`;
    await report('generation-left-over', detail, async () =>
      (await dropGeneration(store, base, generation, buckets)) ? 'repaired' : 'changed',
    );
  }
}

function byBase(prefix: string, keys: readonly string[]): Map<string, string[]> {
  const endOfBase = (key: string): number => key.indexOf('}:', prefix.length) + 2;
  const ofOrganizations = keys.filter((key) => endOfBase(key) > 1);
  return groupBy(ofOrganizations, (key) => key.slice(0, endOfBase(key)));
}
