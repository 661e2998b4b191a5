import { normalizedName } from '../../domain/usernames.ts';
import { encodeReference } from '../../domain/profile.ts';
import { type Organization } from '../engine/organizations.ts';
import type { Entity, RecordOf } from '../records/records.ts';

/** Identifies a record among those of its entity and organization. */
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
      return normalizedName((record as RecordOf['denylist']).username, organization.settings.comparison);
    case 'profiles':
      return (record as RecordOf['profiles']).userId;
    default:
      throw new TypeError(`no entity: ${String(entity satisfies never)}`);
  }
}

/** An entity of an organization, as the place in which identities are looked up. */
export function namespaceOf(entity: Entity, organizationId: string): string {
  return `${entity} ${organizationId}`;
}
