import { once } from 'node:events';
import { connect } from 'node:net';
import { expect, test } from '@jest/globals';
import { startBridge } from './support/bridge.ts';
import { unusedPort } from './support/redis.ts';
import { until } from './support/until.ts';

test('the admin port stops while the public port still waits for a request in progress', async () => {
  const adminPort = await unusedPort();
  const bridge = await startBridge({ adminPort });
  const { apiKey } = await (
    await bridge.newOrganization({}, 'slow')
  ).newKey({ role: 'player', userId: 'u1' });
  const socket = connect(Number(new URL(bridge.url).port), '127.0.0.1');
  socket.write(
    'PUT /api/profile/ HTTP/1.1\r\nHost: x\r\nX-Platform-Organization-Id: slow\r\n' +
      `X-Api-Key: ${apiKey}\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n{`,
  );
  await once(socket, 'data');
  const answered = Promise.race([once(socket, 'data'), once(socket, 'close')]);
  const closed = bridge.close();
  const isOpen = () =>
    fetch(`http://127.0.0.1:${adminPort}/metrics`).then(
      ({ ok }) => ok,
      () => false,
    );
  await until(async () => !(await isOpen()));
  socket.write('}');
  const [answer] = (await answered) as [unknown];
  expect(String(answer)).toMatch(/^HTTP\/1\.1 200 OK/);
  await closed;
});

test('the admin port keeps answering for the drain delay', async () => {
  const adminPort = await unusedPort();
  const bridge = await startBridge({ adminPort, drainDelay: 1500 });
  const closed = bridge.close();
  const isUp = async (url: string) =>
    await fetch(url, { headers: { connection: 'close' } }).then(
      () => true,
      () => false,
    );
  const seen: boolean[] = [];
  await until(async () => {
    const isAdminUp = await isUp(`http://127.0.0.1:${adminPort}/metrics`);
    const isOver = !(await isUp(`${bridge.url}/readyz`));
    if (!isOver) seen.push(isAdminUp);
    return isOver;
  });
  expect(new Set(seen)).toEqual(new Set([true]));
  await closed;
});
