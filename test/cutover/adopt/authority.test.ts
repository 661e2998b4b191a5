import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { denylistKey, profileKey } from '../../../src/redis/keys.ts';
import { createTool, writeSource, type Tool } from '../../support/tools/migrate.ts';
import { runTool } from '../../support/tools/admin.ts';
import { startLegacyBridge, type LegacyBridge } from '../../support/legacy/bridge.ts';
import type { LegacyOrganization } from '../../support/legacy/organization.ts';

/*
 * What was written here counts against a migration only until the authority changes: after reverse and back to mirror,
 * the source says what is right.
 */

let here: LegacyBridge;
let there: LegacyOrganization;
let tool: Tool;
beforeAll(async () => {
  here = await startLegacyBridge({ replaySecret: 's'.repeat(32) }, {}, 'mirror');
  there = here.legacy.organization(here.organization.id);
  tool = createTool(here.bridge.config.redisUrl, here.bridge.config.keyPrefix);
});
afterAll(() => here.close());

const admin = async (command: string): Promise<void> => {
  const { code, err } = await runTool({ ...tool.env, LEGACY_BASE_URL: here.legacy.url }, command);
  expect({ command, code, err }).toMatchObject({ code: 0 });
};

const change = async (key: string, method: string, path: string, body: unknown): Promise<void> => {
  const headers = { 'content-type': 'application/json' };
  const response = await here.send(key, method, path, { body: JSON.stringify(body), headers });
  expect({ status: response.status, ok: response.ok }).toMatchObject({ ok: true });
  await response.arrayBuffer();
};

/** Runs the migration with what the legacy service has, without the times of changes. */
async function migrate(command: string, asOf?: number) {
  const organizationId = here.organization.id;
  const source = writeSource({
    profiles: [...there.profiles].map(([userId, { username }]) => ({ organizationId, userId, username })),
    denylist: [...there.denied].map((username) => ({ organizationId, username })),
  });
  const options = asOf === undefined ? [] : ['--as-of', new Date(asOf).toISOString()];
  const pruning = command === 'apply' ? ['--prune', '--prune-at-most', '10'] : [];
  const selection = ['--entities', 'profiles,denylist', '--run', randomUUID()];
  return await tool.json(command, '--source', source, ...selection, ...options, ...pruning);
}

/** A snapshot counts as older by as long as Redis took to tell its time: verifies until one counts as newer. */
async function untilNewer(outcome: Record<string, unknown>): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    const { json } = await migrate('verify', Date.now());
    const isNewer = Object.entries(outcome).every(([name, value]) => json[name] === value);
    if (!isNewer && attempt < 10) continue;
    return expect(json).toMatchObject(outcome);
  }
}

const nameHere = async (user: string): Promise<string | null> =>
  await here.bridge.store.hget(profileKey(here.organization.base, user), 'u');

const deniedHere = async (): Promise<string[]> =>
  (await here.bridge.store.hkeys(denylistKey(here.organization.base, '0'))).sort();

describe('after reverse and back to mirror', () => {
  let beforeReverse: number;
  let user: string;
  let users = 0;
  beforeEach(async () => {
    user = `user-${++users}`;
    beforeReverse = Date.now();
    await admin('cutover set reverse --force --hold 60');
    await change(await here.player(user), 'PUT', '/api/profile/', { username: `${user} here` });
    const key = await here.admin();
    await change(key, 'POST', '/api/profile/username/deny/', { [`${user} denied`]: 'x' });
    await admin('cutover set mirror --wait 120 --hold 60');
    expect(there.profiles.get(user)?.username).toBe(`${user} here`);
    expect([...there.denied]).toContain(`${user} denied`);
  });

  afterEach(() => migrate('apply', Date.now()));

  test('a profile that an import has changed in the legacy service is applied, whatever its time', async () => {
    there.save(user, { username: `${user} imported` });
    await untilNewer({ different: 1, changedHere: 0 });
    expect(await migrate('apply', Date.now())).toMatchObject({ exitCode: 0, json: { updated: 1 } });
    expect(await nameHere(user)).toBe(`${user} imported`);
    expect((await migrate('verify', Date.now())).json).toMatchObject({ ok: true, changedHere: 0 });
  });

  test('a denylist that an import has changed there is applied, and names no longer denied are pruned', async () => {
    there.denied.delete(`${user} denied`);
    there.denied.add(`${user} imported`);
    await untilNewer({ missing: 1, extra: 1 });
    expect((await migrate('apply', Date.now())).json).toMatchObject({ ok: true, pruned: { denylist: 1 } });
    expect(await deniedHere()).toEqual([...there.denied].sort());
  });

  test('data that has not changed since is not a difference', async () => {
    await untilNewer({ ok: true, changedHere: 0 });
  });

  test.each([
    ['before reverse', () => beforeReverse],
    ['at a time that nobody knows', () => undefined],
  ])('files that were exported %s overwrite nothing that was written here', async (_when, asOf) => {
    there.save(user, { username: `${user} imported` });
    expect(await migrate('apply', asOf())).toMatchObject({ exitCode: 0, json: { updated: 0 } });
    expect(await nameHere(user)).toBe(`${user} here`);
  });
});

test('data written here since Redis took over is not overwritten', async () => {
  await admin('cutover set reverse --force --hold 60');
  await change(await here.player('own'), 'PUT', '/api/profile/', { username: 'own' });
  await admin('cutover set native --wait 120 --hold 60');
  there.save('own', { username: 'imported' });
  expect(await migrate('apply', Date.now())).toMatchObject({ exitCode: 0 });
  expect(await nameHere('own')).toBe('own');
});
