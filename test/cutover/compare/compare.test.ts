import { describe, expect, test } from '@jest/globals';
import { compare, differingFields, toShown, type Shown } from '../../../src/cutover/compare/compare.ts';
import { profileKey } from '../../../src/redis/keys.ts';
import { freshPrefix } from '../../support/redis.ts';
import { useTestStore } from '../../support/use-store.ts';

const store = await useTestStore();
const avatar = { url: 'https://x/1.png', datasourceId: 'd', objectDefinitionId: 'o' };

/** A profile as a service shows it, whatever it may be. */
const shown = (profile: unknown): Shown => {
  const fields = toShown(profile as Parameters<typeof toShown>[0]);
  if (fields === 'unreadable') throw new Error('no profile');
  return fields;
};

const differing = (legacy: unknown, here: unknown) => differingFields(shown(legacy), shown(here));

describe('the fields in which two profiles differ', () => {
  test('are each named on their own', () => {
    const legacy = { username: 'Ada', avatar, evmLinkedWalletAddress: '0x1' };
    const here = { username: 'ada', avatar: { ...avatar, objectDefinitionId: 'p' } };
    expect(differing(legacy, here)).toEqual([
      'username',
      'avatar.objectDefinitionId',
      'evmLinkedWalletAddress',
    ]);
  });

  test('are the profile as a whole where only one side has one', () => {
    expect(differing({}, undefined)).toEqual(['profile']);
    expect(differing(undefined, {})).toEqual(['profile']);
    expect(differing(undefined, undefined)).toEqual([]);
  });

  test('do not include what is absent here and null or empty there', () => {
    expect(differing({ username: null, profilePictureUrl: '', avatar: null }, {})).toEqual([]);
    expect(differing({ avatar: {} }, {})).toEqual([]);
    expect(differing({ avatar: '' }, {})).toEqual([]);
  });

  test('do not include a picture that was copied from the URL shown there', async () => {
    const base = freshPrefix();
    await store.hset(profileKey(base, 'ada'), { po: 'https://legacy/1.png' });
    const copied = async (legacy: unknown) => {
      const profile = { pictureFile: '1.webp' };
      const here = {
        kind: 'profile',
        caller: { keyId: 'k', role: 'player', userId: 'ada' },
        profile,
      } as const;
      return await compare({ store, base, fileUrl: (file) => `https://bridge/${file}` }, shown(legacy), here);
    };
    expect(await copied({ profilePictureUrl: 'https://legacy/1.png' })).toEqual([]);
    expect(await copied({ profilePictureUrl: 'https://legacy/0.png' })).toEqual(['profilePictureUrl']);
    expect(await copied({})).toEqual(['profilePictureUrl']);
  });

  test('do not include a number there that is the same digits here', () => {
    expect(
      differing(
        { username: 7, avatar: { ...avatar, datasourceId: 1 } },
        { username: '7', avatar: { ...avatar, datasourceId: '1' } },
      ),
    ).toEqual([]);
  });
});

test.each([
  { username: ['a'] },
  { username: {} },
  { profilePictureUrl: true },
  { avatar: 'x' },
  { avatar: { url: {} } },
])('a value of a type that the contract does not have, as in %j, makes it no profile', (profile) => {
  expect(toShown(profile as unknown as Parameters<typeof toShown>[0])).toBe('unreadable');
});

test.each([{ error: 'maintenance' }, { status: 'ok', data: { username: 'Ada' } }])(
  'an object with fields, none of which a profile has, %j, is no profile',
  (answer) => {
    expect(toShown(answer as Parameters<typeof toShown>[0])).toBe('unreadable');
  },
);

test.each([{}, { userId: 'ada', username: null }])(
  'an object without fields, or with one that a profile has, %j, is an empty profile',
  (profile) => {
    expect(toShown(profile as Parameters<typeof toShown>[0])).toEqual({});
  },
);
