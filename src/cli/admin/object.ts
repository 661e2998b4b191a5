import { Command } from 'commander';
import { printable } from '../../lib/system/terminal.ts';
import { setObject } from '../../redis/objects.ts';
import { action, UnknownOrganizationError, type AdminContext, type Report } from './context.ts';
import { addExamples, organizationOption, parseHttpUrl, requiredId, withExamples } from './options.ts';

const example =
  'object set --org acme --datasource hats --object top-hat --url https://cdn.example/top-hat.png';

interface ObjectOptions {
  org: string;
  datasource: string;
  object: string;
  url: string;
}

/** `admin object …`: the catalogue of image objects. */
export function objectCommand(context: AdminContext): Command {
  const group = new Command('object').description("an organization's catalogue of image objects");
  const set = group
    .command('set')
    .description("sets an object's image URL; profiles that refer to the object show it at once")
    .addOption(organizationOption())
    .addOption(requiredId('--datasource <id>', 'datasource id'))
    .addOption(requiredId('--object <id>', 'object definition id'))
    .requiredOption('--url <url>', 'http or https URL of the image', parseHttpUrl)
    .action(action(context, run));
  withExamples(set, [example]);
  return addExamples(group, [example]);
}

async function run(context: AdminContext, { org, datasource, object, url }: ObjectOptions): Promise<Report> {
  const { store, base } = await context.organization(org);
  const reference = { datasourceId: datasource, objectDefinitionId: object };
  const outcome = await setObject(store, base, reference, url);
  if (outcome === 'unknown-organization') throw new UnknownOrganizationError(org);
  return {
    kind: 'done',
    json: { organizationId: org, ...reference, url },
    text: `Object ${printable(object)} of ${printable(datasource)} has the URL ${url}.`,
  };
}
