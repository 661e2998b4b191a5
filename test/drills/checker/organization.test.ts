import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { checkLinearizability, type Operation } from '../../../scripts/drills/checker/linearizability.ts';
import {
  inUseOutcome,
  mergeUnseenAvatars,
  organizationModel,
  profileOutcome,
  type Input,
} from '../../../scripts/drills/checker/organization.ts';

/** One call after another, each with its outcome; undefined: unknown. */
function verdict(calls: readonly (readonly [Input, string | undefined])[]): string {
  const history = calls.map(([input, outcome], position): Operation<Input> => ({
    input,
    outcome,
    sentAt: position * 2,
    answeredAt: outcome === undefined ? Infinity : position * 2 + 1,
  }));
  return checkLinearizability(organizationModel('exact'), history).kind;
}

const put = (user: string, username: string): Input => ({ kind: 'put', user, username });
const named = (username: string): string => profileOutcome({ username });
const ban = (username: string, replacement: string, banned: string[] = [username]): Input => ({
  kind: 'ban',
  username,
  replacement,
  banned,
});
const read = (user: string): Input => ({ kind: 'read', user });

describe('what the contract allows', () => {
  test.each<[string, (readonly [Input, string | undefined])[]]>([
    [
      'a second user of a name is refused until the first gives it up',
      [
        [put('u1', 'a'), named('a')],
        [put('u2', 'a'), 'taken'],
        [put('u1', 'b'), named('b')],
        [put('u2', 'a'), named('a')],
      ],
    ],
    [
      'a banned name is replaced, and nobody gets it again',
      [
        [put('u1', 'a'), named('a')],
        [ban('a', 'b'), 'banned'],
        [read('u1'), named('b')],
        [put('u2', 'a'), 'denied'],
        [{ kind: 'remove', username: 'a' }, 'deleted'],
        [put('u2', 'a'), named('a')],
      ],
    ],
    [
      'a user of a name that is denied all the same is renamed, if the replacement can be had',
      [
        [{ kind: 'overwrite', usernames: ['A'] }, 'overwritten'],
        [put('u1', 'a'), named('a')],
        [put('u2', 'b'), named('b')],
        [{ kind: 'compare', comparison: 'case-insensitive' }, 'compared'],
        [ban('A', 'b'), 'banned'],
        [read('u1'), named('a')],
        [ban('A', 'c'), 'banned'],
        [read('u1'), named('c')],
        [put('u2', 'c'), 'taken'],
      ],
    ],
    [
      'an overwrite with names in use changes nothing',
      [
        [put('u1', 'a'), named('a')],
        [{ kind: 'overwrite', usernames: ['b', 'a'] }, inUseOutcome(['a'])],
        [put('u2', 'b'), named('b')],
      ],
    ],
    [
      'names that differ in case become one name',
      [
        [put('u1', 'a'), named('a')],
        [{ kind: 'compare', comparison: 'case-insensitive' }, 'compared'],
        [put('u2', 'A'), 'taken'],
        [put('u1', 'A'), named('A')],
      ],
    ],
    [
      'a ban whose answer was lost holds, or does not',
      [
        [put('u1', 'a'), named('a')],
        [ban('a', 'b'), undefined],
        [read('u1'), named('a')],
        [read('u1'), named('b')],
        [put('u1', 'a'), 'denied'],
      ],
    ],
  ])('%s', (_, calls) => {
    expect(verdict(calls)).toBe('linearizable');
  });
});

