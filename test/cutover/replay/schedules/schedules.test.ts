import { describe, expect, test } from '@jest/globals';
import { exploreSchedules, type Scenario } from './explore.ts';

const two: Scenario = { users: { a: 'x', b: 'y' }, names: ['x', 'y', 't'], changes: 3, faults: 1 };
const three: Scenario = { ...two, users: { a: 'x', b: 'y', c: 'z' }, names: ['x', 'y', 'z', 't'] };

describe('every schedule of a replay ends with both sides equal, and sets nothing aside:', () => {
  test.each<[string, Scenario]>([
    ['three users exchange names, without errors', { ...three, changes: 5, faults: 0 }],
    ['three users exchange names, with an error', { ...three, changes: 4 }],
    ['two users change names and avatars, with an error', { ...two, withAvatars: true }],
    ['users exchange names and state their own again, with an error', { ...two, withRepeats: true }],
    ['two users exchange names, with two errors', { ...two, faults: 2 }],
    ['users exchange names while names are banned and allowed again', { ...two, withDenylist: true }],
  ])('%s', (_name, scenario) => {
    const { states, atRest, violation } = exploreSchedules(scenario);
    expect(violation).toBeUndefined();
    expect(atRest).toBeGreaterThan(1);
    expect(states).toBeGreaterThan(500);
  });
});

describe('a mistake in the rules is found:', () => {
  test.each<[string, NonNullable<Scenario['mistake']>, Scenario, string]>([
    ['a name may be claimed before it is released', 'ignores-names', two, 'refuses a change'],
    [
      'changes of one user overtake each other',
      'ignores-users',
      { ...two, changes: 2, withAvatars: true },
      'differ in the end',
    ],
    [
      'changes overtake those of the denylist',
      'ignores-the-denylist',
      { ...two, changes: 2, withDenylist: true },
      'refuses a change',
    ],
    ['nothing waits for a request in doubt', 'does-not-wait', two, 'refuses a change'],
    ['what is sent is not marked as in doubt', 'does-not-mark', two, 'refuses a change'],
    // Two users who have exchanged their names would wait for each other for good.
    ['the current state is sent in place of the change', 'sends-the-current-state', two, 'refuses a change'],
  ])('%s', (_which, mistake, scenario, rule) => {
    const { violation } = exploreSchedules({ ...scenario, mistake });
    expect(violation?.rule).toContain(rule);
    expect(violation?.steps.length).toBeGreaterThan(3);
  });
});
