import { describe, expect, test } from '@jest/globals';
import { assert, property, string } from 'fast-check';
import { defaultSettings } from '../../src/domain/settings.ts';
import { readWriteSnapshot } from '../../src/redis/changes.ts';
import { script } from '../../src/redis/connection/script-loader.ts';
import { loadingKey, organizationBase, settingsKey } from '../../src/redis/keys.ts';
import { findSettings, listOrganizations, saveSettings } from '../../src/redis/organizations.ts';
import { freshPrefix } from '../support/redis.ts';
import { useTestStore } from '../support/use-store.ts';

const save = script<(string | number)[], string>('organization/save_settings');

const store = await useTestStore();

describe('the settings of an organization', () => {
  test('are returned as they were given', async () => {
    const prefix = freshPrefix();
    const settings = {
      minLength: 3,
      maxLength: 12,
      comparison: 'case-insensitive' as const,
      pattern: '[a-zé]+',
      objectImageUrlTemplate: 'https://cdn.example/{datasourceId}/{objectDefinitionId}.png',
      requireOwnership: true,
    };
    expect(await saveSettings(store, prefix, 'acme', settings)).toBe('created');
    expect(await findSettings(store, prefix, 'acme')).toEqual(settings);
    const fewer = { ...settings, pattern: undefined, objectImageUrlTemplate: '', requireOwnership: false };
    expect(await saveSettings(store, prefix, 'acme', fewer)).toBe('changed');
    expect(await findSettings(store, prefix, 'acme')).toEqual({
      ...fewer,
      objectImageUrlTemplate: undefined,
    });
  });

  test('leave the comparison of an organization that exists as it is', async () => {
    const prefix = freshPrefix();
    await saveSettings(store, prefix, 'acme', { ...defaultSettings, comparison: 'case-insensitive' });
    await saveSettings(store, prefix, 'acme', { ...defaultSettings, maxLength: 9 });
    expect(await findSettings(store, prefix, 'acme')).toMatchObject({
      comparison: 'case-insensitive',
      maxLength: 9,
    });
  });

  test('keep both changes if two commands are run at once', async () => {
    const prefix = freshPrefix();
    await saveSettings(store, prefix, 'acme', defaultSettings);
    await Promise.all([
      saveSettings(store, prefix, 'acme', { minLength: 3 }),
      saveSettings(store, prefix, 'acme', { maxLength: 20 }),
      saveSettings(store, prefix, 'acme', { pattern: '[a-z]+' }),
    ]);
    expect(await findSettings(store, prefix, 'acme')).toMatchObject({
      minLength: 3,
      maxLength: 20,
      pattern: '[a-z]+',
    });
  });

  test('are not changed by the second of two commands that together would allow no length', async () => {
    const prefix = freshPrefix();
    await saveSettings(store, prefix, 'acme', { minLength: 10 });
    expect(await saveSettings(store, prefix, 'acme', { maxLength: 9 })).toBe('min-above-max');
    expect(await findSettings(store, prefix, 'acme')).toMatchObject({ minLength: 10, maxLength: 64 });
  });

  test('may allow one length only', async () => {
    expect(await saveSettings(store, freshPrefix(), 'acme', { minLength: 5, maxLength: 5 })).toBe('created');
  });

  test('are not saved where a load has begun since the caller looked', async () => {
    const base = organizationBase(freshPrefix(), 'acme');
    await store.set(loadingKey(base), 'r\n0\n1');
    expect(await save(store, base, 'exact', 1, 64, 'min', 3)).toBe('loading');
    expect(await store.exists(settingsKey(base))).toBe(0);
  });

  test('are undefined if the organization does not exist', async () => {
    expect(await findSettings(store, freshPrefix(), 'acme')).toBeUndefined();
  });

  test('are the defaults in what a write is checked against, as far as there are none', async () => {
    const { settings } = await readWriteSnapshot(store, organizationBase(freshPrefix(), 'nobody'));
    const unset = { pattern: undefined, objectImageUrlTemplate: undefined };
    expect(settings).toEqual({ ...defaultSettings, ...unset });
  });
});

describe('organizations', () => {
  test('are listed by the ids they were given, in order', async () => {
    const prefix = freshPrefix();
    const ids = ['zoë', 'a b', 'Acme', '100%', 'x}y{z', '{', '__proto__'];
    for (const id of ids) await saveSettings(store, prefix, id, defaultSettings);
    expect(await listOrganizations(store, prefix)).toEqual(ids.toSorted());
  });

  test('never share a key, whatever their ids are', () => {
    assert(
      property(string({ unit: 'binary' }), string({ unit: 'binary' }), (one, other) => {
        const base = organizationBase('pb:', one);
        expect(base).toMatch(/^pb:\{[^{}]*\}:$/);
        expect(organizationBase('pb:', other) === base).toBe(one === other);
      }),
    );
  });
});
