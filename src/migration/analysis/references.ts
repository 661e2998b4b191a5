import { encodeReference } from '../../domain/objects.ts';
import { createCrosscheck } from './crosscheck.ts';
import type { Found, Side } from './crosscheck.ts';
import type { Item } from '../sources/chunks.ts';
import type { Workspace } from './workspace.ts';
import { fingerprint } from './fingerprint.ts';
import type { Collected } from './facts.ts';
import type { Organization } from '../engine/organizations.ts';

/** References of profiles that only the catalogue can resolve, set against the catalogue. */
export interface References {
  addObject: (item: Item<'objects'>) => Promise<void>;
  addProfile: (item: Item<'profiles'>, organization: Organization) => Promise<void> | undefined;
  /** Each reference that is not in the source's catalogue, with the first profile that has it. */
  missing: () => AsyncGenerator<Found>;
}

/** References remembered, so that each is looked at once; beyond, one may be looked at again. */
const remembered = 200_000;

/** Many profiles share few objects, so that these are compared at once, in one reading. */
export function createReferences(workspace: Workspace): References {
  const check = createCrosscheck(workspace, 'missing');
  const seen = new Set<number>();
  const add = async (side: Side, id: string, key: string, item: Item, collected: unknown): Promise<void> => {
    await check.collect(side, id, key, item.seq, collected);
  };
  return {
    addObject: async (item) => {
      const { organizationId } = item.record;
      await add('a', organizationId, encodeReference(item.record), item, 0);
    },
    addProfile: (item, { settings }) => {
      const { record } = item;
      if (settings.objectImageUrlTemplate !== undefined) return undefined;
      const { profilePictureObjectDefinitionId: picture, avatar, organizationId } = record;
      const fresh: string[] = [];
      for (const [reference, url] of [
        [picture, record.profilePictureUrl],
        [avatar, avatar?.url],
      ] as const) {
        if (reference === undefined || url !== undefined) continue;
        const key = encodeReference(reference);
        const own = fingerprint(organizationId, key);
        if (seen.has(own)) continue;
        if (seen.size < remembered) seen.add(own);
        fresh.push(key);
      }
      return fresh.length === 0 ? undefined : addAll(item, fresh);
    },
    missing: async function* () {
      for await (const found of check.found()) if (found.isFirst) yield found;
    },
  };

  async function addAll(item: Item<'profiles'>, keys: readonly string[]): Promise<void> {
    const { organizationId, userId, username } = item.record;
    const collected: Collected = { entity: 'profiles', where: item.where(), userId, username };
    for (const key of keys) await add('b', organizationId, key, item, collected);
  }
}
