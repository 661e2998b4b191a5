import { beforeEach, describe, expect, test } from '@jest/globals';
import { cutoverHeartbeat, readCutover } from '../../../src/cutover/switch/registry.ts';
import { cutoverKey } from '../../../src/redis/keys.ts';
import { freshPrefix } from '../../support/redis.ts';
import { useTestStore } from '../../support/use-store.ts';

const store = await useTestStore();
let prefix: string;
let key: string;
beforeEach(() => {
  prefix = freshPrefix();
  key = cutoverKey(prefix);
});

/** A heartbeat of an instance, its first one. */
async function beat(id: string, what: { kind?: string; legacy?: boolean; replay?: boolean } = {}) {
  const registration = JSON.stringify({ kind: 'bridge', legacy: true, replay: false, ...what });
  return await cutoverHeartbeat(store, key, id, registration, 0, 0, '-', 'none');
}

const known = async () => (await readCutover(store, prefix)).instances.map(({ id }) => id);

describe('a registration of which nothing was heard for an hour', () => {
  const minute = 60_000;
  let now: number;
  beforeEach(async () => {
    ({ now } = await readCutover(store, prefix));
    await store.hset(key, {
      'beat:hour': `${now - 61 * minute} 0 -`,
      'beat:less': `${now - 58 * minute} 0 -`,
    });
  });

  test.each<[string, Record<string, string>]>([
    ['no mode was ever set', { mode: '' }],
    ['the mode is native', { mode: 'native', since: '1' }],
  ])('ends with the start of another instance where %s', async (_what, fields) => {
    await store.hset(key, fields);
    await beat('new', { legacy: false });
    expect(await known()).toEqual(['less', 'new']);
  });

  test.each<[string, () => Record<string, string | number>]>([
    ['in another mode', () => ({ mode: 'shadow', since: 1 })],
    ['where the mode has become native since', () => ({ mode: 'native', since: now - 60 * minute })],
    [
      'while a switch is under way',
      () => ({ mode: 'native', since: 1, to: 'shadow', phase: 'stop', token: 't', until: now + 60 * minute }),
    ],
  ])('stays %s', async (_what, fields) => {
    await store.hset(key, fields());
    await beat('new');
    expect(await known()).toEqual(['hour', 'less', 'new']);
  });
});

describe('the first mode', () => {
  test('is not chosen by a migration', async () => {
    expect(await beat('a', { kind: 'migrate', replay: true })).toMatchObject({ kind: 'ok', mode: '' });
  });

  test('is not chosen where one was set', async () => {
    await store.hset(key, { mode: 'native', since: 1 });
    expect(await beat('a')).toMatchObject({ kind: 'ok', mode: 'native' });
  });
});

describe('an instance starts neither in a mode that it is not able to serve in, nor during a switch to it:', () => {
  const switching = { phase: 'stop', token: 't', until: Date.now() + 600_000 };

  test('one without the legacy service', async () => {
    const refused = { kind: 'needs-legacy', mode: 'shadow' };
    await store.hset(key, { mode: 'shadow' });
    expect(await beat('a', { legacy: false })).toEqual(refused);
    await store.hset(key, { mode: 'native', to: 'shadow', ...switching });
    expect(await beat('a', { legacy: false })).toEqual(refused);
    expect(await known()).toEqual([]);
  });

  test('one that cannot replay', async () => {
    await store.hset(key, { mode: 'reverse' });
    expect(await beat('a')).toEqual({ kind: 'needs-replay' });
    await store.hset(key, { mode: 'mirror', to: 'reverse', ...switching });
    expect(await beat('a')).toEqual({ kind: 'needs-replay' });
    expect(await known()).toEqual([]);
    expect(await beat('a', { replay: true })).toMatchObject({ kind: 'ok', mode: 'mirror', to: 'reverse' });
  });
});
