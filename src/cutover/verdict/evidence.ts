import { readComparisons, type ComparisonSummary } from '../compare/summary.ts';
import { createReplayQueue, type ReplayState } from '../replay/queue/queue.ts';
import { readCutover, removeEnded } from '../switch/registry.ts';
import type { ComparisonTotals, Evidence } from './readiness.ts';
import { readLegacyPictures } from './pictures.ts';
import type { RedisClient } from '../../redis/connection/client.ts';

/** What verdicts are made of, and what comparing has found in each organization. */
export interface GatheredEvidence extends Evidence {
  organizations: ComparisonSummary[];
  replay: ReplayState;
}

/** Reads the evidence; registrations of processes that have certainly ended are removed first. */
export async function gatherEvidence(store: RedisClient, prefix: string): Promise<GatheredEvidence> {
  const { instances } = await readCutover(store, prefix);
  await removeEnded(store, prefix, instances);
  return await readEvidence(store, prefix);
}

/** Reads the evidence and changes nothing. */
export async function readEvidence(store: RedisClient, prefix: string): Promise<GatheredEvidence> {
  const [state, organizations, replay, legacyPictures] = await Promise.all([
    readCutover(store, prefix),
    readComparisons(store, prefix),
    createReplayQueue(store, prefix).state(),
    readLegacyPictures(store, prefix),
  ]);
  return { state, organizations, replay, legacyPictures, comparisons: totals(organizations, state.since) };
}

/** The organizations with comparisons since the mode is in force. */
export function inThisMode(organizations: readonly ComparisonSummary[], since: number): ComparisonSummary[] {
  return organizations.filter((one) => one.since === since);
}

/** How often each field has differed since the mode is in force. */
export function countDifferences({ organizations, state }: GatheredEvidence): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { fields } of inThisMode(organizations, state.since)) {
    for (const [field, count] of Object.entries(fields)) counts.set(field, (counts.get(field) ?? 0) + count);
  }
  return counts;
}

/** Each mode begins comparing anew: what was compared before the present one came into force does not count. */
function totals(organizations: readonly ComparisonSummary[], since: number): ComparisonTotals {
  const sum: ComparisonTotals = {
    compared: 0,
    different: 0,
    differingUsers: 0,
    unmappedKeys: 0,
    refusedKeys: 0,
    unsettled: 0,
    unadopted: 0,
    failedAdoptions: 0,
    lostNames: 0,
    lastGapAt: 0,
  };
  for (const one of organizations) {
    sum.unmappedKeys += one.unmappedKeys.length;
    sum.refusedKeys += one.refusedKeys.length;
    sum.unsettled += one.unsettledUsers + Number(one.isDenylistUnsettled);
    sum.unadopted += one.unadopted;
    sum.failedAdoptions += one.failedAdoptions;
    sum.lostNames += one.lostNames;
    sum.lastGapAt = Math.max(sum.lastGapAt, ...one.gaps.map(({ last }) => last));
    if (one.since !== since) continue;
    sum.compared += one.compared;
    sum.different += one.different;
    sum.differingUsers += one.differingUsers;
  }
  return sum;
}
