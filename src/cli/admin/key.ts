import { Command, Option } from 'commander';
import { formatInstant } from '../../lib/iso8601.ts';
import {
  createApiKey,
  listApiKeys,
  revokeApiKey,
  type ApiKeyRecord,
  type NewApiKey,
} from '../../redis/operator/api-keys.ts';
import { printable, table } from '../../lib/system/terminal.ts';
import { action, problem, UnknownOrganizationError, type AdminContext, type Report } from './context.ts';
import {
  addExamples,
  idOption,
  organizationOption,
  parseFutureInstant,
  parseId,
  withExamples,
} from './options.ts';

interface CreateOptions {
  org: string;
  role: NewApiKey['role'];
  user?: string;
  client?: string;
  expires?: number;
}

/** `admin key …`: API keys. */
export function keyCommand(context: AdminContext): Command {
  const group = new Command('key').description('API keys');

  const create = group
    .command('create')
    .description('creates an API key and prints it; it cannot be shown again')
    .addOption(organizationOption())
    .addOption(
      new Option('--role <role>', 'player: operations on the own profile; admin: operations on the denylist')
        .choices(['player', 'admin'])
        .makeOptionMandatory(),
    )
    .addOption(idOption('--user <user>', 'the user the key acts for'))
    .addOption(idOption('--client <label>', 'what uses the key, such as ios-4.2, for reports'))
    .option('--expires <time>', 'when the key expires, ISO 8601', parseFutureInstant)
    .action(action(context, createKey));
  withExamples(create, [
    'key create --org acme --role player --user u-1 --client ios-4.2',
    'key create --org acme --role admin --expires 2027-01-31T12:00:00Z --json',
  ]);

  const all = group
    .command('list')
    .description('lists the API keys of an organization, by their public ids')
    .addOption(organizationOption())
    .action(action(context, listKeys));
  withExamples(all, ['key list --org acme', 'key list --org acme --json']);

  const revoke = group
    .command('revoke')
    .description('revokes an API key; the next request with it is refused')
    .argument('<key-id>', 'public id, as shown by key list', parseId)
    .addOption(organizationOption())
    .action(action(context, revokeKey));
  withExamples(revoke, ['key revoke --org acme k_0123456789abcdef']);

  return addExamples(group, ['key create --org acme --role player --user u-1', 'key list --org acme']);
}

async function createKey(
  context: AdminContext,
  { org, role, user, client, expires }: CreateOptions,
): Promise<Report> {
  const { store, base } = await context.organization(org);
  const created = await createApiKey(store, base, { role, userId: user, client, expiresAt: expires });
  if (created.kind === 'unknown-organization') throw new UnknownOrganizationError(org);
  const { apiKey, keyId } = created;
  const notes = [
    `Key ${keyId}. The key itself is not stored and cannot be shown again.`,
    ...(role === 'player' && user === undefined
      ? ['It acts for no user, so profile requests with it are refused: create one with --user.']
      : []),
  ];
  return { kind: 'done', json: { apiKey, keyId }, text: `${apiKey}\n\n${notes.join('\n')}` };
}

async function listKeys(context: AdminContext, { org }: { org: string }): Promise<Report> {
  const { store, base } = await context.existingOrganization(org);
  const keys = (await listApiKeys(store, base)).map(describeKey);
  if (keys.length === 0) {
    return { kind: 'done', json: [], text: `${printable(org)} has no API keys: create one with key create.` };
  }
  const rows = keys.map((key) => [
    key.keyId,
    key.role,
    key.userId,
    key.client,
    key.createdAt,
    key.expiresAt,
    key.state,
  ]);
  return {
    kind: 'done',
    json: keys,
    text: table(['KEY', 'ROLE', 'USER', 'CLIENT', 'CREATED', 'EXPIRES', 'STATE'], rows),
  };
}

function describeKey({ keyId, role, userId, client, createdAt, expiresAt, revokedAt }: ApiKeyRecord) {
  const expired = expiresAt !== undefined && expiresAt <= Date.now();
  return {
    keyId,
    role,
    userId,
    client,
    createdAt: formatInstant(createdAt),
    expiresAt: expiresAt === undefined ? undefined : formatInstant(expiresAt),
    revokedAt: revokedAt === undefined ? undefined : formatInstant(revokedAt),
    state: revokedAt !== undefined ? 'revoked' : expired ? 'expired' : 'active',
  };
}

async function revokeKey(context: AdminContext, keyId: string, { org }: { org: string }): Promise<Report> {
  const { store, base } = await context.existingOrganization(org);
  const outcome = await revokeApiKey(store, base, keyId);
  if (outcome === 'unknown') {
    return problem(
      `${JSON.stringify(org)} has no key ${JSON.stringify(keyId)}: see key list for the public ids`,
    );
  }
  return {
    kind: 'done',
    json: { keyId, revoked: true },
    text: outcome === 'already' ? `Key ${keyId} was already revoked.` : `Key ${keyId} is revoked.`,
  };
}
