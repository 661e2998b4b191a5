import { Command } from 'commander';
import { printable } from '../../lib/system/terminal.ts';
import { addToCollection } from '../../redis/objects.ts';
import { action, UnknownOrganizationError, type AdminContext, type Report } from './context.ts';
import { addExamples, organizationOption, requiredId, withExamples } from './options.ts';

const example = 'collection add --org acme --user u-1 --datasource hats --object top-hat';

interface CollectionOptions {
  org: string;
  user: string;
  datasource: string;
  object: string;
}

/** `admin collection …`: what users own. */
export function collectionCommand(context: AdminContext): Command {
  const group = new Command('collection').description('the objects that users own');
  const add = group
    .command('add')
    .description("adds an object to a user's collection")
    .addOption(organizationOption())
    .addOption(requiredId('--user <user>', 'user id'))
    .addOption(requiredId('--datasource <id>', 'datasource id'))
    .addOption(requiredId('--object <id>', 'object definition id'))
    .action(action(context, run));
  withExamples(add, [example]);
  return addExamples(group, [example]);
}

async function run(
  context: AdminContext,
  { org, user, datasource, object }: CollectionOptions,
): Promise<Report> {
  const { store, base } = await context.organization(org);
  const reference = { datasourceId: datasource, objectDefinitionId: object };
  const outcome = await addToCollection(store, base, user, reference);
  if (outcome === 'unknown-organization') throw new UnknownOrganizationError(org);
  return {
    kind: 'done',
    json: { organizationId: org, userId: user, ...reference },
    text: `${printable(user)} ${outcome === 'present' ? 'already had' : 'now has'} object ${printable(object)} of ${printable(datasource)}.`,
  };
}
