import { hashApiKey } from '../../redis/keys.ts';
import { defineShape, type RecordIn } from './shapes.ts';
import { count, flag, id, instant, oneOf, sha256, text, wallet, type Rule } from './values.ts';

// Hashed where it is read, so that no later step can show the plain key.
const hashedKey: Rule<string> = (value) => {
  const key = typeof value === 'number' ? id(value) : text(value);
  return typeof key === 'string' ? hashApiKey(key) : key;
};

const reference = { datasourceId: id, objectDefinitionId: id };

/**
 * What can be migrated, in the order in which it is shown; choose.ts has that of reading and writing. For each entity the
 * fields of its records, first those that every record has.
 */
export const shapes = {
  organizations: defineShape(
    { organizationId: id },
    {
      usernameMinLength: count,
      usernameMaxLength: count,
      usernamePattern: text,
      usernameComparison: oneOf('exact', 'case-insensitive'),
      objectImageUrlTemplate: text,
      requireOwnership: flag,
    },
  ),
  'api-keys': defineShape(
    { organizationId: id, role: oneOf('player', 'admin') },
    { apiKey: hashedKey, apiKeySha256: sha256, userId: id, client: id, expiresAt: instant },
  ),
  objects: defineShape({ organizationId: id, ...reference, url: text }, {}),
  collections: defineShape({ organizationId: id, userId: id, ...reference }, {}),
  profiles: defineShape(
    { organizationId: id, userId: id },
    {
      username: id,
      profilePictureUrl: text,
      profilePictureObjectDefinitionId: defineShape(reference, {}),
      avatar: defineShape(reference, { url: text }),
      evmWalletAddress: wallet,
      /** In a record it is there exactly when the address is. */
      evmWalletVerified: flag,
      updatedAt: instant,
    },
  ),
  denylist: defineShape({ organizationId: id, username: id }, {}),
};

type Shapes = typeof shapes;
export type Entity = keyof Shapes;
export const entityNames = Object.keys(shapes) as readonly Entity[];

/** Whether a word names an entity. */
export function isEntity(word: string): word is Entity {
  return Object.hasOwn(shapes, word);
}

/** The records. A key is known by its SHA-256 alone, in lower-case hexadecimal; instants are in epoch milliseconds. */
export type RecordOf = { [E in Exclude<Entity, 'api-keys'>]: RecordIn<Shapes[E]> } & {
  'api-keys': Omit<RecordIn<Shapes['api-keys']>, 'apiKey' | 'apiKeySha256'> & { apiKeySha256: string };
};
