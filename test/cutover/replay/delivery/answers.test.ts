import { describe, expect, test } from '@jest/globals';
import { remarkOn, retryAfterIn } from '../../../../src/cutover/replay/delivery/answers.ts';

const avatar = { datasourceId: 'shop', objectDefinitionId: '7' };
const other = { datasourceId: 'shop', objectDefinitionId: '8' };

describe('the answer to a PUT of a profile', () => {
  test.each<[remark: string, sent: object, answer: object]>([
    ['another username', { username: 'Ada ' }, { username: 'Ada' }],
    ['no username', { username: 'Ada' }, { username: null }],
    ['another avatar', { avatar }, { avatarObjectDefinitionId: other }],
    ['no avatar', { avatar }, { avatarObjectDefinitionId: null }],
    ['an avatar', { avatar: null }, { avatarObjectDefinitionId: avatar }],
    [
      'another username and no avatar',
      { username: 'Ada', avatar },
      { username: 'Eve', avatarObjectDefinitionId: null },
    ],
  ])('that shows %s than was sent is remarked on', (remark, sent, answer) => {
    expect(remarkOn('put', sent, 200, answer)).toBe(`its answer shows ${remark}`);
  });

  test.each<[what: string, sent: object, answer: unknown]>([
    ['what was sent', { username: 'Ada', avatar }, { username: 'Ada', avatarObjectDefinitionId: avatar }],
    [
      'numbers for their digits',
      { avatar },
      { avatarObjectDefinitionId: { ...avatar, objectDefinitionId: 7 } },
    ],
    ['what was unset as null', { avatar: null }, { avatarObjectDefinitionId: null }],
    ['what was not sent', { username: 'Ada' }, { username: 'Ada', avatarObjectDefinitionId: other }],
    ['no fields', { username: 'Ada', avatar }, {}],
    ['fields of another shape', { username: 'Ada', avatar }, { username: {}, avatarObjectDefinitionId: {} }],
    ['nothing', { username: 'Ada', avatar }, undefined],
  ])('that shows %s is not', (_what, sent, answer) => {
    expect(remarkOn('put', sent, 200, answer)).toBeUndefined();
  });
});

describe('Retry-After', () => {
  const date = 'Sun, 06 Nov 1994 08:49:00 GMT';

  test.each([
    ['120', 120],
    ['Sun, 06 Nov 1994 08:49:37 GMT', 37],
    ['Sunday, 06-Nov-94 08:49:37 GMT', 37],
    ['Sun Nov  6 08:49:37 1994', 37],
    ['Sun, 06 Nov 1994 08:48:00 GMT', 0],
    ['soon', undefined],
    ['-3', undefined],
  ])('of %s is %s s, by the clock of the service', (value, seconds) => {
    expect(retryAfterIn(['Date', date, 'Retry-After', value])).toBe(seconds);
  });

  test('may be a date where the service does not say what time it is', () => {
    const value = new Date(Date.now() + 100_000).toUTCString();
    const seconds = retryAfterIn(['retry-after', value]);
    expect(seconds).toBeGreaterThan(90);
    expect(seconds).toBeLessThanOrEqual(100);
  });

  test('may be absent', () => {
    expect(retryAfterIn(['Date', date])).toBeUndefined();
  });
});
