import { formatInstant } from '../../lib/iso8601.ts';
import { readAudit, type AuditEntry } from '../../redis/audit.ts';
import type { AdminCommand, AdminContext } from './context.ts';
import { done, interrupted, type CommandResult } from '../tool.ts';
import { createJsonList } from './json-list.ts';
import { organizationOption } from './options.ts';
import { printable } from '../../lib/system/terminal.ts';

/** `admin audit`: who changed the denylist, repaired data or switched the mode. */
export function addAudit(program: AdminCommand): void {
  program
    .command('audit')
    .description('list denylist changes, renames by bans, repairs by fsck and mode switches, oldest first')
    .requiredOption(...organizationOption)
    .examples('audit --org acme', 'audit --org acme --json')
    .runs(showAudit);
}

/** Prints page by page: there may be a hundred thousand entries. */
async function showAudit(
  context: AdminContext,
  { org, json = false }: { org: string; json?: boolean },
): Promise<CommandResult> {
  const { store, base } = await context.existingOrganization(org);
  const list = createJsonList(context.out);
  let isEmpty = true;
  try {
    for await (const page of readAudit(store, base)) {
      if (context.signal.aborted) return interrupted();
      for (const entry of page) {
        if (json) list.add({ ...entry, at: formatInstant(entry.at) });
        else context.out(`${forPeople(entry)}\n`);
        isEmpty = false;
      }
    }
    if (json) list.end();
  } finally {
    list.cutOff();
  }
  return done(undefined, isEmpty ? `${org} has no changes in its audit trail.` : '');
}

/** For people: details whose names in the trail do not say what they are. */
const namesForPeople: Readonly<Record<string, string>> = {
  before: 'names-before',
  after: 'names-after',
  number: 'epoch',
};

function forPeople({ at, operation, by, details }: AuditEntry): string {
  const facts = Object.entries(details)
    .filter(([, value]) => value !== '')
    .map(([name, value]) => `${namesForPeople[name] ?? name}=${printable(JSON.stringify(value))}`);
  return [new Date(at).toISOString(), by.padEnd(18), operation.padEnd(10), ...facts].join('  ');
}
