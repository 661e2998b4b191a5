import type { RedisClient } from '../connection/client.ts';
import { isKeysMoved, scanKeys } from '../connection/scan.ts';
import {
  apiKeyKey,
  collectionKey,
  cutoverKey,
  cutoverKeys,
  generationOf,
  namesBucketKey,
  organizationBase,
  organizationOf,
  profileKey,
} from '../keys.ts';
import { listOrganizations, organizationExists } from '../organizations.ts';
import { yieldingChunks } from '../../lib/time-slices.ts';
import { checkKeyRecord } from './api-keys.ts';
import { createReport, readNaming, type Check, type Counts, type Fault, type Naming } from './check.ts';
import { createChecks } from './open-checks.ts';
import { checkBucket } from './names.ts';
import { checkGeneration } from './organization.ts';
import { checkProfile } from './profiles.ts';
import { checkCollection } from './references.ts';
import { checkType, checkTypeOutside } from './types.ts';

export type { Counts, Fault, FaultKind } from './check.ts';

interface FsckOptions {
  /** Only this organization; all of them, if it is not given. */
  organizationId?: string | undefined;
  repair: boolean;
  /** Called with each fault when it is found, and whether it has been repaired. */
  onFault: (fault: Fault) => void;
  signal?: AbortSignal | undefined;
}

interface Walked {
  kind: 'checked';
  counts: Counts;
  /** Organizations that a migration is loading for the first time, which were not examined. */
  loading: string[];
}

export type FsckOutcome =
  (Walked & { found: number; repaired: number }) | { kind: 'unknown-organization' } | { kind: 'interrupted' };

/** Faults remembered, so that one that is found twice is reported once. */
const maxRemembered = 100_000;
/** How often all keys are scanned at most, if some move between servers meanwhile. */
const attempts = 3;
/** Keys examined at once: a request waits for milliseconds only. */
const atOnce = 100;

/**
 * Checks that what the store holds is consistent; with `repair` it makes every repair that needs no guessing. README.md
 * has the table of faults. The service may be running: a reported fault existed at one instant, and each repair checks
 * its conditions again in its script. Memory use does not grow with the store. Where Redis is full, what only frees memory
 * is repaired, before this rejects.
 */
export async function fsck(store: RedisClient, prefix: string, options: FsckOptions): Promise<FsckOutcome> {
  const reported = new Set<string>();
  const totals = { found: 0, repaired: 0 };
  const onFault = (fault: Fault): void => {
    const identity = JSON.stringify([fault.organizationId, fault.kind, fault.detail]);
    if (reported.has(identity)) return;
    if (reported.size < maxRemembered) reported.add(identity);
    totals.found++;
    if (fault.isRepaired) totals.repaired++;
    options.onFault(fault);
  };
  let refusal: unknown;
  const onFull = (error: unknown): void => void (refusal ??= error);
  for (let attempt = 1; ; attempt++) {
    try {
      const walked = await walk(store, prefix, { ...options, onFault, onFull });
      if (refusal !== undefined) throw refusal;
      return walked.kind === 'checked' ? { ...walked, ...totals } : walked;
    } catch (error) {
      if (!isKeysMoved(error) || attempt === attempts) throw error;
    }
  }
}

async function walk(
  store: RedisClient,
  prefix: string,
  { organizationId, signal, ...options }: FsckOptions & { onFull: (error: unknown) => void },
): Promise<Walked | { kind: 'unknown-organization' | 'interrupted' }> {
  const checks = createChecks(store, prefix, options);
  const { counts, loading } = checks;
  const registered = new Set(await listOrganizations(store, prefix));
  if (organizationId !== undefined && !registered.has(organizationId)) {
    const base = organizationBase(prefix, organizationId);
    if (!(await organizationExists(store, base))) return { kind: 'unknown-organization' };
  }
  // One at a time: each reads long lists by calls of up to a millisecond, for which requests wait.
  for (const id of organizationId === undefined ? registered : [organizationId]) {
    if (signal?.aborted === true) return { kind: 'interrupted' };
    await checks.of(organizationBase(prefix, id));
  }

  /** What the name index had when the organization was first looked at: a scan may miss what has been added since. */
  const first = new Map<Check, Naming>();
  const outside = { store, base: prefix, report: createReport(store, prefix, '', options) };
  const examine = async (key: string): Promise<void> => {
    if (!key.startsWith(`${prefix}{`)) return await checkTypeOutside(outside, key);
    const base = key.slice(0, key.indexOf('}:', prefix.length) + 2);
    // Organizations that only the legacy service knows have these keys, too.
    if (key.startsWith(cutoverKeys(base))) {
      const id = organizationOf(prefix, base);
      if (id === undefined) return;
      return await checkType({ store, base, report: createReport(store, base, id, options) }, key);
    }
    const check = await checks.of(base);
    if (check === undefined) return;
    if (!first.has(check)) first.set(check, { ...check });
    await checkKey(check, key);
  };

  await checkTypeOutside(outside, cutoverKey(prefix));
  const start = organizationId === undefined ? prefix : organizationBase(prefix, organizationId);
  for await (const keys of scanKeys(store, start)) {
    for await (const chunk of yieldingChunks(keys, atOnce)) {
      if (signal?.aborted === true) return { kind: 'interrupted' };
      await Promise.all(chunk.map(examine));
    }
  }
  for (const [check, before] of first) await checkAddedBuckets(check, before, signal);
  return signal?.aborted === true ? { kind: 'interrupted' } : { kind: 'checked', counts, loading };
}

/** Checks the buckets that the index has grown by, until it grows no further: entries move to those added even now. */
async function checkAddedBuckets(check: Check, { snapshot, buckets }: Naming, signal?: AbortSignal) {
  for (let added = Number(buckets ?? 1); ; added++) {
    if (signal?.aborted === true) return;
    Object.assign(check, await readNaming(check.store, check.base));
    if (check.snapshot.index !== snapshot.index || added >= Number(check.buckets ?? 1)) return;
    await checkBucket(check, String(added));
  }
}

/** Checks one key of an organization, by what it is. */
async function checkKey(check: Check, key: string): Promise<void> {
  const { base } = check;
  const generation = generationOf(base, key);
  if (generation !== undefined) await checkGeneration(check, key, generation);
  for (const [start, checkOne] of [
    [namesBucketKey(base, check.snapshot.index, ''), checkBucket],
    [profileKey(base, ''), checkProfile],
    [apiKeyKey(base, ''), checkKeyRecord],
    [collectionKey(base, ''), checkCollection],
  ] as const) {
    if (key.startsWith(start)) return await checkOne(check, key.slice(start.length));
  }
  await checkType(check, key);
}
