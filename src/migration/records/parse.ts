import { settingsFaults } from '../../domain/settings.ts';
import { shapes, type Entity, type RecordOf } from './records.ts';
import { organizationSettings } from './stored.ts';
import type { Fields, Shape } from './shapes.ts';
import { id, InvalidValue, secondsEnd } from './values.ts';

/** A record in its stored form, or why the row is invalid. Neither ever holds an API key's plain text. */
export type Parsed<E extends Entity = Entity> =
  | { readonly ok: true; readonly record: RecordOf[E]; readonly warnings?: readonly string[] }
  | { readonly ok: false; readonly reason: string };

/**
 * Reads one row of a source as a record of the entity; the row is used up. Absent, null and "" are the same: none. Nested
 * fields may come as an object, as JSON text, or one by one under dotted names. Unknown fields are refused by name.
 */
export function parseRecord<E extends Entity>(entity: E, raw: Fields): Parsed<E> {
  const { apiKey, organizationId, username } = raw;
  const warnings: string[] = [];
  // HTTP drops white space around the value of a header, and allows no control characters in it.
  if (entity === 'organizations' && typeof organizationId === 'string' && /^ | $/.test(organizationId))
    warnings.push('organizationId has a space at an end: no request can name it');
  if (typeof apiKey === 'string' && /^\s|\s$|\p{Cc}/u.test(apiKey))
    warnings.push('apiKey has a control character, or white space at an end: no client can send it');
  if (typeof username === 'number')
    warnings.push(
      'username is a number, and taken as its digits: it is another name if zeros stood before them',
    );
  const record = (shapes[entity] as Shape<Fields>).read(raw);
  if (record instanceof InvalidValue) return { ok: false, reason: record.reason };
  const refusal = finish(entity, record, warnings);
  if (refusal !== undefined) return { ok: false, reason: refusal };
  const finished = record as unknown as RecordOf[E];
  return warnings.length === 0 ? { ok: true, record: finished } : { ok: true, record: finished, warnings };
}

const identifying = ['organizationId', 'userId', 'username'] as const;

/** The names that identify a record in issues, if the row has them. */
export type RecordNames = { [Name in (typeof identifying)[number]]?: string | undefined };

/** The valid names in a row that is not a valid record. */
export function namesIn(raw: Fields): RecordNames {
  const names: RecordNames = {};
  for (const field of identifying) {
    const name = id(raw[field]);
    if (typeof name === 'string') names[field] = name;
  }
  return names;
}

/** The fields without which no row of the entity can be a record; of the names in one group, one is enough. */
export function requiredFields(entity: Entity): readonly (readonly string[])[] {
  const groups: string[][] = shapes[entity].required.map((field) => [field]);
  if (entity === 'api-keys') groups.push(['apiKey', 'apiKeySha256']);
  return groups;
}

/** The first of those that is not among these names; undefined if none is missing. */
export function missingField(entity: Entity, names: readonly string[]): string | undefined {
  const missing = requiredFields(entity).find((group) => !group.some((field) => names.includes(field)));
  return missing?.join(' or ');
}

/** The rules that bind several fields together; gives the reason of a refusal. */
function finish(entity: Entity, record: Fields, warnings: string[]): string | undefined {
  if (entity === 'profiles') finishProfile(record, warnings);
  else if (entity === 'api-keys') return finishApiKey(record, warnings);
  else if (entity === 'organizations')
    return (
      settingsFaults(organizationSettings(record as unknown as RecordOf['organizations'])).join('; ') ||
      undefined
    );
  return undefined;
}

function finishProfile(record: Partial<RecordOf['profiles']>, warnings: string[]): void {
  if (record.evmWalletAddress !== undefined) {
    record.evmWalletVerified ??= false;
  } else {
    if (record.evmWalletVerified === true)
      warnings.push('evmWalletVerified is given without evmWalletAddress');
    if ('evmWalletVerified' in record) delete record.evmWalletVerified;
  }
  const { updatedAt } = record;
  if (updatedAt !== undefined && updatedAt > 0 && updatedAt < secondsEnd) {
    warnings.push(
      'updatedAt is before 1974: give ISO 8601 with a zone, or milliseconds (not seconds, not YYYYMMDD)',
    );
  }
}

function finishApiKey(record: Fields, warnings: string[]): string | undefined {
  const { apiKey, apiKeySha256, expiresAt } = record;
  if (typeof expiresAt === 'number' && expiresAt < secondsEnd) {
    warnings.push(
      'expiresAt is before 1974: the key has expired; leave it empty for never, and give milliseconds, not seconds',
    );
  }
  if (apiKey === undefined && apiKeySha256 === undefined) return 'apiKey or apiKeySha256 is missing';
  if (apiKey === undefined) return undefined;
  if (apiKeySha256 !== undefined && apiKeySha256 !== apiKey)
    return 'apiKeySha256 is not the SHA-256 of apiKey';
  record['apiKeySha256'] = apiKey;
  delete record['apiKey'];
  return undefined;
}
