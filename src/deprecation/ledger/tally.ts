import { dayOf } from '../../lib/days.ts';
import { getOrInsert } from '../../lib/collections/get-or-insert.ts';

/** An answered call of the contract. */
export interface Call {
  /** As the call's header claims; undefined if there is none. */
  organizationId?: string | undefined;
  /** The key's public id if the call was authenticated, which proves that the organization exists. */
  keyId?: string | undefined;
  /** Whether it came with a key that was not checked. */
  isUnchecked?: boolean;
  client?: string | undefined;
  operation: string;
  status: number;
  userAgent?: string | undefined;
}

/** Stands for the key of calls that were not authenticated. */
export const unattributedKey = '-';
/** Stands for keys that nobody has checked, as with a 410. */
export const uncheckedKey = '!';
/** Stands for the keys beyond the limit of one flush interval. */
export const moreKeys = '~';

/** Whether a call with this key id is known to come from a client. */
export function isAttributed(keyId: string): boolean {
  return keyId !== unattributedKey && keyId !== uncheckedKey;
}

/** Calls by first digit of the status; 0 if none was sent. */
type Counts = number[];

/** The calls of one operation with one key: the first and the last (ms), and counts by day. */
export interface Use {
  first: number;
  last: number;
  days: Map<number, Counts>;
}

/** The calls with one key, by operation. */
export interface KeyTally {
  client: string | undefined;
  uses: Map<string, Use>;
  /** User agent → last seen. */
  agents: Map<string, number>;
}

interface OrganizationTally {
  /** Whether an authenticated call proves that the organization exists. */
  isProven: boolean;
  keys: Map<string, KeyTally>;
}

export interface Counted {
  calls: number;
  /** By claimed organization; undefined for calls without one and for those beyond the limit. */
  organizations: Map<string | undefined, OrganizationTally>;
}

/** Limits of what one flush interval distinguishes. Calls beyond them are counted together, never dropped. */
export const tallyLimits = {
  unproven: 1000,
  organizationIdLength: 256,
  uses: 50_000,
  agents: 20,
  agentLength: 200,
};

/** Counts calls in memory. `isKnown` says whether a claimed organization is known to exist. */
export function createTally(isKnown: (organizationId: string) => boolean) {
  let calls = 0;
  let uses = 0;
  let unproven = 0;
  let organizations: Counted['organizations'] = new Map();

  const addOrganization = (claimed: string | undefined, isAuthenticated: boolean): OrganizationTally => {
    const isProven = claimed !== undefined && (isAuthenticated || isKnown(claimed));
    const tooMany =
      !isProven &&
      (unproven >= tallyLimits.unproven || (claimed?.length ?? 0) > tallyLimits.organizationIdLength);
    return getOrInsert(organizations, tooMany ? undefined : claimed, () => {
      if (!isProven) unproven += 1;
      return { isProven, keys: new Map() };
    });
  };

  const addKey = ({ keys }: OrganizationTally, keyId: string): KeyTally => {
    const countedAs = uses < tallyLimits.uses || !isAttributed(keyId) ? keyId : moreKeys;
    return getOrInsert(keys, countedAs, () => ({ client: undefined, uses: new Map(), agents: new Map() }));
  };

  return {
    /** Counts a call at `now` (ms): a few map lookups for a key already seen. */
    record: (call: Call, now: number): void => {
      const { organizationId, keyId, isUnchecked, client, operation, status, userAgent } = call;
      const isAuthenticated = keyId !== undefined;
      const organization =
        organizations.get(organizationId) ?? addOrganization(organizationId, isAuthenticated);
      if (isAuthenticated) organization.isProven = true;
      const countedKey = keyId ?? (isUnchecked ? uncheckedKey : unattributedKey);
      const key = organization.keys.get(countedKey) ?? addKey(organization, countedKey);
      if (client !== undefined) key.client = client;
      const use = getOrInsert(key.uses, operation, () => {
        uses += 1;
        return { first: now, last: now, days: new Map() };
      });
      use.first = Math.min(use.first, now);
      use.last = Math.max(use.last, now);
      const counts = getOrInsert(use.days, dayOf(now), () => [0, 0, 0, 0, 0, 0]);
      const digit = Math.floor(status / 100);
      const index = digit >= 1 && digit <= 5 ? digit : 0;
      counts[index] = (counts[index] ?? 0) + 1;
      calls += 1;
      if (userAgent !== undefined && userAgent !== '') {
        const agent = userAgent.slice(0, tallyLimits.agentLength);
        if (key.agents.size < tallyLimits.agents || key.agents.has(agent)) key.agents.set(agent, now);
      }
    },
    /** Returns what has been counted and starts over. */
    take: (): Counted => {
      const counted = { calls, organizations };
      organizations = new Map();
      calls = uses = unproven = 0;
      return counted;
    },
    calls: (): number => calls,
  };
}
