import { groupBy } from '../../../lib/collections/group-by.ts';
import { counted, formatNumber } from '../../../lib/numbers.ts';
import { printable } from '../../../lib/system/terminal.ts';
import type { MigrationContext } from '../../../migration/context/context.ts';
import { warnings, type Issue, type Issues, type Reason } from '../../../migration/context/issues.ts';
import type { Assessment } from '../../../migration/engine/assess.ts';
import type { Entity } from '../../../migration/records/records.ts';

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

/** Says so if most rows of an entity fail in the same way: the mapping or the file is wrong then, not the rows. */
export function commonFault(issues: Issues, read: ReadonlyMap<Entity, number>): string | undefined {
  for (const [entity, rows] of read) {
    const common = issues.mostCommonInvalid(entity);
    if (common === undefined || common.count < 3 || common.count * 2 < rows) continue;
    const { where, detail } = common.example;
    const fault = aboutRow.test(detail) ? `${entity} cannot be read` : `the mapping of ${entity} is wrong`;
    return `${fault}: ${formatNumber(common.count)} of ${counted(rows, 'row')} fail in the same way, such as ${printable(where)}: ${printable(detail)}`;
  }
  return undefined;
}

/**
 * The remedy for records with problems, after `start`. Users who have wanted names may have left the source, or be newer
 * in Redis.
 */
export function remedyFor(
  { issues, tallies }: MigrationContext,
  { problems, reading, freedByPrune, isFull }: Assessment,
  verb: 'apply with' | 'use',
  start: string,
  canPrune = true,
): string {
  const fault = commonFault(issues, reading.read);
  if (fault !== undefined) return fault;
  const prune = isFull
    ? '--prune, which removes users who are not in the source'
    : '--prune if the users who have the names are no longer in the source';
  const isNewer = issues.count('username-conflict') > 0 && tallies.of('profiles').newer > 0;
  const remedies = [
    ...(canPrune && freedByPrune > 0 ? [`${verb} ${prune}`] : []),
    ...(isNewer ? [`${verb} --trust-source if the source is right where Redis is newer`] : []),
    `correct the source, or ${verb} --on-conflict skip or drop-username`,
  ];
  return `${counted(problems, 'record')} ${problems === 1 ? 'has a problem' : 'have problems'}${start}${remedies.join(', ')}`;
}
