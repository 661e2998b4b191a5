import { Option } from 'commander';
import { formatInstant } from '../../lib/iso8601.ts';
import {
  createApiKey,
  listApiKeys,
  revokeApiKey,
  type ApiKeyRecord,
  type NewApiKey,
} from '../../redis/operator/api-keys.ts';
import { shellWord, table } from '../../lib/system/terminal.ts';
import { adminCommand, parseId } from '../command-line.ts';
import type { AdminCommand, AdminContext } from './context.ts';
import { done, problem, type CommandResult } from '../tool.ts';
import { warnOfLegacy } from './legacy.ts';
import { organizationOption, parseFutureInstant } from './options.ts';

interface CreateOptions {
  org: string;
  role: NewApiKey['role'];
  user?: string;
  client?: string;
  expires?: number;
}

/** `admin key …`: API keys. */
export function addKey(program: AdminCommand): void {
  const group = program
    .command('key')
    .description('manage API keys')
    .examples('key create --org acme --role player --user u-1', 'key list --org acme');
  group
    .command('create')
    .description('create an API key and print it; it cannot be shown again')
    .requiredOption(...organizationOption)
    .addOption(
      new Option(
        '--role <role>',
        "player: operations on the profile of the key's own user; admin: operations on the denylist",
      )
        .choices(['player', 'admin'])
        .makeOptionMandatory(),
    )
    .option('--user <user>', 'the user the key acts for', parseId)
    .option('--client <label>', 'what uses the key, such as ios-4.2, for reports', parseId)
    .option('--expires <time>', 'when the key expires, ISO 8601', parseFutureInstant)
    .examples(
      'key create --org acme --role player --user u-1 --client ios-4.2',
      'key create --org acme --role admin --expires 2027-01-31T12:00:00Z --json',
    )
    .runs(createKey);
  group
    .command('list')
    .description('list the API keys of an organization, by their public ids')
    .requiredOption(...organizationOption)
    .examples('key list --org acme', 'key list --org acme --json')
    .runs(listKeys);
  group
    .command('revoke')
    .description(
      'revoke an API key: it is refused from the next request on; in shadow and mirror, it works until the legacy service refuses it, too',
    )
    .argument('<key-id>', 'public id, as shown by key list', parseId)
    .requiredOption(...organizationOption)
    .examples('key revoke --org acme k_0123456789abcdef')
    .runs(revokeKey);
}

async function createKey(
  context: AdminContext,
  { org, role, user, client, expires }: CreateOptions,
): Promise<CommandResult> {
  const { store, base } = await context.existingOrganization(org);
  const key = { role, userId: user, client, expiresAt: expires };
  // Before it is created: a key must not be lost because the mode cannot be read.
  await warnOfLegacy(context, 'it refuses the key, and changes made with it, until it has the key as well');
  const { apiKey, keyId } = await createApiKey(store, base, key);
  const text = `${apiKey}\n\nKey ${keyId}. The key itself is not stored and cannot be shown again.`;
  const note = '\nIt acts for no user, so profile requests with it are refused: create one with --user.';
  return {
    ...done({ apiKey, keyId }, role === 'player' && user === undefined ? text + note : text),
    ifLost: `key ${keyId} was created, but could not be shown: revoke it with ${adminCommand} key revoke --org ${shellWord(org)} ${keyId}, then create another one`,
  };
}

async function listKeys(context: AdminContext, { org }: { org: string }): Promise<CommandResult> {
  const { store, base } = await context.existingOrganization(org);
  const keys = (await listApiKeys(store, base)).map(describeKey);
  if (keys.length === 0) {
    return done([], `${org} has no API keys: create one with ${adminCommand} key create.`);
  }
  const rows = keys.map((k) => [k.keyId, k.role, k.userId, k.client, k.createdAt, k.expiresAt, k.state]);
  return done(keys, table(['key', 'role', 'user', 'client', 'created', 'expires', 'state'], rows));
}

function describeKey({ keyId, role, userId, client, createdAt, expiresAt, revokedAt }: ApiKeyRecord) {
  const isExpired = expiresAt !== undefined && expiresAt <= Date.now();
  const instant = (ms: number | undefined) => (ms === undefined ? undefined : formatInstant(ms));
  return {
    keyId,
    role,
    userId,
    client,
    createdAt: formatInstant(createdAt),
    expiresAt: instant(expiresAt),
    revokedAt: instant(revokedAt),
    state: revokedAt !== undefined ? 'revoked' : isExpired ? 'expired' : 'active',
  };
}

async function revokeKey(
  context: AdminContext,
  keyId: string,
  { org }: { org: string },
): Promise<CommandResult> {
  const { store, base } = await context.existingOrganization(org);
  const outcome = await revokeApiKey(store, base, keyId);
  if (outcome === 'unknown') {
    return problem(
      `${JSON.stringify(org)} has no key ${JSON.stringify(keyId)}: see ${adminCommand} key list for the public ids`,
    );
  }
  await warnOfLegacy(context, 'it accepts the key until it is revoked there as well');
  return done(
    { keyId, revoked: true },
    outcome === 'already' ? `Key ${keyId} was already revoked.` : `Key ${keyId} is revoked.`,
  );
}
