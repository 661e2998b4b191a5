import { counted, number } from '../../lib/numbers.ts';
import { printable, table } from '../../lib/system/terminal.ts';
import type { Tallies, Tally } from '../../migration/analysis/outcomes.ts';
import type { Chosen } from '../../migration/engine/read/choose.ts';
import type { Issue, Issues, Reason } from '../../migration/engine/issues.ts';
import type { PrunePlan } from '../../migration/engine/write/prune.ts';
import type { Reading } from '../../migration/engine/read/reading.ts';
import type { Entity } from '../../migration/records/records.ts';
import type { Source } from '../../migration/sources/source.ts';

/** Numbers of one entity, or of all. */
export interface Figures {
  /** Rows of the source, readable or not. */
  read: number;
  created: number;
  updated: number;
  /** Already in Redis, field by field. */
  unchanged: number;
  /** Left as they are in Redis, because they were changed through the bridge or are newer. */
  kept: number;
  /** Rows that another row with the same identity supersedes. */
  duplicates: number;
  /** Rows that are not valid records. */
  invalid: number;
  /** Usernames wanted by two users. */
  conflicts: number;
  /** Records that are not written. */
  refused: number;
  warnings: number;
}

const problems: readonly Reason[] = ['invalid', 'username-conflict'];
const warnings: readonly Reason[] = [
  'duplicate',
  'denied-name-in-use',
  'unknown-organization',
  'unknown-user',
  'unresolved-reference',
  'unusual-value',
  'comparison-kept',
  'picture-not-copied',
  'revoked-key-left-out',
];

/** The actual or planned outcomes of the rows that were read, by entity. */
export function figuresOf({ read }: Reading, tallies: Tallies, issues: Issues): Map<Entity, Figures> {
  const all = new Map<Entity, Figures>();
  for (const [entity, rows] of read) {
    const invalid = issues.count('invalid', entity);
    const own = fatesOf(tallies.of(entity));
    all.set(entity, {
      read: rows,
      ...own,
      invalid,
      conflicts: issues.count('username-conflict', entity),
      refused: own.refused + invalid,
      warnings: warnings.reduce((sum, reason) => sum + issues.count(reason, entity), 0),
    });
  }
  return all;
}

function fatesOf({ created, updated, unchanged, kept, newer, duplicate, refused, taken }: Tally) {
  return {
    created,
    updated,
    unchanged,
    kept: kept + newer,
    duplicates: duplicate,
    refused: refused + taken,
  };
}

/** The same for each organization, of the rows that are records. */
export function organizationFigures(tallies: Tallies): Record<string, object> {
  const all = [...tallies.byOrganization()].map(([id, tally]) => [id, fatesOf(tally)] as const);
  return Object.fromEntries(all);
}

/** The sum of all entities' figures. */
export function sumOf(all: ReadonlyMap<Entity, Figures>): Figures {
  const sum: Figures = {
    read: 0,
    created: 0,
    updated: 0,
    unchanged: 0,
    kept: 0,
    duplicates: 0,
    invalid: 0,
    conflicts: 0,
    refused: 0,
    warnings: 0,
  };
  for (const figures of all.values()) {
    for (const name of Object.keys(sum) as (keyof Figures)[]) sum[name] += figures[name];
  }
  return sum;
}

/** What every command's JSON begins with. */
export function head(command: string, { run, source }: Pick<Chosen, 'run' | 'source'>) {
  return { command, run, source: source.name };
}

/** A table of figures; columns that are zero throughout are left out. */
export function figuresTable(all: ReadonlyMap<Entity, Figures>): string {
  const sum = sumOf(all);
  const always = new Set<keyof Figures>(['read', 'created', 'updated', 'unchanged']);
  const names = (Object.keys(sum) as (keyof Figures)[]).filter((name) => always.has(name) || sum[name] > 0);
  const rows: [string, Figures][] = all.size > 1 ? [...all, ['all', sum]] : [...all];
  return table(
    ['', ...names],
    rows.map(([title, figures]) => [title, ...names.map((name) => number(figures[name]))]),
    names,
  );
}

