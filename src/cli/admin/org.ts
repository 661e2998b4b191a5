import { InvalidArgumentError, Option } from 'commander';
import { defaultSettings, settingsFaults, type OrganizationSettings } from '../../domain/settings.ts';
import { counted } from '../../lib/numbers.ts';
import { list, shellWord, table } from '../../lib/system/terminal.ts';
import { maxNameLength, type UsernameComparison } from '../../domain/usernames.ts';
import { organizationRecord } from '../../migration/records/stored.ts';
import { organizationBase } from '../../redis/keys.ts';
import {
  countHoldings,
  findSettings,
  hasOrphanedNames,
  listOrganizations,
  saveSettings,
} from '../../redis/organizations.ts';
import { changeComparison, type ReindexOutcome } from '../../redis/reindex/reindex.ts';
import { adminCommand, migrateCommand, parseId, wholeNumber } from '../command-line.ts';
import type { AdminCommand, AdminContext } from './context.ts';
import { done, interrupted, problem, wrongUsage, type CommandResult } from '../tool.ts';

interface SetOptions {
  usernameMin?: number;
  usernameMax?: number;
  usernamePattern?: string;
  usernameComparison?: UsernameComparison;
  objectUrlTemplate?: string;
  requireOwnership?: 'true' | 'false';
}

/** `admin org …`: organizations and their settings. */
export function addOrg(program: AdminCommand): void {
  const group = program
    .command('org')
    .description('manage organizations and their settings')
    .examples('org set acme --username-min 3', 'org list');
  group
    .command('set')
    .description(
      'create an organization, by default with usernames of 1 to 64 code points, compared exactly, and without ownership required; or change the settings that are given',
    )
    .argument('<organization>', 'organization id', parseId)
    .option('--username-min <n>', 'minimum length of a username, in code points, 1 to 256', usernameLength)
    .option('--username-max <n>', 'maximum length of a username, in code points, 1 to 256', usernameLength)
    .option('--username-pattern <re>', 'RE2 pattern that the whole username must match; "" for none')
    .addOption(
      new Option('--username-comparison <how>', 'when two usernames count as the same').choices([
        'exact',
        'case-insensitive',
      ]),
    )
    .option(
      '--object-url-template <url>',
      'image URL of objects not in the catalogue, with {datasourceId} and {objectDefinitionId}; "" for none',
      parseTemplate,
    )
    .addOption(
      new Option('--require-ownership <bool>', "whether an object must be in the user's collection").choices([
        'true',
        'false',
      ]),
    )
    .examples(
      'org set acme --username-min 3 --username-max 20 --username-pattern "[a-z0-9_]+"',
      'org set acme --username-comparison case-insensitive',
      'org set acme --object-url-template "https://cdn.example/{datasourceId}/{objectDefinitionId}.png"',
    )
    .runs(setOrganization);
  group
    .command('show')
    .description("show an organization's settings and how much it holds")
    .argument('<organization>', 'organization id', parseId)
    .examples('org show acme', 'org show acme --json')
    .runs(showOrganization);
  group
    .command('list')
    .description('list all organizations')
    .examples('org list', 'org list --json')
    .runs(listAll);
}

const usernameLength = wholeNumber(1, maxNameLength);

/** Refuses a mistyped placeholder, which would stay in every URL. */
function parseTemplate(text: string): string {
  const [unknown] = /\{(?!(?:datasourceId|objectDefinitionId)\})[^}]*\}/.exec(text) ?? [];
  if (unknown === undefined) return text;
  throw new InvalidArgumentError(
    `Only {datasourceId} and {objectDefinitionId} are filled in, not ${unknown}.`,
  );
}

async function setOrganization(
  context: AdminContext,
  id: string,
  options: SetOptions,
): Promise<CommandResult> {
  const { store, keyPrefix } = await context.open();
  const current = await findSettings(store, keyPrefix, id);
  // One that was migrated can still be changed.
  if (current === undefined && /^ | $/.test(id)) {
    return wrongUsage(
      `organization ${JSON.stringify(id)} has a space at an end, and no request can name it: nothing was changed`,
    );
  }
  if (current === undefined && (await hasOrphanedNames(store, organizationBase(keyPrefix, id)))) {
    return problem(
      `organization ${JSON.stringify(id)} has names and no settings, and its names would not count in a new one: ${adminCommand} fsck --org ${shellWord(id)} says what to restore first`,
    );
  }
  const given = givenSettings(options);
  if (current !== undefined && Object.keys(given).length === 0) {
    const text = `Organization ${id} exists, and no setting was given: nothing was changed.`;
    return done(organizationRecord(id, current), `${text}\n\n${describeSettings(current)}`);
  }
  const faults = settingsFaults({ ...defaultSettings, ...current, ...given });
  if (faults.length > 0) return wrongUsage(`${faults.join('; ')}: nothing was changed`);

  let rebuilt = '';
  const compareNames = async (comparison: UsernameComparison): Promise<CommandResult | undefined> => {
    const base = organizationBase(keyPrefix, id);
    const outcome = await changeComparison(store, base, comparison, { signal: context.signal });
    if (outcome.kind === 'rebuilt') {
      rebuilt = `: ${counted(outcome.usernames, 'username')} and ${counted(outcome.denied, 'denied name')} indexed again`;
    }
    return describeRefusal(outcome, id);
  };
  if (current !== undefined && given.comparison !== undefined) {
    const refused = await compareNames(given.comparison);
    if (refused !== undefined) return refused;
  }
  const saved = await saveSettings(store, keyPrefix, id, given);
  if (saved === 'loading') {
    return problem(
      `organization ${JSON.stringify(id)} is being loaded by a migration: finish the migration with ${migrateCommand} apply, then run this again`,
    );
  }
  if (saved === 'min-above-max') {
    return problem(
      `another command has just changed the username lengths, and the minimum would be above the maximum: see ${adminCommand} org show ${shellWord(id)}, then run this again`,
    );
  }
  // Another command has created it meanwhile, perhaps with another comparison of names.
  if (current === undefined && saved === 'changed' && given.comparison !== undefined) {
    const refused = await compareNames(given.comparison);
    if (refused !== undefined) return refused;
  }
  const settings = (await findSettings(store, keyPrefix, id)) ?? defaultSettings;
  const text = `Organization ${id} ${saved}${rebuilt}.\n\n${describeSettings(settings)}`;
  return done(organizationRecord(id, settings), text);
}

