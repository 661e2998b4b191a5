import { groupBy } from '../../../lib/collections/group-by.ts';
import { counted, formatNumber } from '../../../lib/numbers.ts';
import { printable } from '../../../lib/system/terminal.ts';
import type { MigrationContext } from '../../../migration/context/context.ts';
import { warnings, type Issue, type Issues, type Reason } from '../../../migration/context/issues.ts';
import type { Assessment } from '../../../migration/engine/read/assess.ts';
import type { Reading } from '../../../migration/engine/read/reading.ts';

/** Issues of some reasons for people: how many, and the first few of each kind; '' if there are none. */
export function listIssues(issues: Issues, title: string, reasons: readonly Reason[]): string {
  const examples = issues.examples().filter(({ reason }) => reasons.includes(reason));
  const kinds = groupBy(examples, ({ entity, reason }) => `${entity}, ${reason}`);
  const lines = [...kinds].flatMap(([kind, own]) => {
    const [{ reason, entity }] = own;
    const count = issues.count(reason, entity);
    const more = formatNumber(count - own.length);
    return [
      `  ${kind}: ${formatNumber(count)}`,
      ...own.map((issue) => `    ${placeOf(issue)}  ${printable(issue.detail)}`),
      ...(count > own.length ? [`    … and ${more} more (--report FILE lists all)`] : []),
    ];
  });
  return lines.length === 0 ? '' : [title, ...lines].join('\n');
}

export function listWarnings(issues: Issues): string {
  return listIssues(issues, 'Warnings (the records are written as they are):', warnings);
}

/** Where a record stands, and whose it is, for people. */
export function placeOf(record: Omit<Issue, 'reason' | 'detail'>): string {
  const { where, organizationId, userId, username, entity } = record;
  const parts = [
    ...(organizationId === undefined ? [] : [`organization ${JSON.stringify(organizationId)}`]),
    ...(userId === undefined ? [] : [`user ${JSON.stringify(userId)}`]),
    ...(entity === 'denylist' && username !== undefined ? [`name ${JSON.stringify(username)}`] : []),
  ];
  return printable(parts.length === 0 ? where : `${where} (${parts.join(', ')})`);
}

// A statement about a whole row begins with a verb; one about a field, with the field's name.
const aboutRow = /^(?:is|begins) /;

/**
 * The remedy for records with problems. If most rows fail in the same way, the mapping or the file is wrong, not the
 * rows.
 */
export function remedyFor(count: number, issues: Issues, { read }: Reading, prefix: string): string {
  for (const [entity, rows] of read) {
    const common = issues.mostCommonInvalid(entity);
    if (common === undefined || common.count < 3 || common.count * 2 < rows) continue;
    const { where, detail } = common.example;
    const fault = aboutRow.test(detail) ? `${entity} cannot be read` : `the mapping of ${entity} is wrong`;
    return `${fault}: ${formatNumber(common.count)} of ${counted(rows, 'row')} fail in the same way, such as ${printable(where)}: ${printable(detail)}`;
  }
  return `${counted(count, 'record')} ${count === 1 ? 'has a problem' : 'have problems'}${prefix} --on-conflict skip or drop-username`;
}

/** The remedy for names of users who are not in the source, or may not be; '' for none. */
export function pruneRemedy(verb: 'apply with' | 'use', { freedByPrune, isFull }: Assessment): string {
  if (freedByPrune === 0) return '';
  return isFull
    ? `${verb} --prune, which removes users who are not in the source, `
    : `${verb} --prune if the users who have the names are no longer in the source, `;
}

/** The remedy for names of users who are newer in Redis than in the source; '' if there are none. */
export function trustRemedy(verb: 'apply with' | 'use', { issues, tallies }: MigrationContext): string {
  return issues.count('username-conflict') > 0 && tallies.of('profiles').newer > 0
    ? `${verb} --trust-source if the source is right where Redis is newer, `
    : '';
}
