import { createServer, type Server } from 'node:net';
import { afterEach, describe, expect, jest, test } from '@jest/globals';
import { beginPut, finishPut } from './support/requests/late-put.ts';
import { defaultAdminPort } from '../src/config.ts';
import { readCutover } from '../src/cutover/switch/registry.ts';
import { createLog } from '../src/log.ts';
import { startBridge } from './support/bridge.ts';
import { freshPrefix, unusedPort } from './support/redis.ts';
import { until } from './support/until.ts';
import { useTestStore } from './support/use-store.ts';

const store = await useTestStore();

/** The status of a response; undefined if nothing listens. */
const statusOf = async (url: string): Promise<number | undefined> =>
  await fetch(url, { headers: { connection: 'close' } }).then(
    ({ status }) => status,
    () => undefined,
  );

test('the admin port stops while the public port still waits for a request in progress', async () => {
  const adminPort = await unusedPort();
  const bridge = await startBridge({ adminPort });
  const organization = await bridge.newOrganization();
  const { apiKey } = await organization.newKey({ role: 'player', userId: 'u1' });
  const put = await beginPut({ bridge, organization }, apiKey);
  const closed = bridge.close();
  await until(async () => (await statusOf(`http://127.0.0.1:${adminPort}/metrics`)) === undefined);
  expect((await finishPut(put, '{}')).status).toBe(200);
  await closed;
});

test('the admin port keeps answering for the drain delay', async () => {
  const adminPort = await unusedPort();
  const bridge = await startBridge({ adminPort, drainDelay: 1500 });
  const closed = bridge.close();
  const seen = new Set<number | undefined>();
  await until(async () => {
    const status = await statusOf(`http://127.0.0.1:${adminPort}/metrics`);
    const isOver = (await statusOf(`${bridge.url}/readyz`)) === undefined;
    if (!isOver) seen.add(status);
    return isOver;
  });
  expect(seen).toEqual(new Set([200]));
  await closed;
});

describe('where the admin port is in use', () => {
  let other: Server;
  const occupy = async (port: number): Promise<void> => {
    other = createServer();
    // Whoever has it, it is in use.
    const occupied = new Promise<unknown>((resolve) =>
      other.once('listening', resolve).once('error', resolve),
    );
    other.listen(port, '127.0.0.1');
    await occupied;
  };
  afterEach(() => void other.close());

  test('a bridge without ADMIN_PORT serves without it, and says so', async () => {
    await occupy(defaultAdminPort);
    const log = createLog('error');
    const warn = jest.spyOn(log, 'warn');
    const bridge = await startBridge({ adminPort: undefined }, log);
    expect(await statusOf(`${bridge.url}/readyz`)).toBe(200);
    const warnings = warn.mock.calls.map(([message]): unknown => message);
    expect(warnings).toContain('the admin port is not available');
    await bridge.close();
  });

  test('a bridge with ADMIN_PORT does not start, and leaves no registration behind', async () => {
    const adminPort = await unusedPort();
    await occupy(adminPort);
    const keyPrefix = freshPrefix();
    await expect(startBridge({ adminPort, keyPrefix })).rejects.toThrow(String(adminPort));
    expect((await readCutover(store, keyPrefix)).instances).toEqual([]);
  });
});

test('a bridge warns of an ADMIN_TOKEN that is short enough to be guessed', async () => {
  const log = createLog('error');
  const warn = jest.spyOn(log, 'warn');
  const bridge = await startBridge({ adminToken: 'short' }, log);
  expect(warn).toHaveBeenCalledWith(expect.stringContaining('ADMIN_TOKEN is short enough to be guessed'));
  await bridge.close();
});
