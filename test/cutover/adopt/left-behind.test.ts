import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { pause, resume, startBridgeProcess, type Server } from '../../support/processes.ts';
import { readCutover } from '../../../src/cutover/switch/registry.ts';
import { isSilent } from '../../../src/cutover/verdict/readiness.ts';
import { cutoverKey, organizationBase, profileKey } from '../../../src/redis/keys.ts';
import { beginPut } from '../../support/requests/late-put.ts';
import { startLegacy, type Legacy } from '../../support/legacy/legacy.ts';
import { runTool } from '../../support/tools/admin.ts';
import { createTestOrganization } from '../../support/bridge.ts';
import { environmentFor, freshPrefix } from '../../support/redis.ts';
import { until } from '../../support/until.ts';
import { useTestStore } from '../../support/use-store.ts';

/* A bridge that is paused after it has forwarded a change, and taken for stopped while the mode is switched. */

const prefix = freshPrefix();
const organizationId = 'acme';
let legacy: Legacy;
const store = await useTestStore();
let bridge: Server;
let apiKey: string;
let admin: string;
let environment: Record<string, string>;

beforeAll(async () => {
  legacy = await startLegacy();
  environment = {
    ...environmentFor(prefix),
    LEGACY_BASE_URL: legacy.url,
    LEGACY_TIMEOUT: '60',
    REPLAY_SECRET: 's'.repeat(40),
  };
  await store.hset(cutoverKey(prefix), { mode: 'mirror', epoch: 1, since: Date.now(), by: 'test' });
  const config = { keyPrefix: prefix, organizationHeader: 'x-platform-organization-id' };
  const { newKey } = await createTestOrganization('', config, store, organizationId);
  ({ apiKey } = await newKey({ role: 'player', userId: 'ada' }));
  legacy.addKey(apiKey, { organization: organizationId, role: 'player', user: 'ada' });
  ({ apiKey: admin } = await newKey({ role: 'admin' }));
  legacy.addKey(admin, { organization: organizationId, role: 'admin' });
  bridge = await startBridgeProcess(environment);
});
afterAll(async () => {
  await bridge.stop();
  await legacy.close();
});

const send = async (key: string, method: string, path: string, body?: unknown) => {
  const response = await fetch(bridge.url + path, {
    method,
    ...(body !== undefined && { body: JSON.stringify(body) }),
    headers: {
      'content-type': 'application/json',
      'x-api-key': key,
      'x-platform-organization-id': organizationId,
    },
  });
  return { status: response.status, text: await response.text() };
};

const run = async (command: string): Promise<string> => {
  const { code, out, err } = await runTool(environment, command);
  expect({ command, code, err }).toMatchObject({ code: 0 });
  return out;
};

const nameHere = async () =>
  await store.hget(profileKey(organizationBase(prefix, organizationId), 'ada'), 'u');

/** Pauses the bridge once the legacy service has made a change, and switches to reverse meanwhile. */
async function switchAcross(change: () => ReturnType<typeof send>): ReturnType<typeof send> {
  let open = (): void => {};
  legacy.behaviour.answerGate = new Promise<void>((resolve) => (open = resolve));
  const arrived = legacy.received.length;
  const response = change();
  await until(() => legacy.received.length > arrived);
  await switchWhilePaused(() => {
    legacy.behaviour.answerGate = undefined;
    open();
  });
  return await response;
}

/** Switches to reverse while the bridge is paused; `meanwhile` happens last. */
async function switchWhilePaused(meanwhile: () => void): Promise<void> {
  pause(bridge);
  const silent = async () => (await readCutover(store, prefix)).instances.find(isSilent);
  await until(async () => (await silent()) !== undefined);
  await run(`cutover set reverse --force --hold 60 --assume-stopped ${(await silent())?.id}`);
  meanwhile();
  resume(bridge);
}

test('a bridge that missed a switch acknowledges no change that only the legacy service has, and the user is listed until repaired', async () => {
  const { status, text } = await switchAcross(() =>
    send(apiKey, 'PUT', '/api/profile/', { username: 'Ada' }),
  );
  expect({ status, text }).toEqual({
    status: 503,
    text: expect.stringContaining('whether it took effect is unknown. Sending it again is safe.'),
  });
  expect(legacy.organization(organizationId).profiles.get('ada')?.username).toBe('Ada');
  expect(await nameHere()).toBeNull();
  const named = 'acme, user ada: the mode was switched before';
  await until(async () => (await run('cutover status')).includes(named));

  expect(await send(apiKey, 'PUT', '/api/profile/', { username: 'Ada' })).toMatchObject({ status: 200 });
  expect(await nameHere()).toBe('Ada');
  await run('cutover set mirror --wait 120 --hold 60');
  await until(async () => {
    expect(await send(apiKey, 'GET', '/api/profile/')).toMatchObject({ status: 200 });
    const { out } = await runTool(environment, 'cutover status');
    return !out.includes(named);
  });
});

test('a bridge that missed a switch acknowledges no denylist change, which stays on record as a gap', async () => {
  const { status } = await switchAcross(() =>
    send(admin, 'POST', '/api/profile/username/deny/', { root: 'x' }),
  );
  expect(status).toBe(503);
  const { organizations } = JSON.parse(await run('cutover status --json')) as {
    organizations: { gaps: { reason: string }[] }[];
  };
  expect(organizations[0]?.gaps).toMatchObject([{ reason: 'denylist-outcome-unknown' }]);
});

test.each([
  ['shadow', 'a user that Redis knows', () => apiKey, 200],
  ['mirror', 'an API key that Redis does not know', () => 'only-there', 401],
])(
  'in %s, a bridge that missed a switch while a body arrived does not forward the change of %s',
  async (mode, _whose, key, status) => {
    legacy.addKey('only-there', { organization: organizationId, role: 'player', user: 'eve' });
    await run('cutover set mirror --wait 120 --hold 60 --force');
    if (mode === 'shadow') await run('cutover set shadow --hold 60');
    const upload = await beginPut({ bridge, organization: { id: organizationId } }, key());
    const responded = once(upload, 'response');
    upload.write('{"username":');
    legacy.received.length = 0;
    await switchWhilePaused(() => upload.end('"Late"}'));
    const [response] = (await responded) as [IncomingMessage];
    const puts = legacy.received.filter(({ method }) => method === 'PUT');
    expect({ status: response.statusCode, puts }).toEqual({ status, puts: [] });
  },
);

test('a bridge that missed a switch from shadow acknowledges no change that only the legacy service has', async () => {
  await run('cutover set mirror --wait 120 --hold 60 --force');
  await run('cutover set shadow --hold 60');
  const { status } = await switchAcross(() => send(apiKey, 'PUT', '/api/profile/', { username: 'Lovelace' }));
  expect(status).toBe(503);
  expect(await nameHere()).not.toBe('Lovelace');
});

test('a bridge that missed a switch reads where the new authority is', async () => {
  await run('cutover set mirror --wait 120 --hold 60 --force');
  await send(apiKey, 'PUT', '/api/profile/', { username: 'Ada' });
  await until(async () => (await nameHere()) === 'Ada');
  const reads: ReturnType<typeof send>[] = [];
  await switchWhilePaused(() => {
    legacy.received.length = 0;
    for (let read = 0; read < 20; read++) reads.push(send(apiKey, 'GET', '/api/profile/'));
  });
  const statuses = new Set((await Promise.all(reads)).map(({ status }) => status));
  expect({ statuses: [...statuses], forwarded: legacy.received }).toEqual({ statuses: [200], forwarded: [] });
});
