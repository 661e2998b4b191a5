import { Command, Option } from 'commander';
import { readContractPolicy } from '../../../deprecation/policy/contract-policy.ts';
import { findUnknownExemptions } from '../../../deprecation/policy/exempt-names.ts';
import { formatInstant } from '../../../lib/iso8601.ts';
import { setArguments } from '../../../deprecation/policy/policy-command.ts';
import type { ClearFlags, Exemption, SetFlags } from '../../../deprecation/policy/policy-edits.ts';
import { clearPolicy, readOperatorLayer, setPolicy } from '../../../deprecation/policy/policy-store.ts';
import { policyLines, viewPolicy } from '../../../deprecation/policy/policy-view.ts';
import { layerPolicy, type DeprecationPolicy, type PolicyLayer } from '../../../deprecation/policy/policy.ts';
import type { AdminContext, Report } from '../context.ts';
import { addExemptions } from './exemptions.ts';
import { addExamples, parseId, withExamples } from '../options.ts';
import { collect, collectWindowNames, collectWindows, readLink, readTime } from './policy-options.ts';
import { printable } from '../../../lib/system/terminal.ts';

/** `admin deprecation`: shows and changes the deprecation policy. */
export function deprecationCommand(context: AdminContext): Command {
  const group = new Command('deprecation').description(
    'shows and changes the deprecation policy: dates, links, brownouts and exemptions',
  );

  const show = group
    .command('show')
    .description('shows the policy in force and its timeline')
    .action(async (options: { json?: boolean }) => {
      context.finish(await showPolicy(context), options);
    });
  withExamples(show, ['deprecation show', 'deprecation show --json']);

  const set = group
    .command('set')
    .description(
      'changes the given settings and adds windows and exemptions; takes effect on every instance within 5 seconds',
    )
    .option('--deprecated-at <time>', 'date of the deprecation, ISO 8601', readTime)
    .option('--sunset <time>', 'date from which the API may be gone, ISO 8601', readTime)
    .option('--successor <url>', 'link to what replaces the API', readLink)
    .option('--documentation <url>', 'link to the documentation of the deprecation', readLink)
    .addOption(
      new Option(
        '--after-sunset <what>',
        'what happens after the sunset: calls are served, or answered with 410',
      ).choices(['serve', 'gone']),
    )
    .option(
      '--brownout <window>',
      'window of 410 answers: START/DURATION such as 2027-01-31T12:00:00Z/PT30M, or START/END; repeatable',
      collectWindows,
    );
  const exemptions = addExemptions(set);
  set.action(async (options: SetFlags & { json?: boolean }) => {
    context.finish(await change(context, { ...options, exemptions }), options);
  });
  withExamples(set, [
    'deprecation set --sunset 2027-12-31T23:59:59Z --after-sunset gone',
    'deprecation set --brownout 2027-03-01T12:00:00Z/PT30M --brownout 2027-04-01T12:00:00Z/PT2H',
    'deprecation set --exempt-org acme --exempt-key k_0123456789abcdef --until 2027-06-30T00:00:00Z',
  ]);

  const clear = group
    .command('clear')
    .description(
      'removes the named settings, so that those of the environment and openapi.yaml apply again; without options, removes all',
    )
    .option('--deprecated-at', 'the date of the deprecation')
    .option('--sunset', 'the sunset')
    .option('--successor', 'the link to the successor')
    .option('--documentation', 'the link to the documentation')
    .option('--after-sunset', 'what happens after the sunset')
    .option('--brownout <window>', 'a window as it was set, or its start; repeatable', collectWindowNames)
    .option('--exempt-org <organization>', "an organization's exemption; repeatable", collect(parseId))
    .option('--exempt-key <key-id>', "a key's exemption; repeatable", collect(parseId))
    .action(async ({ json = false, ...flags }: ClearFlags & { json?: boolean }) => {
      context.finish(await clearFlags(context, flags), { json });
    });
  withExamples(clear, [
    'deprecation clear --sunset --after-sunset',
    'deprecation clear --brownout 2027-03-01T12:00:00Z',
    'deprecation clear',
  ]);

  return addExamples(group, [
    'deprecation show',
    'deprecation set --sunset 2027-12-31T23:59:59Z --brownout 2027-03-01T12:00:00Z/PT30M',
    'deprecation clear --brownout 2027-03-01T12:00:00Z',
  ]);
}

const within = 'The change takes effect on every instance within 5 seconds.';

async function showPolicy(context: AdminContext): Promise<Report> {
  const { keyPrefix } = context.config();
  const { version, changedAt, layer } = await readOperatorLayer(await context.store(), keyPrefix);
  const set = setArguments(layer, Date.now());
  const origin =
    version === 0
      ? 'Nothing is set here: these settings come from openapi.yaml and the environment.'
      : `Last change (number ${version}) at ${formatInstant(changedAt)}. Set here: ${set ?? 'nothing that is not over'}`;
  return describe(layerPolicy(...defaultsOf(context), layer), version, origin);
}

async function change(context: AdminContext, flags: SetFlags): Promise<Report> {
  const { exemptions = [], ...others } = flags;
  const given = Object.entries(others).some(([name, value]) => name !== 'json' && value !== undefined);
  if (!given && exemptions.length === 0) {
    return { kind: 'usage', message: 'nothing to set: see deprecation set --help' };
  }
  const endless = exemptions.find(({ until }) => until === undefined);
  if (endless !== undefined) {
    return {
      kind: 'usage',
      message: `the exemption of ${nameOf(endless)} has no end: add --until 2027-01-31T12:00:00Z after it`,
    };
  }
  const { keyPrefix } = context.config();
  const store = await context.store();
  const options = { defaults: defaultsOf(context), now: Date.now() };
  const changed = await setPolicy(store, keyPrefix, flags, options);
  if (changed.kind === 'refused') return refused(changed.reasons);
  for (const exemption of await findUnknownExemptions(store, keyPrefix, exemptions)) {
    context.err(`note: there is no ${nameOf(exemption)} yet: check the name\n`);
  }
  return describe(changed.policy, changed.version, within);
}

async function clearFlags(context: AdminContext, flags: ClearFlags): Promise<Report> {
  const { keyPrefix } = context.config();
  const store = await context.store();
  const now = Date.now();
  const before = setArguments((await readOperatorLayer(store, keyPrefix)).layer, now);
  const changed = await clearPolicy(store, keyPrefix, flags, { defaults: defaultsOf(context), now });
  if (changed.kind === 'refused') return refused(changed.reasons);
  const isAll = Object.keys(flags).length === 0;
  const undo = isAll && before !== undefined ? `\nTo undo: deprecation set ${before}` : '';
  return describe(changed.policy, changed.version, within + undo);
}

/** The layers below the operator's, lowest first. */
function defaultsOf(context: AdminContext): PolicyLayer[] {
  return [readContractPolicy(), context.config().deprecation];
}

function describe(policy: DeprecationPolicy, version: number, notes: string): Report {
  const now = Date.now();
  const view = viewPolicy(policy, now);
  return {
    kind: 'done',
    json: { ...view, version },
    text: [...policyLines(view, now), '', ...notes.split('\n')].map(printable).join('\n'),
  };
}

function refused(reasons: readonly string[]): Report {
  return {
    kind: 'problem',
    message: printable(`nothing was changed: ${reasons.join('; ')}`),
    json: { changed: false, reasons },
  };
}

function nameOf(exemption: Exemption): string {
  return printable(
    'keyId' in exemption
      ? `key ${exemption.keyId}`
      : `organization ${JSON.stringify(exemption.organizationId)}`,
  );
}
