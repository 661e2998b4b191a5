import { fsck, type Counts, type Fault } from '../../redis/fsck/fsck.ts';
import { adminCommand } from '../command-line.ts';
import { UnknownOrganizationError, type AdminContext, type AdminCommand } from './context.ts';
import { createJsonList } from './json-list.ts';
import { interrupted, problem, type CommandResult } from '../tool.ts';
import { onlyOrganization } from './options.ts';
import { counted } from '../../lib/numbers.ts';
import { printable } from '../../lib/system/terminal.ts';

interface FsckOptions {
  org?: string;
  repair?: boolean;
  json?: boolean;
}

/** `admin fsck`: checks that the store is consistent. */
export function addFsck(program: AdminCommand): void {
  program
    .command('fsck')
    .description(
      'check that username index, profiles, denylist, API keys and references agree, while the service runs; exit 1 if faults remain',
    )
    .option(...onlyOrganization)
    .option('--repair', 'repair every fault that has only one possible repair')
    .examples('fsck', 'fsck --org acme --repair', 'fsck --json')
    .runs(check);
}

/** Prints faults as they are found, since there may be many; what is found before an error is JSON, too. */
async function check(
  context: AdminContext,
  { org, repair = false, json = false }: FsckOptions,
): Promise<CommandResult> {
  const { store, keyPrefix } = await context.open();
  const list = createJsonList(context.out, '{"faults":[');
  const onFault = (fault: Fault): void => {
    if (json) list.add(forMachines(fault));
    else context.out(`${forPeople(fault)}\n`);
  };
  const { signal } = context;
  const outcome = await fsck(store, keyPrefix, { organizationId: org, repair, onFault, signal }).catch(
    (error: unknown) => {
      list.cutOff(incomplete);
      throw error;
    },
  );
  if (outcome.kind !== 'checked') list.cutOff(incomplete);
  if (outcome.kind === 'unknown-organization') throw new UnknownOrganizationError(org ?? '');
  if (outcome.kind === 'interrupted')
    return interrupted('interrupted: run it again; repairs made so far are kept');

  const { counts, found, repaired, loading } = outcome;
  const remaining = found - repaired;
  if (json) {
    const rest = { checked: counts, found, repaired, remaining, loading, complete: true };
    list.end(`],${JSON.stringify(rest).slice(1)}`);
  } else {
    for (const id of loading) {
      context.out(`${printable(id)}  is being loaded by a migration, so it was not checked\n`);
    }
    context.out(`${describe(counts)}: ${counted(found, 'fault')}, ${repaired} repaired.\n`);
  }
  if (remaining === 0) return { exitCode: 0 };
  return problem(
    repair
      ? `${counted(remaining, 'fault')} could not be repaired: follow their remedies, or run this again if names were being changed meanwhile`
      : `${counted(remaining, 'fault')}: ${adminCommand} fsck --repair repairs all that have only one possible repair`,
  );
}

/** What ends a list of faults that was not finished. */
const incomplete = '],"complete":false}';

function forMachines({ organizationId, kind, detail, isRepaired }: Fault) {
  return { organizationId, kind, detail, repaired: isRepaired };
}

/** A value that another program has left can be of any length: --json has it whole. */
const longValue = /"([^"]{600})[^"]+"/g;

function forPeople({ organizationId, kind, detail, isRepaired }: Fault): string {
  const text = printable(detail.replaceAll(longValue, '"$1…"'));
  const parts = [printable(organizationId), kind, text, isRepaired ? '[repaired]' : ''];
  return parts.filter((part) => part !== '').join('  ');
}

const nouns: Record<keyof Counts, string> = {
  organizations: 'organization',
  profiles: 'profile',
  usernames: 'username',
  deniedNames: 'denied name',
  apiKeys: 'API key',
  references: 'reference',
};

function describe(counts: Counts): string {
  const checked = Object.entries(nouns).map(([name, noun]) => counted(counts[name as keyof Counts], noun));
  return `Checked ${checked.join(', ')}`;
}
