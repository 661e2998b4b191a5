import { objectsKey, profileKey } from '../../redis/keys.ts';
import type { MigrationContext } from '../engine/context.ts';
import type { Found } from './crosscheck.ts';
import { createAllDecisions, type Decisions } from './decisions.ts';
import { createSorter, type Sorter } from './sorter.ts';
import type { Workspace } from './workspace.ts';
import type { Checks, Collected } from './facts.ts';
import type { Issues, Reason } from '../engine/issues.ts';
import type { Entity } from '../records/records.ts';
import type { References } from './references.ts';
import type { Scope } from '../sources/scope.ts';

/** Judges what the survey has collected: decides on records, and reports what an operator should know. */
export async function judge(
  scope: Scope,
  context: MigrationContext,
  checks: Checks,
  references: References,
): Promise<Record<Entity, Decisions>> {
  const { workspace, issues } = context;
  const decisions = createAllDecisions(workspace);
  const superseded = createSorter(workspace);
  for (const entity of scope.entities) {
    for await (const seq of supersededIn(entity, checks.identity[entity].found(), issues)) {
      await decisions[entity].add(seq, 'superseded');
      if (entity === 'profiles') await superseded.add(pad(seq));
    }
  }
  await judgeNames(
    scope,
    context,
    withoutSuperseded(checks.names.found(), superseded, workspace),
    decisions.profiles,
  );
  for await (const found of checks.denied.found()) {
    tell(
      issues,
      'denied-name-in-use',
      found,
      ({ username }) => `username ${show(username)} is on the denylist: it is kept`,
    );
  }
  await judgeReferences(context, checks, references);
  return decisions;
}

/** Of records of one key the newest holds, at a tie the later one. Gives the places of the others. */
async function* supersededIn(
  entity: Entity,
  found: AsyncIterable<Found>,
  issues: Issues,
): AsyncGenerator<number> {
  let best: Found | undefined;
  for await (const next of found) {
    if (best === undefined || next.isFirst) {
      best = next;
      continue;
    }
    const holds = changed(next) >= changed(best) ? next : best;
    const other = holds === next ? best : next;
    best = holds;
    const where = collected(holds).where;
    tell(
      issues,
      'duplicate',
      other,
      () =>
        `stands for the same as ${where}, which ${entity === 'profiles' ? 'is newer or comes later' : 'comes later'} and holds`,
    );
    yield other.seq;
  }
}

function changed(found: Found): number {
  return collected(found).updatedAt ?? -1;
}

/** Found usernames, without those of superseded records. */
async function* withoutSuperseded(
  found: AsyncIterable<Found>,
  superseded: Sorter,
  workspace: Workspace,
): AsyncGenerator<Found> {
  // Two sorts, so that however many there are, none has to be remembered.
  const bySeq = createSorter(workspace);
  for await (const seq of superseded.sorted()) await bySeq.add(seq);
  for await (const each of found) await bySeq.add(pad(each.seq) + JSON.stringify(each));
  const byName = createSorter(workspace);
  let dropped = '';
  for await (const line of bySeq.sorted()) {
    const seq = line.slice(0, 16);
    if (line.length === 16) dropped = seq;
    else if (seq !== dropped) {
      const { organizationId, key } = JSON.parse(line.slice(16)) as Found;
      await byName.add(`${organizationId}\u0001${key}\u0001${line}`);
    }
  }
  let group = '';
  for await (const line of byName.sorted()) {
    const [organizationId = '', key = ''] = line.split('\u0001', 2);
    const each = JSON.parse(line.slice(organizationId.length + key.length + 18)) as Found;
    yield { ...each, isFirst: `${organizationId}\u0001${key}` !== group };
    group = `${organizationId}\u0001${key}`;
  }
}

/** Of users who want one name, whoever has it in Redis keeps it, or else the first one in the source gets it. */
async function judgeNames(
  { onConflict }: Scope,
  { store, organizations, issues }: MigrationContext,
  found: AsyncIterable<Found>,
  decisions: Decisions,
): Promise<void> {
  const refuse = async (one: Found, other: Found): Promise<void> => {
    const { userId, where } = collected(other);
    tell(
      issues,
      'username-conflict',
      one,
      ({ username }) => `username ${show(username)} is also that of user ${show(userId)} at ${where}`,
    );
    await decisions.add(one.seq, onConflict === 'drop-username' ? 'nameless' : 'refused');
  };
  let holder: string | null = null;
  let winner: Found | undefined;
  for await (const next of found) {
    if (winner === undefined || next.isFirst) {
      const { base, index } = await organizations.find(next.organizationId);
      const rows = JSON.stringify([[collected(next).userId, next.key]]);
      holder = (await store.migrateRead(base, index, rows))[0]?.[1] ?? null;
      winner = next;
    } else if (collected(next).userId === holder) {
      await refuse(winner, next);
      winner = next;
    } else {
      await refuse(next, winner);
    }
  }
}

/** What the source does not hold may be in Redis. */
async function judgeReferences(
  { store, organizations, issues }: MigrationContext,
  checks: Checks,
  references: References,
): Promise<void> {
  /** Those that are not in Redis either. */
  const absent = async (
    found: readonly Found[],
    isThere: (base: string, key: string) => Promise<number>,
  ): Promise<Found[]> => {
    const there = await Promise.all(
      found.map(async ({ organizationId, key }) => {
        const { base, exists } = await organizations.find(organizationId);
        return exists ? await isThere(base, key) : 0;
      }),
    );
    return found.filter((_, position) => there[position] !== 1);
  };
  for await (const some of batches(checks.users.found())) {
    for (const found of await absent(
      some,
      async (base, user) => await store.exists(profileKey(base, user)),
    )) {
      tell(issues, 'unknown-user', found, () => `user ${show(found.key)} has no profile`);
    }
  }
  for await (const some of batches(references.missing())) {
    const missing = await absent(some, async (base, key) => await store.hexists(objectsKey(base), key));
    for (const found of missing) {
      const [datasource, definition] = found.key.split('\n');
      const detail = `object ${show(definition)} of datasource ${show(datasource)} is not in the catalogue: references to it are kept without a URL`;
      tell(issues, 'unresolved-reference', found, () => detail);
    }
  }
}

const batchSize = 500;

async function* batches<Value>(values: AsyncIterable<Value>): AsyncGenerator<Value[]> {
  let batch: Value[] = [];
  for await (const value of values) {
    batch.push(value);
    if (batch.length < batchSize) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}

function tell(issues: Issues, reason: Reason, found: Found, detail: (of: Collected) => string): void {
  const own = collected(found);
  issues.add({
    entity: own.entity,
    reason,
    where: own.where,
    detail: detail(own),
    organizationId: found.organizationId,
    ...(own.userId !== undefined && { userId: own.userId }),
    ...(own.username !== undefined && { username: own.username }),
  });
}

function collected(found: Found): Collected {
  return found.payload as Collected;
}

function pad(seq: number): string {
  return String(seq).padStart(16, '0');
}

function show(text: string | undefined): string {
  return JSON.stringify(text ?? '');
}
