import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { createGroups } from '../../../src/lib/bounded-memory/groups.ts';
import { createPartitions, partitionCount } from '../../../src/lib/bounded-memory/partitions.ts';
import { createSorter } from '../../../src/lib/bounded-memory/sorter.ts';
import { createWorkspace, type Workspace } from '../../../src/lib/bounded-memory/workspace.ts';

let workspace: Workspace;

beforeEach(() => {
  workspace = createWorkspace();
});

afterEach(() => {
  workspace.close();
});

const line = fc.string({ unit: 'grapheme' }).filter((text) => !text.includes('\n') && text.isWellFormed());

test('lines are read sorted by code units, as often as needed, whether they fit into memory or not', () => {
  fc.assert(
    fc.property(fc.array(line, { maxLength: 300 }), fc.constantFrom(40, 400, 1_000_000), (lines, limit) => {
      const sorter = createSorter(workspace, limit);
      for (const each of lines) sorter.add(each);
      const sorted = lines.toSorted();
      expect([...sorter.sorted()]).toEqual(sorted);
      sorter.add('~');
      expect([...sorter.sorted()]).toEqual([...lines, '~'].toSorted());
    }),
    { numRuns: 40 },
  );
});

test('lines are read by partition, in order within each, whether they fit into memory or not', () => {
  const wide = fc.tuple(line, fc.constantFrom(0, 100, 20_000)).map(([text, pad]) => text + '.'.repeat(pad));
  const partition = fc.nat(partitionCount - 1);
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.oneof(fc.constant(7), partition), wide), { maxLength: 300 }),
      (added) => {
        const partitions = createPartitions(workspace);
        for (const [number, text] of added) partitions.add(number, text);
        const expected = Array.from({ length: partitionCount }, (_, number) =>
          added.flatMap(([own, text]) => (own === number ? [text] : [])),
        );
        expect([...partitions.all()]).toEqual(expected.filter((lines) => lines.length > 0));
      },
    ),
    { numRuns: 40 },
  );
});

test('a workspace returns what was appended, and leaves no file behind when its process is killed', async () => {
  const script = `
    import { createWorkspace } from './src/lib/bounded-memory/workspace.ts';
    const workspace = createWorkspace();
    const extents = ['one', 'other'].map((text) => workspace.append(Buffer.from(text)));
    process.stdout.write(extents.map((extent) => workspace.read(extent)).toReversed().join());
    setInterval(() => {}, 1000);`;
  const folder = mkdtempSync(join(tmpdir(), 'workspace-'));
  const child = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '--eval', script], {
    env: { ...process.env, NODE_OPTIONS: '', TMPDIR: folder },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [said] = (await once(child.stdout, 'data')) as [Buffer];
  child.kill('SIGKILL');
  await once(child, 'close');
  expect(said.toString()).toBe('other,one');
  expect(readdirSync(folder).filter((name) => name.startsWith('profile-bridge-'))).toEqual([]);
  rmSync(folder, { recursive: true });
});

test('values are read in groups by key, each group in order', () => {
  const key = fc.array(fc.string({ unit: 'binary', maxLength: 3 }), { minLength: 2, maxLength: 2 });
  fc.assert(
    fc.property(fc.array(key, { maxLength: 50 }), (keys) => {
      const groups = createGroups<{ key: string; seq: number }>(workspace);
      for (const [seq, each] of keys.entries()) groups.add(each, { key: JSON.stringify(each), seq });
      const expected = new Map<string, { key: string; seq: number }[]>();
      for (const [seq, each] of keys.entries()) {
        const name = JSON.stringify(each);
        expected.set(name, [...(expected.get(name) ?? []), { key: name, seq }]);
      }
      const found = [...groups.all()];
      expect(new Map(found.map((group) => [group[0]?.key, group]))).toEqual(expected);
      expect(found).toHaveLength(expected.size);
    }),
    { numRuns: 50 },
  );
});
