import { createHash } from 'node:crypto';
import { expect } from '@jest/globals';
import type { Entity } from '../../../../src/migration/records/records.ts';
import type { Source } from '../../../../src/migration/sources/source.ts';
import { readRecords } from '../reading.ts';

/** How a database spells what its dialect decides. */
interface Spelling {
  moment: string;
  json: string;
  /** Follows a literal moment; moments without one are UTC. */
  zone: '' | '+02:00';
}

/** The legacy schema of the worked examples, with a few rows. */
function legacyTables({ moment, json, zone }: Spelling): string[] {
  const changed = zone === '' ? "'2026-01-02 03:04:05.678'" : `'2026-01-02 05:04:05.678${zone}'`;
  return [
    `CREATE TABLE organizations (id varchar(50) PRIMARY KEY, name_min int, name_max int, ignore_case boolean NOT NULL)`,
    `INSERT INTO organizations VALUES ('acme', 3, 20, true), ('zeta', NULL, NULL, false)`,
    `CREATE TABLE api_keys (id int PRIMARY KEY, organization_id varchar(50) NOT NULL, secret varchar(100) NOT NULL, is_admin boolean NOT NULL, user_id bigint NULL, label varchar(50) NULL, expires_at ${moment} NULL, revoked_at ${moment} NULL)`,
    `INSERT INTO api_keys VALUES (1, 'acme', 'legacy-key-1', false, 7, 'ios-4.2', ${changed}, NULL), (2, 'acme', 'legacy-key-2', true, NULL, NULL, NULL, NULL), (3, 'acme', 'legacy-key-3', false, 8, NULL, NULL, ${changed})`,
    `CREATE TABLE images (id int PRIMARY KEY, organization_id varchar(50) NOT NULL, datasource_id varchar(50) NOT NULL, definition_id varchar(50) NOT NULL, image_url varchar(200) NOT NULL)`,
    `INSERT INTO images VALUES (1, 'acme', 'ds', 'hat', 'https://cdn.example.com/hat.png')`,
    `CREATE TABLE owned_images (organization_id varchar(50) NOT NULL, user_id bigint NOT NULL, datasource_id varchar(50) NOT NULL, definition_id varchar(50) NOT NULL, acquired ${moment} NULL)`,
    `INSERT INTO owned_images VALUES ('acme', 7, 'ds', 'hat', NULL)`,
    `CREATE TABLE profiles (organization_id varchar(50) NOT NULL, user_id bigint NOT NULL, name varchar(50) NULL, picture_url varchar(200) NULL, avatar_id int NULL, picture_reference ${json} NULL, wallet varchar(50) NULL, wallet_verified boolean NULL, updated_at ${moment} NULL, PRIMARY KEY (organization_id, user_id))`,
    `INSERT INTO profiles VALUES ('acme', 7, 'Zoë', NULL, 1, '{"datasourceId": "ds", "objectDefinitionId": "hat"}', '0x52908400098527886E0F7030069857D2E4169EE7', true, ${changed}), ('acme', 9007199254740993, '', 'https://cdn.example.com/8.png', NULL, NULL, NULL, NULL, NULL)`,
    `CREATE TABLE banned_names (organization_id varchar(50) NOT NULL, name varchar(50) NOT NULL)`,
    `INSERT INTO banned_names VALUES ('acme', '__proto__')`,
  ];
}

/** The statements that make it, in MariaDB's dialect and in PostgreSQL's. */
export const LEGACY_TABLES = {
  mariadb: [
    "SET time_zone = '+00:00'",
    ...legacyTables({
      moment: 'timestamp(3)',
      json: 'json',
      zone: '',
    }),
  ],
  postgres: legacyTables({
    moment: 'timestamptz(3)',
    json: 'jsonb',
    zone: '+02:00',
  }),
};

const changedAt = Date.UTC(2026, 0, 2, 3, 4, 5, 678);
const sha256 = (key: string): string => createHash('sha256').update(key).digest('hex');
const hat = { datasourceId: 'ds', objectDefinitionId: 'hat' };

/** What the worked examples must read from those tables. */
const legacyRecords: Record<Entity, unknown[]> = {
  organizations: [
    {
      organizationId: 'acme',
      usernameMinLength: 3,
      usernameMaxLength: 20,
      usernameComparison: 'case-insensitive',
    },
    { organizationId: 'zeta', usernameComparison: 'exact' },
  ],
  'api-keys': [
    {
      organizationId: 'acme',
      apiKeySha256: sha256('legacy-key-1'),
      role: 'player',
      userId: '7',
      client: 'ios-4.2',
      expiresAt: changedAt,
    },
    { organizationId: 'acme', apiKeySha256: sha256('legacy-key-2'), role: 'admin' },
  ],
  objects: [{ organizationId: 'acme', ...hat, url: 'https://cdn.example.com/hat.png' }],
  collections: [{ organizationId: 'acme', userId: '7', ...hat }],
  profiles: [
    {
      organizationId: 'acme',
      userId: '7',
      username: 'Zoë',
      avatar: { ...hat, url: 'https://cdn.example.com/hat.png' },
      profilePictureObjectDefinitionId: hat,
      evmWalletAddress: '0x52908400098527886E0F7030069857D2E4169EE7',
      evmWalletVerified: true,
      updatedAt: changedAt,
    },
    {
      organizationId: 'acme',
      userId: '9007199254740993',
      profilePictureUrl: 'https://cdn.example.com/8.png',
    },
  ],
  denylist: [{ organizationId: 'acme', username: '__proto__' }],
};

/** Expects a source to give exactly those, and to tell no password. */
export async function expectLegacyRecords(source: Source): Promise<void> {
  for (const entity of source.entities) {
    expect({ [entity]: await readRecords(source, entity) }).toEqual({ [entity]: legacyRecords[entity] });
  }
  expect(source.entities).toHaveLength(6);
  expect(source.name).not.toContain('secret');
}
