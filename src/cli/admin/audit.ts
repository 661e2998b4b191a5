import { Command } from 'commander';
import { formatInstant } from '../../lib/iso8601.ts';
import { readAudit, type AuditEntry } from '../../redis/audit.ts';
import { findSettings } from '../../redis/organizations.ts';
import { unknownOrganization, type AdminContext, type Report } from './context.ts';
import { organizationOption, withExamples } from './options.ts';
import { printable } from '../../lib/system/terminal.ts';

/** `admin audit`: who changed the denylist. */
export function auditCommand(context: AdminContext): Command {
  const audit = new Command('audit')
    .description('who changed the denylist, and usernames by it; oldest first')
    .addOption(organizationOption())
    .action(async (options: { org: string; json?: boolean }) => {
      context.finish(await showAudit(context, options.org, options.json ?? false), {});
    });
  return withExamples(audit, ['audit --org acme', 'audit --org acme --json']);
}

/** Printed page by page: a trail has up to a hundred thousand entries. */
async function showAudit(context: AdminContext, org: string, json: boolean): Promise<Report> {
  const { store, base } = await context.organization(org);
  if ((await findSettings(store, context.config().keyPrefix, org)) === undefined) {
    return unknownOrganization(org);
  }
  let separator = '[\n';
  for await (const page of readAudit(store, base)) {
    if (context.signal.aborted) return { kind: 'interrupted', message: 'interrupted' };
    for (const entry of page) {
      if (json) context.out(separator + JSON.stringify(forMachines(entry)));
      else context.out(`${forPeople(entry)}\n`);
      separator = ',\n';
    }
  }
  if (json) context.out(separator === '[\n' ? '[]\n' : '\n]\n');
  return { kind: 'done', json: undefined, text: '' };
}

function forMachines({ at, operation, by, details }: AuditEntry) {
  return { at: formatInstant(at), operation, by, details };
}

function forPeople({ at, operation, by, details }: AuditEntry): string {
  const facts = Object.entries(details)
    .filter(([, value]) => value !== '')
    .map(([name, value]) => `${name}=${printable(JSON.stringify(value))}`);
  return [new Date(at).toISOString(), by.padEnd(18), operation.padEnd(10), ...facts].join('  ');
}
