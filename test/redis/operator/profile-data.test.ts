import { beforeEach, describe, expect, test } from '@jest/globals';
import { cutoverRaiseEpoch } from '../../../src/cutover/switch/registry.ts';
import { encodeReference } from '../../../src/domain/profile.ts';
import { addToCollection, setObject, setWallet } from '../../../src/redis/operator/profile-data.ts';
import { putProfile } from '../../../src/redis/profiles.ts';
import { readWriteSnapshot } from '../../../src/redis/changes.ts';
import { newOrganization } from '../../support/store.ts';
import { useTestStore } from '../../support/use-store.ts';

const hat = { datasourceId: 'hats', objectDefinitionId: 'top hat' };
const reference = encodeReference(hat);
const address = `0x${'aB'.repeat(20)}`;

const store = await useTestStore();
let base: string;
beforeEach(async () => {
  ({ base } = await newOrganization(store, { requireOwnership: true }));
});

const wear = async () =>
  await putProfile(store, base, 'ada', { avatar: hat }, await readWriteSnapshot(store, base, 'ada'));

const profile = async () => {
  const put = await putProfile(store, base, 'ada', {}, await readWriteSnapshot(store, base, 'ada'));
  return put.kind === 'put' ? put.profile : put;
};

describe('an object of the catalogue', () => {
  test('can be used once it exists and is in the collection, and its URL follows the catalogue', async () => {
    expect(await wear()).toEqual({ kind: 'object-not-found', field: 'avatar' });
    await setObject(store, base, reference, 'https://cdn.example/1.png');
    expect(await wear()).toEqual({ kind: 'object-not-in-collection', field: 'avatar' });
    expect(await addToCollection(store, base, 'ada', reference)).toBe('added');
    expect(await addToCollection(store, base, 'ada', reference)).toBe('present');
    expect(await wear()).toMatchObject({ profile: { avatarUrl: 'https://cdn.example/1.png' } });
    await setObject(store, base, reference, 'https://cdn.example/2.png');
    expect(await wear()).toMatchObject({ profile: { avatarUrl: 'https://cdn.example/2.png' } });
  });
});

describe('a wallet', () => {
  test('is shown where it is verified, and gives a profile to a user without one', async () => {
    await setWallet(store, base, 'ada', address, 'w');
    expect(Number(await store.hget(`${base}p:ada`, 't'))).toBeGreaterThan(Date.now() - 60_000);
    expect(await profile()).toEqual({ wallet: address });
  });

  test('replaces a verified one even if it is not verified', async () => {
    await setWallet(store, base, 'ada', address, 'w');
    await setWallet(store, base, 'ada', address, 'wu');
    expect(await profile()).toEqual({});
    expect(await store.hget(`${base}p:ada`, 'wu')).toBe(address);
  });

  test('is marked as a change made here under the epoch in force', async () => {
    await cutoverRaiseEpoch(store, base, 3, '', '');
    await setWallet(store, base, 'ada', address, 'w');
    expect(await store.hget(`${base}p:ada`, 'b')).toBe('3');
  });
});
