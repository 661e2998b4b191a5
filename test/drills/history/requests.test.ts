import { expect, test } from '@jest/globals';
import { countLostWrites } from '../../../scripts/drills/history/lost-writes.ts';
import { partsOf } from '../../../scripts/drills/history/requests.ts';
import { lengthen, type Command } from '../../../scripts/drills/history/turns.ts';
import { profileOutcome, type Input } from '../../../scripts/drills/checker/organization.ts';
import type { Answer } from '../../support/requests/client.ts';

const answer = (status: number, body?: unknown): Answer => ({
  status,
  body,
  headers: {},
  text: '',
  bytes: Buffer.alloc(0),
});

test('a ban is one part for each name, and what the answer does not name is banned', () => {
  const command: Command = {
    kind: 'ban',
    replacements: [
      ['a', 'b'],
      ['c', 'd'],
    ],
  };
  const failures = [{ username: 'c', replacement: 'd', reason: 'replacement-in-use' }];
  const parts = partsOf(command, answer(200, { usernamesNotAdded: ['c'], failures }));
  expect(parts.map(({ outcome }) => outcome)).toEqual(['banned', 'replacement-in-use']);
});

test.each<[string, Answer | undefined]>([
  ['503', answer(503)],
  ['no answer', undefined],
])('after %s the outcome of a write is unknown, and a read is left out', (_, given) => {
  const put: Command = { kind: 'put', user: 'u', username: 'a' };
  expect(partsOf(put, given)).toEqual([{ input: put, outcome: undefined }]);
  expect(partsOf({ kind: 'read', user: 'u' }, given)).toEqual([]);
});

test('a response that the operation does not have is an error', () => {
  expect(() => partsOf({ kind: 'remove', usernames: ['a'] }, answer(204))).toThrow('answered 204');
});

test('a long list is refused as a whole, though its names were looked up one after another', () => {
  const command = lengthen({ kind: 'overwrite', usernames: ['a', 'b'] });
  const parts = partsOf(command, answer(409, { usernamesInUse: ['b'] }));
  expect(parts).toEqual([
    { input: { kind: 'look-up', username: 'a' }, outcome: 'not in use' },
    { input: { kind: 'look-up', username: 'b' }, outcome: 'in use' },
  ]);
});

test('a write is lost when a later read shows what it had replaced', () => {
  const put = (avatar: string): Input => ({ kind: 'put', user: 'u', avatar });
  const saw = (avatar: string): string => profileOutcome({ avatar });
  const history = [
    { input: put('v1'), outcome: saw('v1'), sentAt: 0, answeredAt: 1 },
    { input: put('v2'), outcome: saw('v2'), sentAt: 2, answeredAt: 3 },
  ];
  const read = (avatar: string) => ({
    input: { kind: 'read', user: 'u' } as const,
    outcome: saw(avatar),
    sentAt: 4,
    answeredAt: 5,
  });
  expect(countLostWrites([...history, read('v2')])).toBe(0);
  expect(countLostWrites([...history, read('v1')])).toBe(1);
  expect(countLostWrites([...history, read('v0')])).toBe(2);
});
