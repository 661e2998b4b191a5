import { describe, expect, test } from '@jest/globals';
import { authorityOf, modes, ruleOf, type Mode } from '../../src/cutover/modes.ts';

describe('a step from one mode to another', () => {
  test.each<[Mode, Mode, string]>([
    ['shadow', 'mirror', 'checked'],
    ['reverse', 'native', 'checked'],
    ['reverse', 'mirror', 'checked'],
    ['mirror', 'shadow', 'free'],
    ['native', 'shadow', 'forced'],
    ['native', 'mirror', 'impossible'],
    ['native', 'reverse', 'impossible'],
    ['shadow', 'reverse', 'forced'],
    ['mirror', 'reverse', 'checked'],
    ['shadow', 'native', 'forced'],
    ['mirror', 'native', 'forced'],
    ['reverse', 'shadow', 'forced'],
  ])('from %s to %s is %s', (from, to, kind) => {
    expect(ruleOf(from, to).kind).toBe(kind);
  });

  test('names the mode that it skips', () => {
    expect(ruleOf('shadow', 'native')).toMatchObject({ reason: 'a step from shadow to native skips mirror' });
    expect(ruleOf('reverse', 'shadow')).toMatchObject({
      reason: 'a step from reverse to shadow skips mirror',
    });
  });

  test('to the mode that holds is impossible', () => {
    for (const mode of modes) expect(ruleOf(mode, mode).kind).toBe('impossible');
  });
});

test('the authority changes between mirror and reverse only', () => {
  expect(modes.map(authorityOf)).toEqual(['legacy', 'legacy', 'redis', 'redis']);
});
