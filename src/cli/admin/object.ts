import { Command } from 'commander';
import { setObject } from '../../redis/objects.ts';
import { unknownOrganization, type AdminContext } from './context.ts';
import { addExamples, idOption, organizationOption, parseHttpUrl, withExamples } from './options.ts';
import { printable } from '../../lib/system/terminal.ts';

interface ObjectOptions {
  org: string;
  datasource: string;
  object: string;
  url: string;
  json?: boolean;
}

/** `admin object …`: the catalogue of image objects. */
export function objectCommand(context: AdminContext): Command {
  const group = new Command('object').description("the organization's catalogue of image objects");
  const set = group
    .command('set')
    .description("sets an object's image URL; profiles that refer to it follow at once")
    .addOption(organizationOption())
    .addOption(idOption('--datasource <id>', 'datasource id').makeOptionMandatory())
    .addOption(idOption('--object <id>', 'object definition id').makeOptionMandatory())
    .requiredOption('--url <url>', 'http or https URL of the image', parseHttpUrl)
    .action(async (options: ObjectOptions) => {
      const { org, datasource, object, url } = options;
      const { store, base } = await context.organization(org);
      const reference = { datasourceId: datasource, objectDefinitionId: object };
      const outcome = await setObject(store, base, reference, url);
      context.finish(
        outcome === 'unknown-organization'
          ? unknownOrganization(org)
          : {
              kind: 'done',
              json: { organizationId: org, ...reference, url },
              text: `Object ${printable(object)} of ${printable(datasource)} shows ${url}.`,
            },
        options,
      );
    });
  withExamples(set, [
    'object set --org acme --datasource hats --object top-hat --url https://cdn.example/top-hat.png',
  ]);
  return addExamples(group, [
    'object set --org acme --datasource hats --object top-hat --url https://cdn.example/top-hat.png',
  ]);
}
