import { describe, expect, test } from '@jest/globals';
import { differingFields, type Shown } from '../../../src/cutover/compare/compare.ts';

const avatar = { url: 'https://x/1.png', datasourceId: 'd', objectDefinitionId: 'o' };

describe('the fields in which two profiles differ', () => {
  test('are each named on their own', () => {
    const legacy: Shown = { username: 'Ada', avatar, evmLinkedWalletAddress: '0x1' };
    const here: Shown = { username: 'ada', avatar: { ...avatar, objectDefinitionId: 'p' } };
    expect(differingFields(legacy, here)).toEqual([
      'username',
      'avatar.objectDefinitionId',
      'evmLinkedWalletAddress',
    ]);
  });

  test('are the profile as a whole where only one side has one', () => {
    expect(differingFields({}, undefined)).toEqual(['profile']);
    expect(differingFields(undefined, {})).toEqual(['profile']);
    expect(differingFields(undefined, undefined)).toEqual([]);
  });

  test('do not include what is absent here and null or empty there', () => {
    const legacy = { username: null, profilePictureUrl: '', avatar: null } as unknown as Shown;
    expect(differingFields(legacy, {})).toEqual([]);
    expect(differingFields({ avatar: {} } as unknown as Shown, {})).toEqual([]);
  });

  test('do not include a picture that was copied from the URL shown there', () => {
    const legacy = { profilePictureUrl: 'https://legacy/1.png' };
    const here = { profilePictureUrl: 'https://bridge/media/1.webp' };
    expect(differingFields(legacy, here, 'https://legacy/1.png')).toEqual([]);
    expect(differingFields(legacy, here, 'https://legacy/0.png')).toEqual(['profilePictureUrl']);
    expect(differingFields(legacy, {}, 'https://legacy/1.png')).toEqual(['profilePictureUrl']);
  });

  test('include values of a type that the contract does not have', () => {
    expect(differingFields({ username: 7 } as unknown as Shown, { username: '7' })).toEqual([]);
    expect(differingFields({ username: ['a'] } as unknown as Shown, {})).toEqual(['username']);
  });
});
