import { dayOf } from '../../lib/days.ts';

/** An answered call of the contract. */
export interface Call {
  /** As the call's header claims; undefined if there is none. */
  organizationId?: string | undefined;
  /** Public id of the key, only if the call was authenticated: this proves that the organization exists. */
  keyId?: string | undefined;
  client?: string | undefined;
  operation: string;
  status: number;
  userAgent?: string | undefined;
}

/** In place of the key of calls that were not authenticated. */
export const unattributedKey = '-';
/** In place of the keys beyond the limit of one flush interval. */
export const moreKeys = '~';

/** Calls by first digit of the status; 0 if none was sent. */
type Counts = number[];

export interface Use {
  first: number;
  last: number;
  days: Map<number, Counts>;
  /** The entry of `days` last written to. */
  day: number;
  counts: Counts;
}

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

export interface Tally {
  /** Counts a call at `now` (ms): a few map lookups, without allocation for a key already seen. */
  record: (call: Call, now: number) => void;
  /** Returns what has been counted and starts over. */
  take: () => Counted;
  calls: () => number;
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
export function createTally(isKnown: (organizationId: string) => boolean): Tally {
  let calls = 0;
  let uses = 0;
  let unproven = 0;
  let organizations = new Map<string | undefined, OrganizationTally>();

  const addOrganization = (claimed: string | undefined, isAuthenticated: boolean): OrganizationTally => {
    const isProven = claimed !== undefined && (isAuthenticated || isKnown(claimed));
    const tooMany =
      !isProven &&
      (unproven >= tallyLimits.unproven || (claimed?.length ?? 0) > tallyLimits.organizationIdLength);
    const organizationId = tooMany ? undefined : claimed;
    let organization = organizations.get(organizationId);
    if (organization === undefined) {
      organization = { isProven, keys: new Map() };
      organizations.set(organizationId, organization);
      if (!isProven) unproven += 1;
    }
    return organization;
  };

  const addKey = (organization: OrganizationTally, keyId: string): KeyTally => {
    const countedAs = uses < tallyLimits.uses || keyId === unattributedKey ? keyId : moreKeys;
    let key = organization.keys.get(countedAs);
    if (key === undefined) {
      key = { client: undefined, uses: new Map(), agents: new Map() };
      organization.keys.set(countedAs, key);
    }
    return key;
  };

  return {
    record: (call, now) => {
      const isAuthenticated = call.keyId !== undefined;
      const organization =
        organizations.get(call.organizationId) ?? addOrganization(call.organizationId, isAuthenticated);
      if (isAuthenticated) organization.isProven = true;
      const keyId = call.keyId ?? unattributedKey;
      const key = organization.keys.get(keyId) ?? addKey(organization, keyId);
      if (call.client !== undefined) key.client = call.client;
      const day = dayOf(now);
      let use = key.uses.get(call.operation);
      if (use === undefined) {
        const counts = noCalls();
        use = { first: now, last: now, days: new Map([[day, counts]]), day, counts };
        key.uses.set(call.operation, use);
        uses += 1;
      } else if (use.day !== day) {
        use.counts = use.days.get(day) ?? noCalls();
        use.days.set(day, use.counts);
        use.day = day;
      }
      if (now > use.last) use.last = now;
      if (now < use.first) use.first = now;
      const digit = Math.floor(call.status / 100);
      const index = digit >= 1 && digit <= 5 ? digit : 0;
      use.counts[index] = (use.counts[index] ?? 0) + 1;
      calls += 1;
      if (call.userAgent !== undefined && call.userAgent !== '') {
        const agent = call.userAgent.slice(0, tallyLimits.agentLength);
        if (key.agents.size < tallyLimits.agents || key.agents.has(agent)) key.agents.set(agent, now);
      }
    },
    take: () => {
      const counted = { calls, organizations };
      organizations = new Map();
      calls = uses = unproven = 0;
      return counted;
    },
    calls: () => calls,
  };
}

function noCalls(): Counts {
  return [0, 0, 0, 0, 0, 0];
}
