import { Registry } from 'prom-client';
import { modes } from '../cutover/modes.ts';
import { countDifferences, type Evidence } from '../cutover/verdict/evidence.ts';
import { judge, nextMode, silence } from '../cutover/verdict/readiness.ts';
import { addGauge, oneOf, type MetricsText } from '../deprecation/metrics.ts';

interface GaugeSpec {
  name: string;
  help: string;
  label?: string;
  read: (evidence: Evidence) => number | Record<string, number>;
}

const gauges: readonly GaugeSpec[] = [
  {
    name: 'mode',
    help: '1 for the mode in force, 0 for the others.',
    label: 'mode',
    read: ({ state }) => oneOf(modes, state.mode),
  },
  {
    name: 'ready',
    help: '1 if the step to the next mode is safe (admin cutover status says why not), else 0.',
    label: 'to',
    read: (evidence) => {
      const next = nextMode(evidence.state.mode);
      return next === undefined ? {} : { [next]: Number(judge(evidence, next).ready) };
    },
  },
  {
    name: 'instances',
    help: 'Processes that take part in the cut-over; a silent one blocks every switch.',
    label: 'state',
    read: ({ state: { instances } }) => {
      const silent = instances.filter(({ silentMs }) => silentMs > silence).length;
      return { responding: instances.length - silent, silent };
    },
  },
  {
    name: 'comparisons',
    help: 'Responses of the legacy service compared with Redis since the current mode came into force.',
    label: 'result',
    read: ({ comparisons: { compared, different } }) => ({ same: compared - different, different }),
  },
  {
    name: 'differences',
    help: 'Differences found since the current mode came into force, by field.',
    label: 'field',
    read: (evidence) => Object.fromEntries(countDifferences(evidence)),
  },
  {
    name: 'differing_users',
    help: 'Users who differed when they were last compared.',
    read: ({ comparisons }) => comparisons.differingUsers,
  },
  {
    name: 'disputed_keys',
    help: 'API keys that only the legacy service accepts (unmapped), or only Redis (refused).',
    label: 'kind',
    read: ({ comparisons }) => ({ unmapped: comparisons.unmappedKeys, refused: comparisons.refusedKeys }),
  },
  {
    name: 'unsettled',
    help: 'Users and denylists with a change that was forwarded some seconds ago and may not have reached Redis.',
    read: ({ comparisons }) => comparisons.unsettled,
  },
  {
    name: 'failed_adoptions',
    help: 'Users with a change that the legacy service accepted and that could not be adopted.',
    read: ({ comparisons }) => comparisons.failedAdoptions,
  },
  {
    name: 'gaps',
    help: 'Changes that may be missing in Redis until the next clean verify, by reason.',
    label: 'reason',
    read: ({ organizations, state: { gap, verifiedAt = 0 } }) => {
      const counts: Record<string, number> = {};
      for (const { reason, count } of organizations.flatMap(({ gaps }) => gaps)) {
        counts[reason] = (counts[reason] ?? 0) + count;
      }
      if (gap !== undefined && gap.at >= verifiedAt) counts['instance-ended'] = 1;
      return counts;
    },
  },
  {
    name: 'legacy_pictures',
    help: 'Users whose picture is where the legacy service shows it, as counted some minutes ago.',
    read: ({ legacyPictures }) => legacyPictures?.count ?? 0,
  },
  {
    name: 'backlog_entries',
    help: 'Changes that wait for their replay to the legacy service.',
    read: ({ replay }) => replay.entries,
  },
  {
    name: 'backlog_age_seconds',
    help: 'How long the oldest of them has been waiting; 0 where none does.',
    read: ({ replay: { oldestAt }, state: { now } }) =>
      oldestAt === undefined ? 0 : Math.max(0, now - oldestAt) / 1000,
  },
  {
    name: 'set_aside_entries',
    help: 'Changes that the legacy service refused, for an operator to decide about (admin cutover aside).',
    read: ({ replay }) => replay.setAside,
  },
  {
    name: 'replay_paused',
    help: '1 if the replay pauses (admin cutover status says why), else 0.',
    read: ({ replay }) => Number(replay.pausedBecause !== undefined),
  },
];

/**
 * The state of the cut-over, which all instances share, in Prometheus' format. No label has a user, a key or an
 * organization. If no mode was ever stored, and while Redis is unavailable, the series are absent.
 */
export function createCutoverMetrics(read: () => Promise<Evidence>): MetricsText {
  const registry = new Registry();
  let evidence: Evidence | undefined;
  for (const { name, read: valuesOf, ...gauge } of gauges) {
    addGauge(registry, { ...gauge, name: `profile_bridge_cutover_${name}` }, () =>
      evidence?.state.isStored === true ? valuesOf(evidence) : undefined,
    );
  }
  return {
    text: async () => {
      evidence = await read().catch(() => undefined);
      return await registry.metrics();
    },
    contentType: registry.contentType,
  };
}
