import { encodeReference } from '../domain/objects.ts';
import type { Crosscheck, Side } from './crosscheck.ts';
import { formIn, type Organization } from './organizations.ts';
import type { Entity, RecordOf } from './records.ts';

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
  /** Objects referred to by profiles (b) that are not in the catalogue (a). */
  objects: Crosscheck;
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
      return formIn(organization, (record as RecordOf['denylist']).username);
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
    visitProfile(checks, record as RecordOf['profiles'], organization, visit);
  } else if (entity === 'objects') {
    visit(key, identity, 'a', checks.objects, 'a');
  } else if (entity === 'denylist') {
    visit(key, identity, 'a', checks.denied, 'a');
  } else {
    visit(key, identity, 'a');
    const user = entity === 'organizations' ? undefined : (record as RecordOf['api-keys']).userId;
    if (user !== undefined) visit(user, checks.users, 'b');
  }
}

function visitProfile(
  checks: Checks,
  profile: RecordOf['profiles'],
  organization: Organization,
  visit: Visit,
): void {
  if (profile.username !== undefined) {
    visit(formIn(organization, profile.username), checks.names, 'a', checks.denied, 'b');
  }
  if (organization.settings.objectImageUrlTemplate !== undefined) return;
  // Where neither the record nor a template has a URL, only the catalogue can tell it.
  const picture = profile.profilePictureObjectDefinitionId;
  if (picture !== undefined && profile.profilePictureUrl === undefined) {
    visit(encodeReference(picture), checks.objects, 'b');
  }
  if (profile.avatar !== undefined && profile.avatar.url === undefined) {
    visit(encodeReference(profile.avatar), checks.objects, 'b');
  }
}

/** What is collected of a record for the judgement. */
export interface Collected {
  entity: Entity;
  where: string;
  userId?: string;
  username?: string;
  updatedAt?: number;
}
