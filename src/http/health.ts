import type { RequestHandler } from 'express';
import type { Store } from '../redis/scripts.ts';

export interface HealthOptions {
  store: Store;
  /** Any key that is read: what it says does not matter. */
  probeKey: string;
  isDraining: () => boolean;
}

/** `/livez`: 200 as long as the process can answer at all. */
export const livez: RequestHandler = (_request, response) => {
  response.setHeader('Cache-Control', 'no-store');
  response.json({ status: 'ok' });
};

/** `/readyz`: 200 while this instance can read from Redis and is not draining; the body says what is degraded. */
export function readyz({ store, probeKey, isDraining }: HealthOptions): RequestHandler {
  return async (_request, response) => {
    const degraded: string[] = [];
    if (isDraining()) degraded.push('draining');
    try {
      await store.scard(probeKey);
    } catch {
      degraded.push('store-unavailable');
    }
    response.setHeader('Cache-Control', 'no-store');
    response.status(degraded.length === 0 ? 200 : 503);
    response.json({ status: degraded.length === 0 ? 'ok' : 'unavailable', degraded });
  };
}
