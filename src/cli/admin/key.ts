import { Command, Option } from 'commander';
import { formatInstant } from '../../lib/iso8601.ts';
import {
  createApiKey,
  listApiKeys,
  revokeApiKey,
  type ApiKeyRecord,
  type NewApiKey,
} from '../../redis/api-keys/api-keys.ts';
import { findSettings } from '../../redis/organizations.ts';
import { unknownOrganization, type AdminContext, type Report } from './context.ts';
import {
  addExamples,
  idOption,
  organizationOption,
  parseFutureInstant,
  parseId,
  withExamples,
} from './options.ts';
import { printable, table } from '../../lib/system/terminal.ts';

interface KeyOptions {
  org: string;
  json?: boolean;
}

interface CreateOptions extends KeyOptions {
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
    .description('makes an API key and prints it, this once')
    .addOption(organizationOption())
    .addOption(
      new Option('--role <role>', 'what the key may do: its own profile, or the denylist')
        .choices(['player', 'admin'])
        .makeOptionMandatory(),
    )
    .addOption(idOption('--user <user>', 'the user the key acts for'))
    .addOption(idOption('--client <label>', 'what uses the key, such as ios-4.2, for reports'))
    .option('--expires <time>', 'when it stops working, ISO 8601', parseFutureInstant)
    .action(async (options: CreateOptions) => {
      context.finish(await createKey(context, options), options);
    });
  withExamples(create, [
    'key create --org acme --role player --user u-1 --client ios-4.2',
    'key create --org acme --role admin --expires 2027-01-31T12:00:00Z --json',
  ]);

  const all = group
    .command('list')
    .description('all keys of an organization; never the keys themselves')
    .addOption(organizationOption())
    .action(async (options: KeyOptions) => {
      context.finish(await listKeys(context, options.org), options);
    });
  withExamples(all, ['key list --org acme', 'key list --org acme --json']);

  const revoke = group
    .command('revoke')
    .description('stops a key from working, from the very next request on')
    .argument('<key-id>', 'public id, as key list shows it', parseId)
    .addOption(organizationOption())
    .action(async (keyId: string, options: KeyOptions) => {
      context.finish(await revokeKey(context, options.org, keyId), options);
    });
  withExamples(revoke, ['key revoke --org acme k_0123456789abcdef']);

  return addExamples(group, ['key create --org acme --role player --user u-1', 'key list --org acme']);
}

async function createKey(context: AdminContext, options: CreateOptions): Promise<Report> {
  const { org, role, user, client, expires } = options;
  const { store, base } = await context.organization(org);
  const made = await createApiKey(store, base, { role, userId: user, client, expiresAt: expires });
  if (made.kind === 'unknown-organization') return unknownOrganization(org);
  const { apiKey, keyId } = made;
  const notes = [
    `Key ${keyId}. The key itself is not stored and cannot be shown again.`,
    ...(role === 'player' && user === undefined
      ? ['It acts for no user, so profile requests with it are refused: make one with --user.']
      : []),
  ];
  return { kind: 'done', json: { apiKey, keyId }, text: `${apiKey}\n\n${notes.join('\n')}` };
}

async function listKeys(context: AdminContext, org: string): Promise<Report> {
  const { store, base } = await context.organization(org);
  if ((await findSettings(store, context.config().keyPrefix, org)) === undefined) {
    return unknownOrganization(org);
  }
  const keys = (await listApiKeys(store, base)).map(describeKey);
  const rows = keys.map(({ keyId, role, userId, client, createdAt, expiresAt, state }) => [
    keyId,
    role,
    userId,
    client,
    createdAt,
    expiresAt,
    state,
  ]);
  return {
    kind: 'done',
    json: keys,
    text:
      rows.length === 0
        ? `${printable(org)} has no keys: make one with key create.`
        : table(['KEY', 'ROLE', 'USER', 'CLIENT', 'CREATED', 'EXPIRES', 'STATE'], rows),
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

async function revokeKey(context: AdminContext, org: string, keyId: string): Promise<Report> {
  const { store, base } = await context.organization(org);
  const outcome = await revokeApiKey(store, base, keyId);
  if (outcome === 'unknown') {
    if ((await findSettings(store, context.config().keyPrefix, org)) === undefined) {
      return unknownOrganization(org);
    }
    return {
      kind: 'problem',
      message: `${JSON.stringify(org)} has no key ${JSON.stringify(keyId)}: see key list --org for its public id`,
    };
  }
  return {
    kind: 'done',
    json: { keyId, revoked: true },
    text: outcome === 'already' ? `Key ${keyId} was revoked before.` : `Key ${keyId} is revoked.`,
  };
}
