import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { connect } from 'node:net';
import { expect, test } from '@jest/globals';
import { startBridge } from '../support/bridge.ts';

test('a draining server answers what was sent, on idle connections too, and says that it closes', async () => {
  const bridge = await startBridge();
  const { port } = new URL(bridge.url);
  const idle = connect(Number(port), '127.0.0.1');
  await once(idle, 'connect');
  idle.write('GET /livez HTTP/1.1\r\nHost: x\r\n\r\n');
  await once(idle, 'data');

  const closed = bridge.close();
  idle.write('GET /livez HTTP/1.1\r\nHost: x\r\n\r\n');
  const [late] = (await once(idle, 'data')) as [Buffer];
  expect(String(late)).toMatch(/^HTTP\/1\.1 200 OK/);
  expect(String(late)).toMatch(/^connection: close\r$/im);
  await closed;
});

test('a request that was under way when the draining began is answered, and its connection closed with it', async () => {
  const bridge = await startBridge();
  const { apiKey } = await (
    await bridge.newOrganization({}, 'drained')
  ).newKey({ role: 'player', userId: 'u1' });
  const socket = connect(Number(new URL(bridge.url).port), '127.0.0.1');
  socket.write(
    'PUT /api/profile/ HTTP/1.1\r\nHost: x\r\nX-Platform-Organization-Id: drained\r\n' +
      `X-Api-Key: ${apiKey}\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n{`,
  );
  const [proceed] = (await once(socket, 'data')) as [Buffer];
  expect(String(proceed)).toMatch(/^HTTP\/1\.1 100 /);

  const closed = bridge.close();
  const answered = once(socket, 'data');
  const ended = once(socket, 'end');
  socket.write('}');
  const [answer] = (await answered) as [Buffer];
  expect(String(answer)).toMatch(/^HTTP\/1\.1 200 OK/);
  expect(String(answer)).toMatch(/^connection: close\r$/im);
  await ended;
  await closed;
});

test('a port in use is one plain line with the remedy', async () => {
  const bridge = await startBridge();
  const port = Number(new URL(bridge.url).port);
  await expect(startBridge({ port })).rejects.toThrow(/port \d+ on 127\.0\.0\.1 is in use: .* set PORT/);
  await bridge.close();
});

test('Express finds its own prototypes on requests and responses, and need not set them', async () => {
  const bridge = await startBridge();
  const set = Object.setPrototypeOf;
  const changed: unknown[] = [];
  Object.setPrototypeOf = (target: object, prototype: object | null) => {
    if (Object.getPrototypeOf(target) !== prototype) changed.push(target);
    return set(target, prototype);
  };
  try {
    const agent = new Agent();
    const sent = request(`${bridge.url}/livez`, { agent }).end();
    await once(sent, 'response');
    expect(changed).toEqual([]);
  } finally {
    Object.setPrototypeOf = set;
    await bridge.close();
  }
});
