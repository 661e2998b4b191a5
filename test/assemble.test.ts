import { expect, test } from '@jest/globals';
import { beginPut, finishPut } from './support/late-put.ts';
import { startBridge } from './support/bridge.ts';
import { unusedPort } from './support/redis.ts';
import { until } from './support/until.ts';

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