/** Issues of some reasons for people: how many, and the first few of each kind. */
export function listIssues(issues: Issues, title: string, reasons: readonly Reason[]): string[] {
  const lines: string[] = [];
  const kinds = new Map<string, Issue[]>();
  for (const issue of issues.examples()) {
    if (!reasons.includes(issue.reason)) continue;
    const kind = `${issue.entity}, ${issue.reason}`;
    kinds.set(kind, [...(kinds.get(kind) ?? []), issue]);
  }
  for (const [kind, examples] of kinds) {
    const [first] = examples;
    if (first === undefined) continue;
    const count = issues.count(first.reason, first.entity);
    lines.push(`  ${kind}: ${number(count)}`);
    for (const issue of examples) {
      lines.push(`    ${printable(`${issue.where}${subjectOf(issue)}`)}  ${printable(issue.detail)}`);
    }
    if (count > examples.length)
      lines.push(`    … and ${number(count - examples.length)} more (--report FILE lists all)`);
  }
  return lines.length === 0 ? [] : ['', title, ...lines];
}

/** Whose record it is, for people. */
export function subjectOf({
  organizationId,
  userId,
  username,
  entity,
}: Pick<Issue, 'organizationId' | 'userId' | 'username' | 'entity'>): string {
  const parts = [
    ...(organizationId === undefined ? [] : [`organization ${JSON.stringify(organizationId)}`]),
    ...(userId === undefined ? [] : [`user ${JSON.stringify(userId)}`]),
    ...(entity === 'denylist' && username !== undefined ? [`name ${JSON.stringify(username)}`] : []),
  ];
  return parts.length === 0 ? '' : ` (${parts.join(', ')})`;
}

export function listProblems(issues: Issues, title: string): string[] {
  return listIssues(issues, title, problems);
}

export function listWarnings(issues: Issues): string[] {
  return listIssues(issues, 'Warnings (the records are written as they are):', warnings);
}

// What is said of a whole row begins with a verb; what is said of a field, with its name.
const aboutRow = /^(?:is|begins) /;

/**
 * The remedy for records with problems. Where most rows fail in one way, the mapping is wrong, or else the file, not
 * the rows.
 */
export function remedyFor(count: number, issues: Issues, { read }: Reading, prefix: string): string {
  for (const [entity, rows] of read) {
    const common = issues.mostCommonInvalid(entity);
    if (common === undefined || common.count < 3 || common.count * 2 < rows) continue;
    const { where, detail } = common.example;
    const fault = aboutRow.test(detail) ? `${entity} cannot be read` : `the mapping of ${entity} is wrong`;
    return `${fault}: ${number(common.count)} of ${counted(rows, 'row')} fail in the same way, such as ${printable(where)}: ${printable(detail)}`;
  }
  return `${counted(count, 'record')} ${count === 1 ? 'has a problem' : 'have problems'}${prefix} --on-conflict skip or drop-username`;
}

/** What a prune removes, for people. */
export function describePruning({ toRemove, spared }: PrunePlan): string[] {
  const counts = [...toRemove].map(([entity, count]) =>
    counted(count, entity === 'denylist' ? 'denied name' : entity.slice(0, -1)),
  );
  return [
    '',
    `--prune removes what the source no longer has: ${counts.length === 0 ? 'nothing' : counts.join(', ')}.`,
    ...describeSpared(spared),
  ];
}

export function describeSpared(spared: ReadonlyMap<Entity, number>): string[] {
  return [...spared].map(
    ([entity, rows]) =>
      `Not removed: what looks gone from ${entity}, since it may be among its invalid rows (${counted(rows, 'row')}); correct those, then prune again.`,
  );
}

/** The files in the source's folder that are not read: their names may be misspelled. */
export function describeIgnored({ ignored }: Source): string[] {
  return ignored.length === 0
    ? []
    : [`Not read, because they are not named after an entity: ${ignored.join(', ')}`];
}

/** Time and speed of a command's work. */
export function pace(startedAt: number, records: number): { seconds: number; recordsPerSecond: number } {
  const seconds = Math.max(1, Date.now() - startedAt) / 1000;
  return { seconds: Math.round(seconds * 1000) / 1000, recordsPerSecond: Math.round(records / seconds) };
}
