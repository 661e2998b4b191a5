import { Command } from 'commander';
import { fsck, type Counts, type Fault } from '../../redis/fsck/fsck.ts';
import { action, UnknownOrganizationError, type AdminContext, type Report } from './context.ts';
import { idOption, withExamples } from './options.ts';
import { counted } from '../../lib/numbers.ts';
import { printable } from '../../lib/system/terminal.ts';

interface FsckOptions {
  org?: string;
  repair?: boolean;
  json?: boolean;
}

/** `admin fsck`: proves that the store is consistent. */
export function fsckCommand(context: AdminContext): Command {
  const command = new Command('fsck')
    .description(
      'proves that index, profiles, denylist, keys and references agree, while the service runs; exits 1 if faults remain',
    )
    .addOption(idOption('--org <organization>', 'only this organization'))
    .option('--repair', 'mend what can be mended without guessing')
    .action(action(context, check));
  return withExamples(command, ['fsck', 'fsck --org acme --repair', 'fsck --json']);
}

/** Faults are printed as they are found: there may be many. */
async function check(
  context: AdminContext,
  { org, repair = false, json = false }: FsckOptions,
): Promise<Report> {
  const store = await context.store();
  let separator = '{"faults":[\n';
  const onFault = (fault: Fault): void => {
    context.out(json ? separator + JSON.stringify(forMachines(fault)) : `${forPeople(fault)}\n`);
    separator = ',\n';
  };
  const { keyPrefix } = context.config();
  const { signal } = context;
  const outcome = await fsck(store, keyPrefix, { organizationId: org, repair, onFault, signal });
  if (outcome.kind === 'unknown-organization') throw new UnknownOrganizationError(org ?? '');
  if (outcome.kind === 'interrupted') {
    return { kind: 'interrupted', message: 'interrupted: run it again, what it has repaired stays so' };
  }

  const { counts, found, repaired } = outcome;
  const remaining = found - repaired;
  if (json) {
    const open = found === 0 ? '{"faults":[' : '\n';
    const rest = JSON.stringify({ checked: counts, found, repaired, remaining }).slice(1);
    context.out(`${open}],${rest}\n`);
  } else {
    context.out(`${describe(counts)}: ${counted(found, 'fault')}, ${repaired} repaired.\n`);
  }
  if (remaining === 0) return { kind: 'done' };
  return {
    kind: 'problem',
    message: repair
      ? `not repaired: ${counted(remaining, 'fault')}; do what they say, or run it again where names were being changed`
      : `${counted(remaining, 'fault')}: mend with fsck --repair`,
  };
}

function forMachines({ organizationId, kind, detail, isRepaired }: Fault) {
  return { organizationId, kind, detail, repaired: isRepaired };
}

function forPeople({ organizationId, kind, detail, isRepaired }: Fault): string {
  return `${printable(organizationId)}  ${kind}  ${printable(detail)}${isRepaired ? '  [repaired]' : ''}`;
}

function describe(counts: Counts): string {
  const { organizations, profiles, usernames, deniedNames, apiKeys, references } = counts;
  const checked = [
    counted(organizations, 'organization'),
    counted(profiles, 'profile'),
    counted(usernames, 'username'),
    counted(deniedNames, 'denied name'),
    counted(apiKeys, 'API key'),
    counted(references, 'reference'),
  ];
  return `Checked ${checked.join(', ')}`;
}
