import { request } from 'node:http';
import { createMetrics } from '../../src/deprecation/metrics.ts';
import { layerPolicy, type PolicyLayer } from '../../src/deprecation/policy/policy.ts';
import { listen } from '../../src/api/server.ts';
import { createLog, type Log } from '../../src/log.ts';
import { createAdminApp } from '../../src/admin-port/app.ts';
import type { RedisClient } from '../../src/redis/connection/client.ts';

export const TOKEN = 'correct-horse-battery-staple';

export interface TestAdminPort {
  url: string;
  port: number;
  /** Sends one request as it is: no header but these, Host by default this very port. */
  ask: (path: string, options?: Asked) => Promise<Told>;
  close: () => Promise<void>;
}

interface Asked {
  method?: string;
  headers?: Record<string, string>;
  body?: string;
}

interface Told {
  status: number;
  headers: Record<string, string>;
  text: string;
  /** Parsed, where the text is JSON. */
  body: Record<string, unknown>;
}

interface Options {
  store: RedisClient;
  keyPrefix: string;
  token?: string;
  policy?: PolicyLayer;
  now?: () => number;
  log?: Log;
}

/** Starts the admin port alone, on a port of its own. */
export async function startAdminPort({
  store,
  keyPrefix,
  token,
  policy,
  now,
  log = createLog('silent'),
}: Options): Promise<TestAdminPort> {
  const inForce = layerPolicy({ afterSunset: 'gone', ...policy });
  const app = createAdminApp({
    store,
    keyPrefix,
    policy: () => inForce,
    metrics: createMetrics({
      policy: () => inForce,
      lagSeconds: () => 0,
      ping: () => store.ping(),
      arePicturesAvailable: () => true,
      slotsInUse: () => 0,
      openBodies: () => 0,
    }),
    token,
    log,
    ...(now && { now }),
  });
  const server = await listen(app, '127.0.0.1', 0);
  return {
    url: `http://127.0.0.1:${server.port}`,
    port: server.port,
    ask: (path, asked) => ask(server.port, path, asked),
    close: server.drain,
  };
}

function ask(port: number, path: string, { method = 'GET', headers = {}, body }: Asked = {}): Promise<Told> {
  return new Promise((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', port, path, method, headers }, (answer) => {
      let text = '';
      answer.setEncoding('utf8');
      answer.on('data', (chunk: string) => (text += chunk));
      answer.on('end', () => {
        const isJson = /json/.test(answer.headers['content-type'] ?? '');
        resolve({
          status: answer.statusCode ?? 0,
          headers: Object.fromEntries(
            Object.entries(answer.headersDistinct).map(([name, values]) => [name, (values ?? []).join(', ')]),
          ),
          text,
          body: isJson && text !== '' ? (JSON.parse(text) as Record<string, unknown>) : {},
        });
      });
    });
    sent.on('error', reject);
    sent.end(body);
  });
}
