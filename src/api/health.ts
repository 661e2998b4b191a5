import type { RequestHandler } from 'express';
import type { Health } from '../contract/types.gen.ts';
import { checkHealth } from '../redis/connection/health.ts';
import type { LoadShedding } from './middleware/load-shedding.ts';
import type { RedisClient } from '../redis/connection/client.ts';

export interface HealthOptions {
  store: RedisClient;
  isDraining: () => boolean;
  load: LoadShedding;
  arePicturesAvailable: () => boolean;
}

/** `/livez`: 200 as long as the process responds at all. */
export const livez: RequestHandler = (_request, response) => {
  response.setHeader('Cache-Control', 'no-store');
  response.json({ status: 'ok' } satisfies Health);
};

/**
 * `/readyz`: 200 while this instance can read from at least one master, which it tries, and is not about to stop. The
 * body lists what is degraded.
 */
export function readyz({ store, isDraining, load, arePicturesAvailable }: HealthOptions): RequestHandler {
  return async (_request, response) => {
    const { isReadable, faults } = await checkHealth(store);
    const degraded = [
      ...(isDraining() ? ['draining'] : []),
      ...faults,
      ...(load.isOverloaded() ? ['overloaded'] : []),
      ...(arePicturesAvailable() ? [] : ['pictures-unavailable']),
    ];
    const ready = isReadable && !isDraining();
    const status = !ready ? 'unavailable' : degraded.length > 0 ? 'degraded' : 'ok';
    response.setHeader('Cache-Control', 'no-store');
    response.status(ready ? 200 : 503);
    response.json({ status, degraded } satisfies Health);
  };
}
