import type { OrganizationSettings } from '../../domain/settings.ts';
import { normalizedName } from '../../domain/usernames.ts';
import { groupBy } from '../../lib/collections/group-by.ts';
import { organizationBase, settingsKey } from '../../redis/keys.ts';
import { readWriteSnapshot } from '../../redis/changes.ts';
import type { RedisClient } from '../../redis/connection/client.ts';

/** What a record is checked against: its organization as it is in Redis, or will be once the source's is written. */
export interface Organization {
  readonly id: string;
  readonly base: string;
  /** Its position among those encountered. */
  readonly number: number;
  /** Whether it is in Redis. */
  exists: boolean;
  /** The generation of the name index in force. */
  index: string;
  /** The one that was in force when it was first looked up. */
  readonly firstIndex: string;
  settings: OrganizationSettings;
  /** Usernames that the source has for it, as far as it was read. */
  namesToCome: number;
  /** Usernames that the source and Redis agree on, profile and index: as many different entries of the index. */
  namesFound: number;
  /** Whether Redis or the source describes it, or it was reported that neither does. */
  isKnown: boolean;
  /** Whether this run is loading it: nobody else can reach it yet. */
  isLoading: boolean;
}

/** A username as the organization compares it; '' for none. */
export function normalizedIn({ settings }: Organization, username = ''): string {
  return normalizedName(username, settings.comparison);
}

export type Organizations = ReturnType<typeof createOrganizations>;

/** The organizations that a migration deals with. */
export function createOrganizations(store: RedisClient, prefix: string) {
  const known = new Map<string, Organization>();

  const look = async (id: string): Promise<Organization> => {
    const base = organizationBase(prefix, id);
    const [{ settings, index }, found] = await Promise.all([
      readWriteSnapshot(store, base),
      store.exists(settingsKey(base)),
    ]);
    const exists = found === 1;
    const own = {
      id,
      base,
      number: known.size,
      firstIndex: index,
      settings,
      namesToCome: 0,
      namesFound: 0,
      isKnown: exists,
      isLoading: false,
    };
    const organization = Object.assign(known.get(id) ?? own, { exists, index, ...(exists && { settings }) });
    known.set(id, organization);
    return organization;
  };

  return {
    /** Looked up once. */
    find: (id: string): Organization | Promise<Organization> => known.get(id) ?? look(id),
    /** Looked up again: its comparison may have changed. */
    refresh: look,
    /** Records what the source says about it; what Redis has stays in force. */
    plan: async (id: string, settings: OrganizationSettings): Promise<void> => {
      const organization = known.get(id) ?? (await look(id));
      organization.isKnown = true;
      if (!organization.exists) organization.settings = settings;
    },
    /** Those encountered so far. */
    all: (): readonly Organization[] => [...known.values()],
  };
}

/** Handles the records of one organization after the other; the results are in the order of the items. */
export async function byOrganization<R extends { organizationId: string }, Result>(
  items: readonly { readonly record: R }[],
  organizations: Organizations,
  work: (organization: Organization, records: readonly R[]) => Promise<readonly Result[]>,
): Promise<Result[]> {
  const results: Result[] = [];
  const places = items.map(({ record }, position) => ({ record, position }));
  for (const [id, own] of groupBy(places, ({ record }) => record.organizationId)) {
    const records = own.map(({ record }) => record);
    const found = await work(await organizations.find(id), records);
    for (const [at, { position }] of own.entries()) results[position] = found[at] as Result;
  }
  return results;
}
