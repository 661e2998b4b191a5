import { Option } from 'commander';
import { readContractPolicy } from '../../../deprecation/policy/contract-policy.ts';
import { clearInLayer, clearLayer, setInLayer, type Edit } from '../../../deprecation/policy/policy-edits.ts';
import { changePolicy, invalidPolicy, readOperatorLayer } from '../../../deprecation/policy/policy-store.ts';
import {
  describeExempt,
  layerPolicy,
  type DeprecationPolicy,
  type Exempt,
  type PolicyLayer,
} from '../../../deprecation/policy/policy.ts';
import { formatInstant, formatInterval, parseInstant, parseInterval } from '../../../lib/iso8601.ts';
import { apiKeyIdsKey, organizationBase } from '../../../redis/keys.ts';
import { listOrganizations } from '../../../redis/organizations.ts';
import { adminCommand, parseId } from '../../command-line.ts';
import type { AdminCommand, AdminContext } from '../context.ts';
import { done, problem, wrongUsage, type CommandResult } from '../../tool.ts';
import { argument, repeatable } from '../options.ts';
import { policyLines, viewPolicy } from './policy-view.ts';
import { addSetOptions, formatSetOptions, settingOptions, type Given } from './set-options.ts';

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
    );
  const given = addSetOptions(set);
  set
    .examples(
      'deprecation set --sunset 2027-12-31T23:59:59Z --after-sunset gone',
      'deprecation set --brownout 2027-03-01T12:00:00Z/PT30M --brownout 2027-04-01T12:00:00Z/PT2H',
      'deprecation set --exempt-org acme --exempt-key k_0123456789abcdef --until 2027-06-30T00:00:00Z',
    )
    .runs((context) => setPolicy(context, given));

  const clear = group
    .command('clear')
    .description(
      'remove the given settings, so that those of the environment and openapi.yaml apply again; without options, remove all',
    );
  for (const [, flag, , what] of settingOptions) clear.option(flag, what);
  clear
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

async function showPolicy(context: AdminContext): Promise<CommandResult> {
  const { store, keyPrefix } = await context.open();
  const stored = await readOperatorLayer(store, keyPrefix);
  if (stored === undefined) return problem(invalidPolicy);
  const { version, changedAt, layer } = stored;
  const origin =
    version === 0
      ? 'Nothing is set here: these settings come from openapi.yaml and the environment.'
      : `Last change (number ${version}) at ${formatInstant(changedAt)}. Set here: ${formatSetOptions(layer, Date.now()) || 'nothing that still applies'}`;
  return describe(layerPolicy(...defaultsOf(context), layer), version, origin);
}

async function setPolicy(context: AdminContext, { layer, endless }: Given): Promise<CommandResult> {
  const [first] = endless;
  if (first !== undefined) {
    const remedy = 'add --until 2027-01-31T12:00:00Z after it';
    return wrongUsage(`the exemption of ${describeExempt(first)} has no end: ${remedy}`);
  }
  if (Object.values(layer).flat().length === 0) {
    return wrongUsage(`nothing to set: see ${adminCommand} deprecation set --help`);
  }
  const report = await change(context, setInLayer(layer));
  if (report.exitCode === 0) {
    for (const exempt of layer.exemptions) {
      if (await exists(context, exempt)) continue;
      context.note(`note: there is no ${describeExempt(exempt)} yet: check the name`);
    }
  }
  return report;
}

async function exists(context: AdminContext, exempt: Exempt): Promise<boolean> {
  const { store, keyPrefix } = await context.open();
  const organizations = await listOrganizations(store, keyPrefix);
  if ('organizationId' in exempt) return organizations.includes(exempt.organizationId);
  const keys = organizations.map((id) => apiKeyIdsKey(organizationBase(keyPrefix, id)));
  return (await Promise.all(keys.map((key) => store.hexists(key, exempt.keyId)))).includes(1);
}

interface ClearOptions {
  brownout?: string[];
  exemptOrg?: string[];
  exemptKey?: string[];
}

async function clearPolicy(context: AdminContext, options: ClearOptions): Promise<CommandResult> {
  const { brownout = [], exemptOrg = [], exemptKey = [] } = options;
  const named = settingOptions.filter(([, flag]) => new Option(flag).attributeName() in options);
  const removals = {
    settings: named.map(([setting]) => setting),
    brownouts: brownout,
    exemptions: [
      ...exemptOrg.map((organizationId) => ({ organizationId })),
      ...exemptKey.map((keyId) => ({ keyId })),
    ],
  };
  const isNamed = Object.values(removals).flat().length > 0;
  return await change(context, isNamed ? clearInLayer(removals) : clearLayer);
}

async function change(context: AdminContext, edit: Edit): Promise<CommandResult> {
  const { store, keyPrefix } = await context.open();
  const changed = await changePolicy(store, keyPrefix, edit, {
    defaults: defaultsOf(context),
    now: Date.now(),
  });
  if (changed.kind === 'refused') {
    const { reasons } = changed;
    return problem(`nothing was changed: ${reasons.join('; ')}`, { json: { changed: false, reasons } });
  }
  const effect = 'The change takes effect on every instance within 5 seconds.';
  const lost = edit === clearLayer ? formatSetOptions(changed.before, Date.now()) : '';
  const undo = lost === '' ? [] : [`To undo: ${adminCommand} deprecation set ${lost}`];
  return describe(changed.policy, changed.version, effect, ...undo);
}

/** The layers below the operator's, lowest first. */
function defaultsOf(context: AdminContext): PolicyLayer[] {
  return [readContractPolicy(), context.config().deprecation];
}

function describe(policy: DeprecationPolicy, version: number, ...notes: string[]): CommandResult {
  const now = Date.now();
  const text = [...policyLines(policy, now), '', ...notes].join('\n');
  return done({ ...viewPolicy(policy, now), version }, text);
}
