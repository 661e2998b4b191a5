import { expect, test } from '@jest/globals';
import { createWorkspace } from '../../../src/lib/bounded-memory/workspace.ts';
import { createSpool, type Entry } from '../../../src/migration/analysis/spool.ts';

test('entries are read in the order of the source, each with its decision', () => {
  const workspace = createWorkspace();
  const spool = createSpool(workspace);
  const entry = (seq: number): Entry => ({
    seq,
    entity: 'profiles',
    record: { organizationId: 'acme', userId: `u${seq}` },
    where: `profiles.ndjson:${seq}`,
    outcome: 'created',
  });
  for (const seq of [70, 3, 100, 4]) spool.add(entry(seq));
  spool.decide(100, 'nameless');
  spool.decide(3, 'superseded');
  expect([...spool.entries()]).toMatchObject([
    { ...entry(3), decision: 'superseded' },
    entry(4),
    entry(70),
    { ...entry(100), decision: 'nameless' },
  ]);
  expect(spool.size).toBe(4);
  workspace.close();
});
