import { encodeReference } from '../../domain/objects.ts';
import type { Crosscheck, Side } from './crosscheck.ts';
import { normalizedIn, type Organization } from '../engine/organizations.ts';
import type { Entity, RecordOf } from '../records/records.ts';

/** The questions that records are crosschecked by. */
export interface Checks {
  /** Several records of one key; one check for each entity. */
  identity: Readonly<Record<Entity, Crosscheck>>;
  /** Usernames of several users. */
  names: Crosscheck;
  /** Usernames of profiles (b) that are denied (a). */
  denied: Crosscheck;
  /** Users referred to (b) without a profile (a). */
  users: Crosscheck;
}

/** Told one key that a record brings to a check, and perhaps to another one on the same or the other side. */
export type Visit = (
  key: string,
  check: Crosscheck,
  side: Side,
  other?: Crosscheck,
  otherSide?: Side,
) => void;

/** What tells a record from others of its entity and organization. */
export function identityOf(entity: Entity, record: RecordOf[Entity], organization: Organization): string {
  switch (entity) {
    case 'organizations':
      return '';
    case 'api-keys':
      return (record as RecordOf['api-keys']).apiKeySha256;
    case 'objects':
      return encodeReference(record as RecordOf['objects']);
    case 'collections': {
      const own = record as RecordOf['collections'];
      return `${own.userId}\u0003${encodeReference(own)}`;
    }
    case 'denylist':
      return normalizedIn(organization, (record as RecordOf['denylist']).username);
    case 'profiles':
      return (record as RecordOf['profiles']).userId;
    default:
      throw new TypeError(`no entity: ${String(entity satisfies never)}`);
  }
}

/** Tells all that a record brings to the checks. A visitor, for this runs for every record of the source. */
export function visitFacts(
  checks: Checks,
  entity: Entity,
  record: RecordOf[Entity],
  organization: Organization,
  visit: Visit,
): void {
  const key = identityOf(entity, record, organization);
  const identity = checks.identity[entity];
  if (entity === 'profiles') {
    visit(key, identity, 'a', checks.users, 'a');
    const { username } = record as RecordOf['profiles'];
    if (username !== undefined)
      visit(normalizedIn(organization, username), checks.names, 'a', checks.denied, 'b');
  } else if (entity === 'denylist') {
    visit(key, identity, 'a', checks.denied, 'a');
  } else {
    visit(key, identity, 'a');
    const { userId } = record as { userId?: string };
    if (userId !== undefined) visit(userId, checks.users, 'b');
  }
}

/** What is collected of a record for the judgement. */
export interface Collected {
  entity: Entity;
  where: string;
  userId?: string | undefined;
  username?: string | undefined;
  updatedAt?: number;
}
