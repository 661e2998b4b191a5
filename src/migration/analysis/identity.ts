import { encodeReference } from '../../domain/profile.ts';
import { normalizedIn, type Organization } from '../context/organizations.ts';
import type { Entity, RecordOf } from '../records/records.ts';

const identities: { readonly [E in Entity]: (record: RecordOf[E], organization: Organization) => string } = {
  organizations: () => '',
  'api-keys': ({ apiKeySha256 }) => apiKeySha256,
  objects: encodeReference,
  collections: (record) => collectionIdentity(record.userId, encodeReference(record)),
  profiles: ({ userId }) => userId,
  denylist: ({ username }, organization) => normalizedIn(organization, username),
};

/** Identifies a record among those of its entity and organization. */
export function identityOf<E extends Entity>(
  entity: E,
  record: RecordOf[E],
  organization: Organization,
): string {
  return identities[entity](record, organization);
}

// No id holds a control character.
const userEnd = '\u0003';

/** The identity of a collection's record: its user and its encoded reference. */
export function collectionIdentity(userId: string, reference: string): string {
  return userId + userEnd + reference;
}

/** The user and the encoded reference that are in such an identity. */
export function splitCollectionIdentity(identity: string): [userId: string, reference: string] {
  const [userId = '', reference = ''] = identity.split(userEnd);
  return [userId, reference];
}

/** What an identity is unique in: the records of an entity and organization. */
export function namespaceOf(entity: Entity, organizationId: string): string {
  return `${entity} ${organizationId}`;
}
