import { Command } from 'commander';
import { addToCollection } from '../../redis/objects.ts';
import { unknownOrganization, type AdminContext } from './context.ts';
import { addExamples, idOption, organizationOption, withExamples } from './options.ts';
import { printable } from '../../lib/system/terminal.ts';

interface CollectionOptions {
  org: string;
  user: string;
  datasource: string;
  object: string;
  json?: boolean;
}

/** `admin collection …`: what users own. */
export function collectionCommand(context: AdminContext): Command {
  const group = new Command('collection').description('the objects that users own');
  const add = group
    .command('add')
    .description("puts an object into a user's collection")
    .addOption(organizationOption())
    .addOption(idOption('--user <user>', 'user id').makeOptionMandatory())
    .addOption(idOption('--datasource <id>', 'datasource id').makeOptionMandatory())
    .addOption(idOption('--object <id>', 'object definition id').makeOptionMandatory())
    .action(async (options: CollectionOptions) => {
      const { org, user, datasource, object } = options;
      const { store, base } = await context.organization(org);
      const reference = { datasourceId: datasource, objectDefinitionId: object };
      const outcome = await addToCollection(store, base, user, reference);
      context.finish(
        outcome === 'unknown-organization'
          ? unknownOrganization(org)
          : {
              kind: 'done',
              json: { organizationId: org, userId: user, ...reference },
              text: `${printable(user)} ${outcome === 'present' ? 'already had' : 'now has'} object ${printable(object)} of ${printable(datasource)}.`,
            },
        options,
      );
    });
  withExamples(add, ['collection add --org acme --user u-1 --datasource hats --object top-hat']);
  return addExamples(group, ['collection add --org acme --user u-1 --datasource hats --object top-hat']);
}
