import { expect, test } from '@jest/globals';
import { createApiKey } from '../../src/redis/operator/api-keys.ts';
import { readAudit, type AuditEntry } from '../../src/redis/audit.ts';
import { banUsernames, overwriteDenylist, removeDenied } from '../../src/redis/denylist.ts';
import { organizationBase } from '../../src/redis/keys.ts';
import { readWriteSnapshot } from '../../src/redis/changes.ts';
import { freshPrefix } from '../support/redis.ts';
import { newOrganization } from '../support/store.ts';
import { useTestStore } from '../support/use-store.ts';

const store = await useTestStore();

async function trail(base: string): Promise<AuditEntry[]> {
  const entries: AuditEntry[] = [];
  for await (const page of readAudit(store, base)) entries.push(...page);
  return entries;
}

test('the audit trail records who changed the denylist, and when', async () => {
  const { base } = await newOrganization(store);
  const start = Date.now();
  const { keyId, apiKey } = await createApiKey(store, base, { role: 'admin' });
  const snapshot = await readWriteSnapshot(store, base);
  await banUsernames({ store, base, keyId, snapshot }, new Map([['root', 'x']]));
  await removeDenied({ store, base, keyId, snapshot }, ['root']);
  await overwriteDenylist({ store, base, keyId, snapshot }, ['a', 'b']);

  const entries = await trail(base);
  expect(entries.map(({ operation, by }) => [operation, by])).toEqual([
    ['ban', keyId],
    ['remove', keyId],
    ['overwrite', keyId],
  ]);
  expect(entries.map(({ details }) => details)).toEqual([
    { username: 'root' },
    { username: 'root' },
    { before: '0', after: '2' },
  ]);
  for (const { at } of entries) expect(Math.abs(at - start)).toBeLessThan(60_000);
  expect(JSON.stringify(entries)).not.toContain(apiKey);
});

test('a trail of many pages is read completely and in order', async () => {
  const base = organizationBase(freshPrefix(), 'acme');
  await Promise.all(
    Array.from({ length: 1001 }, (_, i) =>
      store.xadd(`${base}audit`, '*', 'op', 'ban', 'key', 'k_1', 'username', String(i)),
    ),
  );
  const entries = await trail(base);
  expect(entries.map(({ details }) => Number(details['username']))).toEqual(
    Array.from({ length: 1001 }, (_, i) => i),
  );
  expect(await trail(`${base}none`)).toEqual([]);
});
