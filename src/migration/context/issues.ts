import { createTextFile, WriteError, type TextFile } from '../../lib/files/text-file.ts';
import { UsageError } from '../errors.ts';
import type { RecordNames } from '../records/parse.ts';
import type { Entity, RecordOf } from '../records/records.ts';

/** What stops an apply before it writes, unless --on-conflict says otherwise. */
export const problems = ['invalid', 'username-conflict'] as const;

/** What an operator should know of a record that is taken as it is. */
export const warnings = [
  'duplicate',
  'denied-name-in-use',
  'unknown-organization',
  'unknown-user',
  'unresolved-reference',
  'unusual-value',
  'comparison-kept',
  'picture-not-copied',
  'revoked-key-left-out',
] as const;

/** What a verify finds: differences between the source and Redis. */
export const differing = [
  'missing',
  'different',
  /** Without a local write: apply leaves it alone unless --trust-source is given. */
  'newer-in-redis',
  'extra',
  'index',
] as const;

/** What an operator should know of a record; what a prune would remove; what a verify lists apart. */
export type Reason =
  | (typeof problems)[number]
  | (typeof warnings)[number]
  | (typeof differing)[number]
  | 'to-prune'
  | 'changed-here';

export interface Issue extends RecordNames {
  entity: Entity;
  reason: Reason;
  /** The record's place in the source, or its key in Redis. */
  where: string;
  /** One plain sentence. */
  detail: string;
}

/** Whose record it is. */
export function subjectOf(record: Pick<RecordOf[Entity], 'organizationId'>): RecordNames {
  const { organizationId, userId, username } = record as RecordNames;
  return { organizationId, userId, username };
}

/** Warns of a profile whose username is denied. */
export function reportDenied(issues: Issues, where: string, subject: RecordNames): void {
  const detail = `username ${JSON.stringify(subject.username)} is on the denylist: it is kept`;
  issues.add({ entity: 'profiles', reason: 'denied-name-in-use', where, detail, ...subject });
}

/** Issues shown of each kind; the report has all. */
const maxExamples = 10;
/** Names remembered, so that one denied by the source and by Redis is reported once. */
const maxDeniedNames = 100_000;
const maxKinds = 1000;

export type Issues = ReturnType<typeof openIssues>;

/** Collects issues; with `path`, each goes to that file as a line of JSON. */
export function openIssues(path?: string) {
  const file = path === undefined ? undefined : openReport(path);
  const counts: Partial<Record<Entity, Partial<Record<Reason, number>>>> = {};
  const examples: Issue[] = [];
  const denied = new Set<string>();
  const invalid = new Map<string, { count: number; example: Issue }>();
  return {
    add: (issue: Issue): void => {
      if (issue.reason === 'denied-name-in-use') {
        const name = JSON.stringify([issue.organizationId, issue.username]);
        if (denied.has(name)) return;
        if (denied.size < maxDeniedNames) denied.add(name);
      }
      const own = (counts[issue.entity] ??= {});
      const count = (own[issue.reason] ?? 0) + 1;
      own[issue.reason] = count;
      if (count <= maxExamples) examples.push(issue);
      if (issue.reason === 'invalid') {
        // Values differ from row to row; the kind of mistake does not.
        const kind = `${issue.entity} ${issue.detail.replaceAll(/"(?:[^"\\]|\\.)*"|\d+/g, '…')}`;
        const same = invalid.get(kind);
        if (same !== undefined) same.count += 1;
        else if (invalid.size < maxKinds) invalid.set(kind, { count: 1, example: issue });
      }
      file?.write(`${JSON.stringify(issue)}\n`);
    },
    count: (reasons: Reason | readonly Reason[], entity?: Entity): number => {
      let sum = 0;
      for (const own of entity === undefined ? Object.values(counts) : [counts[entity] ?? {}])
        for (const reason of [reasons].flat()) sum += own[reason] ?? 0;
      return sum;
    },
    /** The most frequent reason why rows of an entity are invalid: how many have it, and the first; undefined if none is. */
    mostCommonInvalid: (entity: Entity): { count: number; example: Issue } | undefined => {
      const own = [...invalid.values()].filter(({ example }) => example.entity === entity);
      return own.sort((one, other) => other.count - one.count)[0];
    },
    /** Issues by entity and reason. */
    counts: () => counts,
    /** The first few of each kind. */
    examples: (): readonly Issue[] => examples,
    /** Closes the report, flushed to the disk. If there were no issues, the file is left as it was before. */
    close: (): void => file?.close(),
    /** The same at the end of the work: if there were no issues, the file is empty. */
    complete: (): void => {
      file?.write('');
      file?.close();
    },
  };
}

function openReport(path: string): TextFile {
  try {
    return createTextFile(path, 'give --report another file');
  } catch (error) {
    throw error instanceof WriteError ? new UsageError(error.message) : error;
  }
}