/** Only the given settings: another command may be changing the others. */
function givenSettings(options: SetOptions): Partial<OrganizationSettings> {
  const { usernamePattern, objectUrlTemplate, requireOwnership } = options;
  return {
    ...(options.usernameMin !== undefined && { minLength: options.usernameMin }),
    ...(options.usernameMax !== undefined && { maxLength: options.usernameMax }),
    ...(options.usernameComparison !== undefined && { comparison: options.usernameComparison }),
    ...(usernamePattern !== undefined && { pattern: usernamePattern || undefined }),
    ...(objectUrlTemplate !== undefined && { objectImageUrlTemplate: objectUrlTemplate || undefined }),
    ...(requireOwnership !== undefined && { requireOwnership: requireOwnership === 'true' }),
  };
}

/** Undefined if usernames are now compared as requested. */
function describeRefusal(outcome: ReindexOutcome, id: string): CommandResult | undefined {
  switch (outcome.kind) {
    case 'rebuilt':
    case 'unchanged':
      return undefined;
    case 'busy':
      return problem(
        'another command is changing how usernames of this organization are compared: wait until it is done, then run this again',
      );
    case 'inconsistent':
      return problem(
        `the username index does not match the profiles, so nothing was changed: run ${adminCommand} fsck --org ${shellWord(id)} --repair, then run this again`,
      );
    case 'lapsed':
      return problem(
        'this process was paused for too long, or Redis has failed over, so nothing was changed: run it again',
      );
    case 'interrupted':
      return interrupted('interrupted, nothing was changed: run it again');
    case 'collisions': {
      const { collisions, isComplete } = outcome;
      const rows = collisions.flatMap((names, group) =>
        names.map(({ userId, username }) => [String(group + 1), username, userId]),
      );
      return problem(
        `some usernames would be the same${isComplete ? '' : ' (the first 1000 are shown)'}, so nothing was changed: rename users (deny a username with a replacement), then run this again`,
        {
          json: { changed: false, collisions, isComplete },
          text: table(['collision', 'username', 'user'], rows),
        },
      );
    }
  }
}

async function showOrganization(context: AdminContext, id: string): Promise<CommandResult> {
  const { store, base, settings } = await context.existingOrganization(id);
  const holdings = await countHoldings(store, base);
  const text = describeSettings(settings, [
    ['denied usernames', String(holdings.deniedUsernames)],
    ['objects', String(holdings.objects)],
    ['API keys', String(holdings.apiKeys)],
  ]);
  return done({ ...organizationRecord(id, settings), ...holdings }, text);
}

async function listAll(context: AdminContext): Promise<CommandResult> {
  const { store, keyPrefix } = await context.open();
  const ids = await listOrganizations(store, keyPrefix);
  const all = await Promise.all(
    ids.map(async (id) => ({ id, settings: await findSettings(store, keyPrefix, id) })),
  );
  // One without settings is being loaded, or its creation was interrupted.
  const found = all.flatMap(({ id, settings }) => (settings === undefined ? [] : [{ id, settings }]));
  if (found.length === 0) {
    return done([], `No organization yet: create one with ${adminCommand} org set.`);
  }
  const rows = found.map(({ id, settings }) => [
    id,
    `${settings.minLength}-${settings.maxLength}`,
    settings.comparison,
    String(settings.requireOwnership),
  ]);
  return done(
    found.map(({ id, settings }) => organizationRecord(id, settings)),
    table(['organization', 'username length', 'username comparison', 'ownership required'], rows),
  );
}

function describeSettings(settings: OrganizationSettings, more: (readonly [string, string])[] = []): string {
  return list([
    ['username length', `${settings.minLength} to ${settings.maxLength}`],
    ['username pattern', settings.pattern],
    ['username comparison', settings.comparison],
    ['object URL template', settings.objectImageUrlTemplate],
    ['ownership required', String(settings.requireOwnership)],
    ...more,
  ]);
}