describe('what the contract forbids', () => {
  test.each<[string, (readonly [Input, string | undefined])[]]>([
    [
      'two users have one name',
      [
        [put('u1', 'a'), named('a')],
        [put('u2', 'a'), named('a')],
      ],
    ],
    [
      'two users get one name from two denied ones',
      [
        [put('u1', 'a'), named('a')],
        [put('u2', 'b'), named('b')],
        [ban('a', 'c'), 'banned'],
        [ban('b', 'c'), 'banned'],
      ],
    ],
    [
      'a denied name is claimed',
      [
        [ban('a', 'b'), 'banned'],
        [put('u1', 'a'), named('a')],
      ],
    ],
    [
      'a name is denied, and its user keeps it',
      [
        [put('u1', 'a'), named('a')],
        [ban('a', 'b'), 'banned'],
        [read('u1'), named('a')],
      ],
    ],
    [
      'a request that was refused changes the avatar all the same',
      [
        [put('u1', 'a'), named('a')],
        [{ kind: 'put', user: 'u2', username: 'a', avatar: 'v1' }, 'taken'],
        [read('u2'), profileOutcome({ avatar: 'v1' })],
      ],
    ],
    [
      'of an overwrite only a part holds',
      [
        [{ kind: 'overwrite', usernames: ['a', 'b'] }, undefined],
        [put('u1', 'a'), 'denied'],
        [put('u1', 'b'), named('b')],
      ],
    ],
    [
      'an overwrite drops a name that was denied after it',
      [
        [{ kind: 'overwrite', usernames: ['a'] }, 'overwritten'],
        [ban('b', 'c'), 'banned'],
        [put('u1', 'b'), named('b')],
      ],
    ],
    [
      'names that are compared without case are used by two users',
      [
        [{ kind: 'compare', comparison: 'case-insensitive' }, 'compared'],
        [put('u1', 'a'), named('a')],
        [put('u2', 'A'), named('A')],
      ],
    ],
    [
      'a name is free after a rebuild that changed nothing else',
      [
        [put('u1', 'a'), named('a')],
        [{ kind: 'compare', comparison: 'case-insensitive' }, 'compared'],
        [put('u2', 'a'), named('a')],
      ],
    ],
    [
      'the denylist is empty after a rebuild',
      [
        [ban('a', 'b'), 'banned'],
        [{ kind: 'compare', comparison: 'case-insensitive' }, undefined],
        [{ kind: 'look-up-denied', username: 'a' }, 'not denied'],
      ],
    ],
    [
      'a name in use leaves the denylist',
      [
        [put('u1', 'a'), named('a')],
        [{ kind: 'remove', username: 'a' }, 'deleted'],
      ],
    ],
  ])('%s', (_, calls) => {
    expect(verdict(calls)).toBe('violation');
  });
});

/** Calls that took effect, or not, one after another; some answers were lost, some are those of another call. */
const histories = fc
  .array(
    fc.record({
      user: fc.constantFrom('u1', 'u2'),
      username: fc.constantFrom(undefined, 'a', 'b'),
      kind: fc.constantFrom('put', 'put', 'read'),
      fate: fc.constantFrom('answered', 'answered', 'lost', 'never happened', 'wrong'),
      setsAvatar: fc.boolean(),
      took: fc.nat(3),
    }),
    { minLength: 2, maxLength: 10 },
  )
  .map((calls) => {
    const { initial, step } = organizationModel('exact');
    let state = initial;
    let previous = 'no profile';
    return calls.map(({ user, username, kind, fate, setsAvatar, took }, at): Operation<Input> => {
      const avatar = setsAvatar ? `avatar-${at}` : undefined;
      const input: Input = kind === 'read' ? read(user) : { kind: 'put', user, username, avatar };
      if (fate === 'never happened') return { input, sentAt: at, answeredAt: Infinity, outcome: undefined };
      const [way] = step(state, input);
      state = way?.after ?? state;
      if (fate === 'lost') return { input, sentAt: at, answeredAt: Infinity, outcome: undefined };
      const outcome = fate === 'wrong' ? previous : way?.outcome;
      previous = way?.outcome ?? previous;
      return { input, sentAt: at, answeredAt: at + took + 0.5, outcome };
    });
  });

test('a history has the same verdict where the avatars that nobody saw are merged', () => {
  const verdicts = new Set<string>();
  const check = (history: readonly Operation<Input>[]) =>
    checkLinearizability(organizationModel('exact'), history).kind;
  fc.assert(
    fc.property(histories, (history) => {
      const expected = check(history);
      verdicts.add(expected);
      expect(check(mergeUnseenAvatars(history))).toBe(expected);
    }),
    { numRuns: 500 },
  );
  expect(verdicts).toEqual(new Set(['linearizable', 'violation']));
});
