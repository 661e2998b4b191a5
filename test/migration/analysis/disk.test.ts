import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { createCrosscheck, type Question } from '../../../src/migration/analysis/crosscheck.ts';
import { createDecisions } from '../../../src/migration/analysis/decisions.ts';
import { fingerprint } from '../../../src/migration/analysis/fingerprint.ts';
import { createFingerprintSet } from '../../../src/migration/analysis/fingerprint-set.ts';
import { createMarks } from '../../../src/migration/analysis/marks.ts';
import { byCodeUnits, createSorter } from '../../../src/migration/analysis/sorter.ts';
import { createWorkspace, type Workspace } from '../../../src/migration/analysis/workspace.ts';

let workspace: Workspace;

beforeEach(() => {
  workspace = createWorkspace();
});

afterEach(() => {
  workspace.close();
});

async function all<Value>(values: AsyncIterable<Value>): Promise<Value[]> {
  const list: Value[] = [];
  for await (const value of values) list.push(value);
  return list;
}

const line = fc.string({ unit: 'grapheme' }).filter((text) => !text.includes('\n') && text.isWellFormed());

test('lines come sorted by code units, whether they fit into memory or not, as often as asked', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(line, { maxLength: 300 }),
      fc.constantFrom(40, 400, 1_000_000),
      async (lines, limit) => {
        const sorter = createSorter(workspace, limit);
        for (const each of lines) await sorter.add(each);
        const sorted = lines.toSorted(byCodeUnits);
        expect(await all(sorter.sorted())).toEqual(sorted);
        await sorter.add('~');
        expect(await all(sorter.sorted())).toEqual([...lines, '~'].toSorted(byCodeUnits));
      },
    ),
    { numRuns: 40 },
  );
});

test('fingerprints beyond memory are all remembered', () => {
  const [one, other] = [createFingerprintSet(workspace), createFingerprintSet(workspace)];
  const count = 600_000;
  for (let at = 0; at < count; at += 1) one.add(fingerprint('o', String(at)));
  for (let at = 0; at < count; at += 1) if (at % 100_000 !== 7) other.add(fingerprint('o', String(at)));
  const missing = createMarks();
  expect(one.markMissingIn(other, missing)).toBe(6);
  for (let at = 7; at < count; at += 100_000) expect(missing.has(fingerprint('o', String(at)))).toBe(true);
  const repeated = createMarks();
  one.markRepeated(repeated);
  expect(repeated.isEmpty).toBe(true);
  one.add(fingerprint('o', '5'));
  one.markRepeated(repeated);
  expect(repeated.has(fingerprint('o', '5'))).toBe(true);
  one.close();
  other.close();
});

test('a fingerprint knows where one text ends and the other begins', () => {
  expect(fingerprint('ab', 'c')).not.toBe(fingerprint('a', 'bc'));
  expect(fingerprint('ab', 'c')).toBe(fingerprint('ab', 'c'));
  expect(Number.isSafeInteger(fingerprint('é', '👩‍👩‍👧'))).toBe(true);
});

describe('a crosscheck', () => {
  const key = fc.constantFrom('a', 'b', 'c', 'd\ne');
  const entry = fc.record({
    side: fc.constantFrom('a' as const, 'b' as const),
    id: fc.constantFrom('x', 'y'),
    key,
  });
  const answers: Record<Question, (as: number, bs: number) => boolean> = {
    repeated: (as) => as > 1,
    shared: (as, bs) => as > 0 && bs > 0,
    missing: (as, bs) => as === 0 && bs > 0,
  };

  test.each(['repeated', 'shared', 'missing'] as const)(
    'finds exactly the keys that are %s',
    async (question) => {
      await fc.assert(
        fc.asyncProperty(fc.array(entry, { maxLength: 20 }), async (entries) => {
          const check = createCrosscheck(workspace, question);
          for (const { side, id, key: own } of entries) check.note(side, fingerprint(id, own));
          const isAny = check.settle();
          for (const [seq, { side, id, key: own }] of entries.entries()) {
            if (check.concerns(fingerprint(id, own))) await check.collect(side, id, own, seq, { seq });
          }
          const sought = question === 'repeated' ? 'a' : 'b';
          const expected = entries.flatMap(({ side, id, key: own }, seq) => {
            const same = entries.filter((other) => other.id === id && other.key === own);
            const as = same.filter((other) => other.side === 'a').length;
            return side === sought && answers[question](as, same.length - as) ? [seq] : [];
          });
          const found = await all(check.found());
          expect(found.map(({ seq }) => seq).toSorted((a, b) => a - b)).toEqual(expected);
          expect(found.every(({ seq, payload }) => (payload as { seq: number }).seq === seq)).toBe(true);
          if (expected.length > 0) expect(isAny).toBe(true);
        }),
      );
    },
  );
});

test('decisions are read in the order of their places, part by part', async () => {
  const decisions = createDecisions(workspace);
  await decisions.add(70, 'refused');
  await decisions.add(3, 'superseded');
  await decisions.add(4, 'nameless');
  const reader = decisions.reader();
  expect([...(await reader.upTo(4))]).toEqual([[3, 'superseded']]);
  expect([...(await reader.upTo(70))]).toEqual([[4, 'nameless']]);
  expect([...(await reader.upTo(100))]).toEqual([[70, 'refused']]);
  expect([...(await reader.upTo(200))]).toEqual([]);
  expect(decisions.count('refused')).toBe(1);
});

test('a workspace takes its folder with it', () => {
  const folder = dirname(workspace.newFile());
  expect(existsSync(folder)).toBe(true);
  workspace.close();
  expect(existsSync(folder)).toBe(false);
});
