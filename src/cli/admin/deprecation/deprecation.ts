import { Option } from 'commander';
import { readContractPolicy } from '../../../deprecation/policy/contract-policy.ts';
import { parseLink } from '../../../deprecation/policy/links.ts';
import { clearInLayer, clearLayer, setInLayer, type Edit } from '../../../deprecation/policy/policy-edits.ts';
import { changePolicy, readOperatorLayer } from '../../../deprecation/policy/policy-store.ts';
import {
  layerPolicy,
  type DeprecationPolicy,
  type Exemption,
  type PolicyLayer,
} from '../../../deprecation/policy/policy.ts';
import {
  formatInstant,
  formatInterval,
  parseInstant,
  parseInterval,
  type Interval,
} from '../../../lib/iso8601.ts';
import { printable } from '../../../lib/system/terminal.ts';
import { adminCommand } from '../../command-line.ts';
import type { AdminCommand } from '../command.ts';
import { problem, type AdminContext, type Report } from '../context.ts';
import { argument, parseId, parseTime, repeatable } from '../options.ts';
import { addExemptionOptions, findUnknown, type GivenExemption } from './exemption-options.ts';
import { policyLines, viewPolicy } from './policy-view.ts';
import { setOptions } from './set-options.ts';

/** The options that set or clear one setting each, with its name in a layer. */
const settings = {
  deprecatedAt: 'deprecatedAt',
  sunset: 'sunsetAt',
  successor: 'successorUrl',
  documentation: 'documentationUrl',
  afterSunset: 'afterSunset',
} as const satisfies Record<string, keyof PolicyLayer>;

type Setting = keyof typeof settings;

interface SetOptions extends Partial<Record<Setting, number | string>> {
  brownout?: Interval[];
}

interface ClearOptions extends Partial<Record<Setting, true>> {
  brownout?: string[];
  exemptOrg?: string[];
  exemptKey?: string[];
  json?: boolean;
}

/** `admin deprecation`: shows and changes the deprecation policy. */
export function addDeprecation(program: AdminCommand): void {
  const group = program
    .command('deprecation')
    .description('show and change the deprecation policy: dates, links, brownouts and exemptions')
    .examples(
      'deprecation show',
      'deprecation set --sunset 2027-12-31T23:59:59Z --brownout 2027-03-01T12:00:00Z/PT30M',
      'deprecation clear --brownout 2027-03-01T12:00:00Z',
    );
  group
    .command('show')
    .description('show the policy in force and its timeline')
    .examples('deprecation show', 'deprecation show --json')
    .runs(showPolicy);

  const set = group
    .command('set')
    .description(
      'change the given settings, and add brownouts and exemptions; takes effect on every instance within 5 seconds',
    )
    .option('--deprecated-at <time>', 'date of the deprecation, ISO 8601', parseTime)
    .option('--sunset <time>', 'date from which the API may be gone, ISO 8601', parseTime)
    .option('--successor <url>', 'link to what replaces the API', argument(parseLink))
    .option('--documentation <url>', 'link to the documentation of the deprecation', argument(parseLink))
    .addOption(
      new Option(
        '--after-sunset <what>',
        'what happens after the sunset: calls are served, or answered with 410',
      ).choices(['serve', 'gone']),
    )
    .option(
      '--brownout <period>',
      'brownout, during which calls are answered with 410: START/DURATION such as 2027-01-31T12:00:00Z/PT30M, or START/END; repeatable',
      repeatable(argument(parseInterval)),
    );
  const exemptions = addExemptionOptions(set);
  set
    .examples(
      'deprecation set --sunset 2027-12-31T23:59:59Z --after-sunset gone',
      'deprecation set --brownout 2027-03-01T12:00:00Z/PT30M --brownout 2027-04-01T12:00:00Z/PT2H',
      'deprecation set --exempt-org acme --exempt-key k_0123456789abcdef --until 2027-06-30T00:00:00Z',
    )
    .runs((context, options: SetOptions) => setPolicy(context, options, exemptions));

  group
    .command('clear')
    .description(
      'remove the given settings, so that those of the environment and openapi.yaml apply again; without options, remove all',
    )
    .option('--deprecated-at', 'the date of the deprecation')
    .option('--sunset', 'the sunset')
    .option('--successor', 'the link to the successor')
    .option('--documentation', 'the link to the documentation')
    .option('--after-sunset', 'what happens after the sunset')
    .option(
      '--brownout <period>',
      'a brownout as it was set, or its start; repeatable',
      repeatable(brownoutName),
    )
    .option('--exempt-org <organization>', "an organization's exemption; repeatable", repeatable(parseId))
    .option('--exempt-key <key-id>', "a key's exemption; repeatable", repeatable(parseId))
    .examples(
      'deprecation clear --sunset --after-sunset',
      'deprecation clear --brownout 2027-03-01T12:00:00Z',
      'deprecation clear',
    )
    .runs(clearPolicy);
}

