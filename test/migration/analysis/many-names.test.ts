import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { decideDuplicates } from '../../../src/migration/analysis/duplicates.ts';
import { decideNames } from '../../../src/migration/analysis/names.ts';
import { createSeen } from '../../../src/lib/bounded-memory/seen.ts';
import { createSpool } from '../../../src/migration/analysis/spool.ts';
import { createWorkspace, type Workspace } from '../../../src/lib/bounded-memory/workspace.ts';
import { openIssues } from '../../../src/migration/context/issues.ts';
import type { Organization, Organizations } from '../../../src/migration/context/organizations.ts';
import { useTestStore } from '../../support/use-store.ts';

const store = await useTestStore();
let workspace: Workspace;

beforeEach(() => {
  workspace = createWorkspace();
});

afterEach(() => {
  workspace.close();
});

const organization = { id: 'acme', settings: { comparison: 'exact' } } as Organization;
const organizations = { find: () => organization } as unknown as Organizations;

const neverPrunes = { isFull: true, isPruning: false, usernameToPrune: () => Promise.resolve(undefined) };

/** How often the event loop gets a turn during the work: the run's lock is renewed by a timer. */
async function turnsDuring(work: () => Promise<unknown>): Promise<number> {
  let turns = 0;
  let next = setImmediate(function count() {
    turns += 1;
    next = setImmediate(count);
  });
  try {
    await work();
    return turns;
  } finally {
    clearImmediate(next);
  }
}

test('the lock of a run can be renewed while many records are decided on', async () => {
  const spool = createSpool(workspace);
  const repeated = createSeen();
  for (let seq = 0; seq < 5000; seq += 1) {
    const userId = `u${seq}`;
    const record = { organizationId: 'acme', userId, username: `name-${seq}` };
    const previous = `name-${seq + 1}`;
    spool.add({ seq, entity: 'profiles', record, where: '', outcome: 'updated', previous });
    repeated.add('profiles acme', userId);
  }
  const context = { store, workspace, organizations, issues: openIssues() };
  expect(await turnsDuring(async () => await decideDuplicates(context, spool, repeated))).toBeGreaterThan(4);
  const choice = { ...neverPrunes, onConflict: 'abort' } as const;
  expect(await turnsDuring(async () => await decideNames(context, spool, choice))).toBeGreaterThan(4);
});

test('a chain of renames is refused in one go if its end is', async () => {
  const spool = createSpool(workspace);
  // A pass for each link would take longer than a test may.
  const count = 40_000;
  for (let seq = 0; seq < count; seq += 1) {
    const record = { organizationId: 'acme', userId: `u${seq}`, username: `name-${seq + 1}` };
    const isLast = seq === count - 1;
    const holder = isLast ? 'somebody else' : `u${seq + 1}`;
    const previous = `name-${seq}`;
    spool.add({ seq, entity: 'profiles', record, where: '', outcome: 'updated', holder, previous });
  }
  const issues = openIssues();
  const choice = { ...neverPrunes, onConflict: 'skip' } as const;
  const { renames } = await decideNames({ workspace, organizations, issues }, spool, choice);
  expect(renames).toEqual([]);
  expect(issues.count('username-conflict')).toBe(count);
});
