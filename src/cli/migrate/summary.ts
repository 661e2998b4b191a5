import { counted, number } from '../../lib/numbers.ts';
import { printable, table } from '../../lib/terminal.ts';
import type { Applied, Chosen } from '../../migration/engine/commands.ts';
import type { Plan } from '../../migration/engine/apply.ts';
import type { Issue, Issues, Reason } from '../../migration/engine/issues.ts';
import type { Entity } from '../../migration/records/records.ts';
import type { Tally } from '../../migration/engine/writer.ts';

/** Numbers of one entity, or of all. */
export interface Figures {
  /** Rows of the source, readable or not. */
  read: number;
  created: number;
  updated: number;
  /** In Redis already, field by field. */
  unchanged: number;
  /** Left as they are in Redis, because they were changed here, or are newer here. */
  kept: number;
  /** Rows that another row of the same key supersedes. */
  duplicates: number;
  /** Rows that are no records. */
  invalid: number;
  /** Usernames wanted by two users. */
  conflicts: number;
  /** Records kept out. */
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

/** What a plan found, by entity. */
export function planFigures({ survey, rehearsal }: Plan, issues: Issues): Map<Entity, Figures> {
  const all = new Map<Entity, Figures>();
  for (const [entity, read] of survey.read) {
    all.set(entity, figuresOf(entity, read, rehearsal.tallies[entity], survey, issues));
  }
  return all;
}

/** What an apply has done, by entity. */
export function applyFigures({ entities, plan }: Applied, issues: Issues): Map<Entity, Figures> {
  const all = new Map<Entity, Figures>();
  for (const entity of plan.survey.read.keys()) {
    const state = entities[entity];
    const read = state?.read ?? 0;
    all.set(entity, figuresOf(entity, read, state?.tally, plan.survey, issues));
  }
  return all;
}

function figuresOf(
  entity: Entity,
  read: number,
  tally: Tally | undefined,
  { decisions }: Plan['survey'],
  issues: Issues,
): Figures {
  const invalid = issues.count('invalid', entity);
  return {
    read,
    created: tally?.created ?? 0,
    updated: tally?.updated ?? 0,
    unchanged: tally?.unchanged ?? 0,
    kept: (tally?.kept ?? 0) + (tally?.newer ?? 0),
    duplicates: decisions[entity].count('superseded'),
    invalid,
    conflicts: issues.count('username-conflict', entity),
    refused: invalid + decisions[entity].count('refused') + (tally?.taken ?? 0),
    warnings: warnings.reduce((sum, reason) => sum + issues.count(reason, entity), 0),
  };
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
    for (const { where, detail } of examples) lines.push(`    ${printable(where)}  ${printable(detail)}`);
    if (count > examples.length)
      lines.push(`    … and ${number(count - examples.length)} more (--report FILE lists all)`);
  }
  return lines.length === 0 ? [] : ['', title, ...lines];
}

export function listProblems(issues: Issues, title: string): string[] {
  return listIssues(issues, title, problems);
}

export function listWarnings(issues: Issues): string[] {
  return listIssues(issues, 'Warnings (the records are taken as they are):', warnings);
}

/** How many records keep an apply from writing. */
export function recordsWithProblems(found: number): string {
  return `${counted(found, 'record')} ${found === 1 ? 'has a problem' : 'have problems'}`;
}

/** Time and speed of a command's work. */
export function pace(startedAt: number, records: number): { seconds: number; recordsPerSecond: number } {
  const seconds = Math.max(1, Date.now() - startedAt) / 1000;
  return { seconds: Math.round(seconds * 1000) / 1000, recordsPerSecond: Math.round(records / seconds) };
}
