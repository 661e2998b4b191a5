import { encodeReference } from '../domain/objects.ts';
import type { Crosscheck, Side } from './crosscheck.ts';
import type { Item } from './chunks.ts';
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

/** One key that a record brings to a check. */
export interface Fact {
  check: Crosscheck;
  side: Side;
  key: string;
}

/** What tells a record from others of its entity and organization. */
export function identityOf<E extends Entity>(
  entity: E,
  record: RecordOf[E],
  organization: Organization,
): string {
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

/** All that a record brings to the checks. */
export function factsOf<E extends Entity>(
  checks: Checks,
  entity: E,
  { record }: Item<E>,
  organization: Organization,
): Fact[] {
  const key = identityOf(entity, record, organization);
  const facts: Fact[] = [{ check: checks.identity[entity], side: 'a', key }];
  if (entity === 'api-keys' || entity === 'collections') {
    const { userId } = record as RecordOf['api-keys'];
    if (userId !== undefined) facts.push({ check: checks.users, side: 'b', key: userId });
  } else if (entity === 'objects') {
    facts.push({ check: checks.objects, side: 'a', key });
  } else if (entity === 'denylist') {
    facts.push({ check: checks.denied, side: 'a', key });
  } else if (entity === 'profiles') {
    const profile = record as RecordOf['profiles'];
    facts.push({ check: checks.users, side: 'a', key });
    if (profile.username !== undefined) {
      const form = formIn(organization, profile.username);
      facts.push(
        { check: checks.names, side: 'a', key: form },
        { check: checks.denied, side: 'b', key: form },
      );
    }
    if (organization.settings.objectImageUrlTemplate === undefined) {
      for (const reference of unresolvedIn(profile)) {
        facts.push({ check: checks.objects, side: 'b', key: reference });
      }
    }
  }
  return facts;
}

/** The references whose URL only the catalogue can tell. */
function unresolvedIn(profile: RecordOf['profiles']): string[] {
  const references: string[] = [];
  const picture = profile.profilePictureObjectDefinitionId;
  if (picture !== undefined && profile.profilePictureUrl === undefined)
    references.push(encodeReference(picture));
  if (profile.avatar !== undefined && profile.avatar.url === undefined) {
    references.push(encodeReference(profile.avatar));
  }
  return references;
}
