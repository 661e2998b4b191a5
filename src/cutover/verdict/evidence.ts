import { readComparisons, type ComparisonSummary } from '../compare/summary.ts';
import { createReplayQueue } from '../replay/queue/queue.ts';
import { authorityOf } from '../modes.ts';
import { readCutover, removeEnded } from '../switch/registry.ts';
import { readLegacyPictures } from './pictures.ts';
import { replicationIdsOf, type RedisClient } from '../../redis/connection/client.ts';
import {
  forwardedOrganizationsKey,
  organizationBase,
  replayOrganizationsKey,
  settingsKey,
} from '../../redis/keys.ts';
import { findUnregistered } from '../../redis/organizations.ts';

/** What verdicts are based on, and the results of comparing in each organization. */
export type Evidence = Awaited<ReturnType<typeof readEvidence>>;

/** Reads the evidence, after removing the registrations of processes that have certainly ended. */
export async function gatherEvidence(store: RedisClient, prefix: string): Promise<Evidence> {
  await removeEnded(store, prefix);
  return await readEvidence(store, prefix, await readState(store, prefix));
}

/**
 * The mode and the instances, and whether Redis may have lost something, as by a failover, since the last verify, or
 * without one since it became the authority.
 */
export async function readState(store: RedisClient, prefix: string) {
  const state = await readCutover(store, prefix);
  const { mode, verifiedOn, switchedOn } = state;
  const before = verifiedOn ?? (authorityOf(mode) === 'redis' ? switchedOn : undefined);
  return { ...state, hasFailedOver: before !== undefined && before !== (await replicationIdsOf(store)) };
}

/** Like `gatherEvidence`, but changes nothing; undefined if no mode was ever set, and no organization is asked then. */
export async function findEvidence(store: RedisClient, prefix: string): Promise<Evidence | undefined> {
  const state = await readState(store, prefix);
  return state.isStored ? await readEvidence(store, prefix, state) : undefined;
}

async function readEvidence(
  store: RedisClient,
  prefix: string,
  state: Awaited<ReturnType<typeof readState>>,
) {
  const [organizations, replay, unregistered, legacyPictures] = await Promise.all([
    readComparisons(store, prefix),
    createReplayQueue(store, prefix).state(),
    findLostOrganizations(store, prefix),
    readLegacyPictures(store, prefix),
  ]);
  const comparisons = totals(organizations, state.since);
  return { state, organizations, replay, unregistered, legacyPictures, comparisons };
}

/** The organizations with data of the cut-over that exist and that the registry does not have, in order. */
async function findLostOrganizations(store: RedisClient, prefix: string): Promise<string[]> {
  const [forwarded, waiting] = await Promise.all([
    store.smembers(forwardedOrganizationsKey(prefix)),
    store.hkeys(replayOrganizationsKey(prefix)),
  ]);
  const missing = await findUnregistered(store, prefix, new Set([...forwarded, ...waiting]));
  const exist = await Promise.all(
    missing.map((id) => store.exists(settingsKey(organizationBase(prefix, id)))),
  );
  // One may have been made just now, and is registered before it exists.
  const lost = await findUnregistered(
    store,
    prefix,
    missing.filter((_, at) => exist[at] === 1),
  );
  return lost.sort();
}

/** The organizations with comparisons since the current mode came into force. */
export function inThisMode(organizations: readonly ComparisonSummary[], since: number): ComparisonSummary[] {
  return organizations.filter((one) => one.since === since);
}

/** How often each field has differed since the current mode came into force. */
export function countDifferences({ organizations, state }: Evidence): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { fields } of inThisMode(organizations, state.since)) {
    for (const [field, count] of Object.entries(fields)) counts.set(field, (counts.get(field) ?? 0) + count);
  }
  return counts;
}

/** How many changes may be missing in Redis until the next clean verify, by reason. */
export function countGaps({
  organizations,
  state: { gap, verifiedAt = 0 },
}: Evidence): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { reason, count } of organizations.flatMap(({ gaps }) => gaps)) {
    counts[reason] = (counts[reason] ?? 0) + count;
  }
  if (gap !== undefined && gap.at >= verifiedAt) counts['instance-ended'] = 1;
  return counts;
}

function totals(organizations: readonly ComparisonSummary[], since: number) {
  const sum = (some: readonly ComparisonSummary[], of: (one: ComparisonSummary) => number): number =>
    some.reduce((total, one) => total + of(one), 0);
  // Comparing starts over with each mode: comparisons made before the current one came into force do not count.
  const current = inThisMode(organizations, since);
  return {
    compared: sum(current, (one) => one.compared),
    different: sum(current, (one) => one.different),
    unreadable: sum(current, (one) => one.unreadable),
    differingUsers: sum(current, (one) => one.differingUsers),
    unmappedKeys: sum(organizations, (one) => one.unmappedKeys.length),
    unusableKeys: sum(organizations, (one) => one.unusableKeys.length),
    refusedKeys: sum(organizations, (one) => one.refusedKeys.length),
    /** Those of them that a verify has found in the source since. */
    refusedKeysInSource: sum(organizations, (one) => one.refusedKeys.filter((key) => key.isInSource).length),
    /** Users, and denylists, with a change that was forwarded some seconds ago and not adopted yet. */
    unsettled: sum(organizations, (one) => one.unsettledUsers + Number(one.isDenylistUnsettled)),
    /** The same, including those whose change is still in progress. */
    unadopted: sum(organizations, (one) => one.unadopted),
    failedAdoptions: sum(organizations, (one) => one.failedAdoptions),
    lostNames: sum(organizations, (one) => one.lostNames),
    /** When a change was last forwarded that may be missing here for good, ms; 0 if none was. */
    lastGapAt: Math.max(0, ...organizations.flatMap(({ gaps }) => gaps.map(({ last }) => last))),
  };
}
