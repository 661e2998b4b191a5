import { setTimeout as sleep } from 'node:timers/promises';
import { yieldingChunks } from '../lib/time-slices.ts';
import { compareAndSwap } from './compare-and-swap.ts';
import type { RedisClient } from './connection/client.ts';
import { scanMembers } from './connection/scan.ts';
import { organizationBase, organizationsKey, sweepKey } from './keys.ts';

/** How often there is a sweep, in ms, by whichever process comes first. */
const sweepEveryMs = 600_000;
/** Organizations visited at once. */
const atOnce = 50;
/** The pause, for requests, before the next organizations are visited, in ms. */
const pauseMs = 5;

/** A job of the sweep: it gets the base of an organization's keys. */
export type SweepJob = (base: string) => Promise<unknown>;

/**
 * Runs the jobs for every organization, unless any process began a sweep less than ten minutes ago, a few at a time and
 * with pauses, so that no request waits for it. Rejects at its end if any job failed. Ends early on `signal`.
 */
export async function sweepOrganizations(
  store: RedisClient,
  prefix: string,
  jobs: readonly SweepJob[],
  signal?: AbortSignal,
): Promise<void> {
  // Also where Redis is full: a sweep may be what frees memory.
  if ((await compareAndSwap(store, sweepKey(prefix), '', 'begun', sweepEveryMs)) !== '') return;
  const failures: unknown[] = [];
  const visit = async (organizationId: string): Promise<void> => {
    for (const job of jobs) {
      await job(organizationBase(prefix, organizationId)).catch((error: unknown) => failures.push(error));
    }
  };
  for await (const organizations of scanMembers(store, organizationsKey(prefix))) {
    for await (const chunk of yieldingChunks(organizations, atOnce)) {
      if (signal?.aborted === true) return;
      await Promise.all(chunk.map(visit));
      if (organizations.length > atOnce) await sleep(pauseMs);
    }
  }
  if (failures.length > 0) throw failures[0];
}
