import { expect, test } from '@jest/globals';
import { createExpectedDenylist, createExpectedProfile } from '../../../scripts/rehearsal/expected.ts';

const initial = { username: 'ada', avatar: '', picture: '' };

test('an acknowledged change has to be seen from then on', () => {
  const profile = createExpectedProfile(initial);
  profile.acknowledged({ username: 'grace' });
  expect(profile.wrong(initial)).toEqual(['username']);
  expect(profile.wrong({ ...initial, username: 'grace' })).toEqual([]);
  expect(profile.username()).toBe('grace');
});

test('a change of unknown outcome may be seen or not, until another one is acknowledged', () => {
  const profile = createExpectedProfile(initial);
  profile.doubtful({ username: 'grace' });
  expect(profile.username()).toBeUndefined();
  expect(profile.wrong(initial)).toEqual([]);
  expect(profile.wrong({ ...initial, username: 'grace' })).toEqual([]);
  profile.acknowledged({ username: 'joan' });
  expect(profile.wrong({ ...initial, username: 'grace' })).toEqual(['username']);
});

test('a denied name that is missing, and one that nobody denied, are wrong', () => {
  const denylist = createExpectedDenylist();
  denylist.acknowledged('a', true);
  denylist.doubtful('b', true);
  expect(denylist.denied()).toEqual(['a']);
  expect(denylist.wrong(new Set(['a']))).toEqual([]);
  expect(denylist.wrong(new Set(['a', 'b']))).toEqual([]);
  expect(denylist.wrong(new Set(['c']))).toEqual(['a', 'c']);
});
