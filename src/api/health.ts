import type { RequestHandler } from 'express';
import { Cluster } from 'ioredis';
import type { Health } from '../contract/types.gen.ts';
import { mastersOf } from '../redis/connection/client.ts';
import type { Store } from '../redis/scripts.ts';

export interface HealthOptions {
  store: Store;
  isDraining: () => boolean;
  arePicturesAvailable: () => boolean;
}

/** `/livez`: 200 as long as the process can answer at all. */
export const livez: RequestHandler = (_request, response) => {
  response.setHeader('Cache-Control', 'no-store');
  response.json({ status: 'ok' } satisfies Health);
};

/**
 * `/readyz`: 200 while this instance can read from Redis, from some master at least, and is not about to stop.
 * The body says what does not work besides.
 */
export function readyz({ store, isDraining, arePicturesAvailable }: HealthOptions): RequestHandler {
  return async (_request, response) => {
    const memory = await Promise.allSettled(mastersOf(store).map((master) => master.info('memory')));
    const answers = memory.flatMap((answer) => (answer.status === 'fulfilled' ? [answer.value] : []));
    const degraded = [
      ...(isDraining() ? ['draining'] : []),
      ...(answers.length === 0 ? ['store-unavailable'] : []),
      ...(answers.length > 0 && (answers.length < memory.length || lacksMaster(store))
        ? ['store-partly-unavailable']
        : []),
      ...(answers.some(isFull) ? ['store-full'] : []),
      ...(arePicturesAvailable() ? [] : ['pictures-unavailable']),
    ];
    const ready = answers.length > 0 && !isDraining();
    const status = !ready ? 'unavailable' : degraded.length > 0 ? 'degraded' : 'ok';
    response.setHeader('Cache-Control', 'no-store');
    response.status(ready ? 200 : 503);
    response.json({ status, degraded } satisfies Health);
  };
}

/** Whether slots belong to a master that the client has no connection to: `nodes` leaves it out. */
function lacksMaster(store: Store): boolean {
  if (!(store instanceof Cluster)) return false;
  const connected = new Set(mastersOf(store).map(({ options }) => `${options.host}:${options.port}`));
  return store.slots.some(([owner]) => owner !== undefined && !connected.has(owner));
}

function isFull(memory: string): boolean {
  const figure = (name: string): number => Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(memory)?.[1] ?? 0);
  const limit = figure('maxmemory');
  return limit > 0 && figure('used_memory') >= limit;
}
