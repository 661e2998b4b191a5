import type { RequestHandler, Response } from 'express';
import type { Health } from '../contract/types.gen.ts';
import { checkHealth } from '../redis/connection/health.ts';
import type { LoadShedding } from './middleware/load-shedding.ts';
import type { RedisClient } from '../redis/connection/client.ts';

export interface HealthOptions {
  store: RedisClient;
  isDraining: () => boolean;
  /** Whether another service answers all requests, whatever the store does. */
  forwardsAll: () => boolean;
  /** Whether this instance knows which service answers, if there is a legacy service. */
  knowsAuthority: () => boolean;
  load: LoadShedding;
  arePicturesAvailable: () => boolean;
}

/** `/livez`: 200 as long as the process responds at all. */
export const livez: RequestHandler = (_request, response) => {
  send(response, 200, { status: 'ok' });
};

/**
 * `/readyz`: 200 while this instance can read from at least one master, which it tests, or forwards all requests; not
 * once it is about to stop. The body lists what is degraded.
 */
export function readyz(options: HealthOptions): RequestHandler {
  const { store, isDraining, forwardsAll, knowsAuthority, load, arePicturesAvailable } = options;
  return async (_request, response) => {
    const { isReadable, faults } = await checkHealth(store);
    const degraded = [
      ...(isDraining() ? ['draining'] : []),
      ...faults,
      ...(knowsAuthority() ? [] : ['authority-unknown']),
      ...(load.isOverloaded() ? ['overloaded'] : []),
      ...(arePicturesAvailable() ? [] : ['pictures-unavailable']),
    ];
    const ready = (isReadable || forwardsAll()) && !isDraining();
    const status = !ready ? 'unavailable' : degraded.length > 0 ? 'degraded' : 'ok';
    send(response, ready ? 200 : 503, { status, degraded });
  };
}

/** Not by `response.json`, which answers 304 to `If-None-Match: *`. */
function send(response: Response, status: number, health: Health): void {
  const text = JSON.stringify(health);
  response.writeHead(status, {
    'Cache-Control': 'no-store',
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': Buffer.byteLength(text),
  });
  response.end(text);
}
