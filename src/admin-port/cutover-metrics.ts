import { Registry } from 'prom-client';
import { modes } from '../cutover/modes.ts';
import { countDifferences, countGaps, type Evidence } from '../cutover/verdict/evidence.ts';
import { isSilent, judge, nextMode } from '../cutover/verdict/readiness.ts';
import {
  addGauges,
  stateSet,
  type GaugeSpec,
  type MetricsText,
  type Values,
} from '../deprecation/metrics.ts';

const gauges = {
  mode: ['1 for the mode in force, 0 for the others.', 'mode'],
  ready: ['1 if the step to the next mode is safe (admin cutover status says why not), else 0.', 'to'],
  instances: ['Processes that take part in the cut-over; a silent one blocks every switch.', 'state'],
  comparisons: [
    'Responses of the legacy service compared with Redis since the current mode came into force; unreadable ones were not profiles.',
    'result',
  ],
  differences: ['Differences found since the current mode came into force, by field.', 'field'],
  differing_users: ['Users who differed when they were last compared.'],
  disputed_keys: [
    'API keys that only the legacy service accepts (unmapped), or only Redis (refused).',
    'kind',
  ],
  unsettled: [
    'Users and denylists with a change that was forwarded some seconds ago and may not have reached Redis.',
  ],
  failed_adoptions: ['Users with a change that the legacy service accepted and that could not be adopted.'],
  gaps: ['Changes that may be missing in Redis until the next clean verify, by reason.', 'reason'],
  legacy_pictures: [
    'Users whose picture is at its legacy URL, as counted some minutes ago; absent before the first count.',
  ],
  backlog_entries: ['Changes that wait for their replay to the legacy service.'],
  backlog_age_seconds: ['How long the oldest of them has been waiting; 0 where none does.'],
  set_aside_entries: [
    'Changes that the legacy service refused, for an operator to decide about (admin cutover aside).',
  ],
  replay_paused: ['1 if the replay is paused (admin cutover status says why), else 0.'],
} satisfies Record<string, GaugeSpec>;

function valuesOf(evidence: Evidence): Record<keyof typeof gauges, Values> {
  const { state, comparisons, replay, legacyPictures } = evidence;
  const next = nextMode(state.mode);
  const silent = state.instances.filter(isSilent).length;
  return {
    mode: stateSet(modes, state.mode),
    ready: next === undefined ? {} : { [next]: Number(judge(evidence, next).ready) },
    instances: { responding: state.instances.length - silent, silent },
    comparisons: {
      same: comparisons.compared - comparisons.different,
      different: comparisons.different,
      unreadable: comparisons.unreadable,
    },
    differences: Object.fromEntries(countDifferences(evidence)),
    differing_users: comparisons.differingUsers,
    disputed_keys: {
      unmapped: comparisons.unmappedKeys + comparisons.unusableKeys,
      refused: comparisons.refusedKeys,
    },
    unsettled: comparisons.unsettled,
    failed_adoptions: comparisons.failedAdoptions,
    gaps: countGaps(evidence),
    // Not 0 before they were counted: the legacy service may be switched off for that.
    legacy_pictures: legacyPictures?.count ?? {},
    backlog_entries: replay.entries,
    backlog_age_seconds: Math.max(0, state.now - (replay.oldestAt ?? state.now)) / 1000,
    set_aside_entries: replay.setAside,
    replay_paused: Number(replay.pausedBecause !== undefined),
  };
}

/**
 * The state of the cut-over, which all instances share, in Prometheus' format. No label has a user, a key or an
 * organization. If no mode was ever stored, and while Redis is unavailable, the series are absent.
 */
export function createCutoverMetrics(read: () => Promise<Evidence | undefined>): MetricsText {
  const registry = new Registry();
  let values: ReturnType<typeof valuesOf> | undefined;
  addGauges(registry, 'profile_bridge_cutover_', gauges, (name) => values?.[name]);
  return {
    text: async () => {
      const evidence = await read().catch(() => undefined);
      values = evidence && valuesOf(evidence);
      return await registry.metrics();
    },
  };
}
