import { expect, test } from '@jest/globals';
import { auditSwitches, switchMode } from '../../../src/cutover/switch/coordinator.ts';
import type { Mode } from '../../../src/cutover/modes.ts';
import { defaultSettings } from '../../../src/domain/settings.ts';
import { organizationBase } from '../../../src/redis/keys.ts';
import { readAudit } from '../../../src/redis/audit.ts';
import { saveSettings } from '../../../src/redis/organizations.ts';
import { freshPrefix } from '../../support/redis.ts';
import { useTestStore } from '../../support/use-store.ts';
import { joinTestInstance } from '../../support/legacy/instances.ts';

const store = await useTestStore();

test('a switch whose tool is killed once it was made gets one audit entry from whoever comes next', async () => {
  const prefix = freshPrefix();
  const one = await joinTestInstance(store, prefix);
  await saveSettings(store, prefix, 'acme', defaultSettings);
  const switchAndDie = async (from: Mode, to: Mode): Promise<void> => {
    let looks = 0;
    const request = {
      from,
      to,
      holdMs: 60_000,
      by: 'test',
      signal: new AbortController().signal,
      onProgress: () => {},
      beingLoaded: () => (looks++ === 0 ? Promise.resolve([]) : Promise.reject(new Error('killed'))),
      obstacles: () => Promise.resolve([]),
    };
    await expect(switchMode(store, prefix, request)).rejects.toThrow('killed');
  };
  const entries = async () => {
    const found = [];
    for await (const page of readAudit(store, organizationBase(prefix, 'acme'))) found.push(...page);
    return found.map(({ operation, details }) => ({ operation, ...details }));
  };

  await switchAndDie('shadow', 'mirror');
  expect(await entries()).toEqual([]);
  const first = { operation: 'cutover', from: 'shadow', to: 'mirror', number: '1' };
  // The next switch writes it first.
  await switchAndDie('mirror', 'shadow');
  expect(await entries()).toEqual([first]);

  // Of two that come at the same time, one may be killed, too, after it has written some.
  await Promise.all([auditSwitches(store, prefix), auditSwitches(store, prefix)]);
  await store.hset(`${prefix}cutover`, 'unaudited:2', 'mirror shadow');
  await auditSwitches(store, prefix);
  const second = { operation: 'cutover', from: 'mirror', to: 'shadow', number: '2' };
  expect(await entries()).toEqual([first, second]);
  await one.close();
});