/** A brownout or its start, as `clearInLayer` takes it. */
function brownoutName(text: string): string {
  return text.includes('/')
    ? formatInterval(argument(parseInterval)(text))
    : formatInstant(argument(parseInstant)(text));
}

async function showPolicy(context: AdminContext): Promise<Report> {
  const { store, keyPrefix } = await context.open();
  const { version, changedAt, layer } = await readOperatorLayer(store, keyPrefix);
  const origin =
    version === 0
      ? 'Nothing is set here: these settings come from openapi.yaml and the environment.'
      : `Last change (number ${version}) at ${formatInstant(changedAt)}. Set here: ${setOptions(layer, Date.now()) ?? 'nothing that is not over'}`;
  return describe(layerPolicy(...defaultsOf(context), layer), version, origin);
}

async function setPolicy(
  context: AdminContext,
  options: SetOptions,
  exemptions: readonly GivenExemption[],
): Promise<Report> {
  const endless = exemptions.find((exemption) => !hasEnd(exemption));
  if (endless !== undefined) {
    return {
      kind: 'usage',
      message: `the exemption of ${nameOf(endless)} has no end: add --until 2027-01-31T12:00:00Z after it`,
    };
  }
  const given = toLayer(options, exemptions.filter(hasEnd));
  if (Object.keys(given).length === 0) {
    return { kind: 'usage', message: `nothing to set: see ${adminCommand} deprecation set --help` };
  }
  const report = await change(context, setInLayer(given));
  if (report.kind === 'done') {
    const { store, keyPrefix } = await context.open();
    const unknown = await findUnknown(store, keyPrefix, exemptions);
    for (const exemption of unknown) {
      context.err(`note: there is no ${nameOf(exemption)} yet: check the name\n`);
    }
  }
  return report;
}

function hasEnd(exemption: GivenExemption): exemption is Exemption {
  return exemption.until !== undefined;
}

function toLayer(options: SetOptions, exemptions: readonly Exemption[]): PolicyLayer {
  const given = Object.entries(settings).flatMap(([name, setting]) => {
    const value = options[name as Setting];
    return value === undefined ? [] : [[setting, value] as const];
  });
  const exemptOrganizations = exemptions.filter((exemption) => 'organizationId' in exemption);
  const exemptKeys = exemptions.filter((exemption) => 'keyId' in exemption);
  return {
    ...Object.fromEntries(given),
    ...(options.brownout && { brownouts: options.brownout }),
    ...(exemptOrganizations.length > 0 && { exemptOrganizations }),
    ...(exemptKeys.length > 0 && { exemptKeys }),
  };
}

async function clearPolicy(context: AdminContext, options: ClearOptions): Promise<Report> {
  const { brownout = [], exemptOrg = [], exemptKey = [], json: _, ...flags } = options;
  const named = (Object.keys(flags) as Setting[]).map((name) => settings[name]);
  if (named.length + brownout.length + exemptOrg.length + exemptKey.length > 0) {
    const removals = {
      settings: named,
      brownouts: brownout,
      exemptOrganizations: exemptOrg,
      exemptKeys: exemptKey,
    };
    return await change(context, clearInLayer(removals));
  }
  const { store, keyPrefix } = await context.open();
  const { layer } = await readOperatorLayer(store, keyPrefix);
  const before = setOptions(layer, Date.now());
  return await change(context, clearLayer, before && `To undo: ${adminCommand} deprecation set ${before}`);
}

async function change(context: AdminContext, edit: Edit, note?: string): Promise<Report> {
  const { store, keyPrefix } = await context.open();
  const changed = await changePolicy(store, keyPrefix, edit, {
    defaults: defaultsOf(context),
    now: Date.now(),
  });
  if (changed.kind === 'refused') {
    const { reasons } = changed;
    return problem(printable(`nothing was changed: ${reasons.join('; ')}`), {
      json: { changed: false, reasons },
    });
  }
  const notes = ['The change takes effect on every instance within 5 seconds.', ...(note ? [note] : [])];
  return describe(changed.policy, changed.version, ...notes);
}

/** The layers below the operator's, lowest first. */
function defaultsOf(context: AdminContext): PolicyLayer[] {
  return [readContractPolicy(), context.config().deprecation];
}

function describe(policy: DeprecationPolicy, version: number, ...notes: string[]): Report {
  const now = Date.now();
  const view = viewPolicy(policy, now);
  return {
    kind: 'done',
    json: { ...view, version },
    text: [...policyLines(view, now), '', ...notes].map(printable).join('\n'),
  };
}

function nameOf(exemption: GivenExemption): string {
  return printable(
    'keyId' in exemption
      ? `key ${exemption.keyId}`
      : `organization ${JSON.stringify(exemption.organizationId)}`,
  );
}
