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
