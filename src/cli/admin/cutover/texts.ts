import { formatNumber } from '../../../lib/numbers.ts';
import { formatInstant } from '../../../lib/iso8601.ts';
import type { CutoverState, Instance } from '../../../cutover/switch/registry.ts';
import { adoptionFailureTexts } from '../../../cutover/compare/pending.ts';
import type { Unusable } from '../../../cutover/compare/summary.ts';
import { countDifferences, countGaps, type Evidence } from '../../../cutover/verdict/evidence.ts';
import { adminCommand } from '../../command-line.ts';
import { isSilent, type Finding, type Verdict } from '../../../cutover/verdict/readiness.ts';

/** The mode in force, and a switch under way. */
export function modeLines(state: CutoverState): string[] {
  const { mode, since, by, underWay, isStored, isLost, hasLostSwitch } = state;
  if (isLost) return ['Mode: unknown (Redis has lost it)'];
  if (!isStored)
    return [
      'Mode: native (none has been set yet; it becomes shadow when a bridge starts with LEGACY_BASE_URL)',
    ];
  return [
    `Mode: ${mode}`,
    `Since: ${formatInstant(since)}, set by: ${by}`,
    ...(hasLostSwitch
      ? [
          `Redis has lost a later switch, and changes are refused: choose the mode with ${adminCommand} cutover set.`,
        ]
      : []),
    ...(underWay ? [`A switch to ${underWay.to} is under way (phase: ${underWay.phase}).`] : []),
  ];
}

export function instanceLines(instances: readonly Instance[]): string[] {
  return [
    `Instances: ${instances.length}`,
    ...instances.map((instance) => {
      const { id, kind, silentMs, epoch, legacy } = instance;
      const seen = `last heartbeat ${(silentMs / 1000).toFixed(1)} s ago`;
      const notes = [
        `epoch ${epoch}`,
        ...(legacy ? [] : ['without LEGACY_BASE_URL']),
        ...(isSilent(instance) ? ['SILENT'] : []),
      ];
      return `  ${id} (${kind}): ${seen}, ${notes.join(', ')}`;
    }),
  ];
}

/** How many examples of one kind are listed. */
const shownExamples = 5;

/** Changes that the legacy service may have and Redis does not; nothing if there are none. */
export function doubtLines({ comparisons, organizations }: Evidence): string[] {
  const { unsettled, failedAdoptions } = comparisons;
  if (unsettled + failedAdoptions === 0) return [];
  const failures = organizations.flatMap(({ organizationId, adoptionFailures }) =>
    adoptionFailures.map(
      ({ userId, reason, at }) =>
        `  ${organizationId}, user ${userId}: ${adoptionFailureTexts[reason]} (${formatInstant(at)})`,
    ),
  );
  return [
    `Changes in doubt: ${formatNumber(unsettled)}; could not be brought over: ${formatNumber(failedAdoptions)}`,
    ...shortened(failures, failedAdoptions),
  ];
}

/** The first examples of `count`. */
function shortened(examples: readonly string[], count: number): string[] {
  return [
    ...examples.slice(0, shownExamples),
    ...(count > shownExamples ? ['  … (status --json has more)'] : []),
  ];
}

/** What else may be missing in Redis until the next clean verify; nothing if there are no gaps. */
export function gapLines(evidence: Evidence): string[] {
  const { gap } = evidence.state;
  const counts = countGaps(evidence);
  const reasons = Object.entries(counts).map(([reason, count]) => `${reason} ${formatNumber(count)}`);
  return [
    ...(reasons.length > 0 ? [`Gaps: ${reasons.join(', ')} (status --json has more)`] : []),
    ...(gap && 'instance-ended' in counts ? [`  ${formatInstant(gap.at)}: ${gap.reason}`] : []),
  ];
}

/** Pictures that would be lost with the legacy service. */
export function pictureLines({ state, legacyPictures }: Evidence): string[] {
  if (!state.isStored || state.mode === 'shadow') return [];
  const what = 'Pictures at their legacy URLs';
  if (legacyPictures === undefined) return [`${what}: not counted yet`];
  const { count, at } = legacyPictures;
  const minutes = Math.max(0, Math.round((state.now - at) / 60_000));
  return [`${what}: ${formatNumber(count)} (counted ${minutes} min ago)`];
}

export function comparisonLines(evidence: Evidence): string[] {
  const { compared, different, unreadable, differingUsers, unmappedKeys, refusedKeys } = evidence.comparisons;
  const fields = [...countDifferences(evidence)].map(([field, count]) => `${field} ${formatNumber(count)}`);
  const unread = unreadable === 0 ? '' : `, ${formatNumber(unreadable)} could not be read`;
  return [
    `Comparisons: ${formatNumber(compared)} made, ${formatNumber(different)} differed${unread}; users who differ now: ${formatNumber(differingUsers)}`,
    ...(fields.length === 0 ? [] : [`  fields: ${fields.join(', ')}`]),
    `API keys unknown here: ${formatNumber(unmappedKeys)}; refused by the legacy service only: ${formatNumber(refusedKeys)}`,
    ...unusableKeyLines(evidence),
    ...refusedKeyLines(evidence),
  ];
}

const unusableTexts: Record<Unusable, string> = {
  expired: 'has expired here',
  'no-user': 'is bound to no user here',
};

function unusableKeyLines({ organizations, comparisons }: Evidence): string[] {
  const lines = organizations.flatMap(({ organizationId, unusableKeys }) =>
    unusableKeys.map(
      ({ keyId, reason, lastSeen }) =>
        `  ${organizationId}, key ${keyId}: ${unusableTexts[reason]}; accepted by the legacy service, last seen ${formatInstant(lastSeen)}`,
    ),
  );
  return shortened(lines, comparisons.unusableKeys);
}

function refusedKeyLines({ organizations, comparisons }: Evidence): string[] {
  const lines = organizations.flatMap(({ organizationId, refusedKeys }) =>
    refusedKeys.map(
      ({ keyId, isInSource, lastSeen }) =>
        `  ${organizationId}, key ${keyId}: refused by the legacy service, last seen ${formatInstant(lastSeen)}${isInSource ? '; the source has it' : ''}`,
    ),
  );
  return shortened(lines, comparisons.refusedKeys);
}

/** What waits to be replayed, and what was refused. */
export function replayLines({ state, replay }: Evidence): string[] {
  const { entries, oldestAt, setAside, pausedBecause, organizations } = replay;
  const lag =
    oldestAt === undefined ? '' : `, the oldest has waited ${((state.now - oldestAt) / 1000).toFixed(1)} s`;
  const retries = organizations.flatMap(({ organizationId, retried }) =>
    retried === undefined
      ? []
      : `  ${organizationId}: the first change has been retried since ${formatInstant(retried.since)}; last response: ${retried.answer}`,
  );
  return [
    `Replay to the legacy service: ${formatNumber(entries)} waiting${lag}; set aside: ${formatNumber(setAside)}`,
    ...(pausedBecause === undefined ? [] : [`The replay is paused: ${pausedBecause}`]),
    ...shortened(retries, retries.length),
  ];
}

/** Why a step is not safe, and what to know before it. */
export function findingLines({ reasons, warnings }: Verdict): string[] {
  return [
    ...reasons.map((finding) => `  - ${inWords(finding)}`),
    ...warnings.map((finding) => `  - warning: ${inWords(finding)}`),
  ];
}

/** In one line, with its remedy. */
export function inWords({ reason, remedy }: Finding): string {
  return `${reason}: ${remedy}`;
}
