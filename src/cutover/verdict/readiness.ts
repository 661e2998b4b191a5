import { firstFew } from '../../lib/collections/first-few.ts';
import { counted } from '../../lib/numbers.ts';
import { authorityOf, modes, ruleOf, type Mode } from '../modes.ts';
import type { Instance } from '../switch/registry.ts';
import type { Evidence } from './evidence.ts';

/** Something that prevents a step, or that the operator should know before it. */
export interface Finding {
  /** Stable, for machines. */
  code: string;
  reason: string;
  remedy: string;
}

export interface Verdict {
  to: Mode;
  ready: boolean;
  reasons: Finding[];
  warnings: Finding[];
}

/** The mode that usually comes after. */
export function nextMode(mode: Mode): Mode | undefined {
  return modes[modes.indexOf(mode) + 1];
}

/** Whether an instance has been silent for so long that it blocks a switch. */
export function isSilent({ silentMs }: Pick<Instance, 'silentMs'>): boolean {
  return silentMs > 3000;
}

const minComparisons = 100;

/** What can be replayed while a switch has changes on hold. */
const smallBacklog = { entries: 100, ageMs: 10_000 };

/** What other replication ids may mean: those of a master that has just joined a cluster look the same. */
const otherMasters = 'Redis has failed over, was restarted or has other masters';

const applyAndVerify =
  'run profile-bridge migrate apply, then profile-bridge migrate verify of all organizations and entities (of files: both with --as-of)';

/** Judges the step to a mode. */
export function judge(evidence: Evidence, to: Mode): Verdict {
  const reasons = [...reasonsAgainst(evidence, to)];
  return { to, ready: reasons.length === 0, reasons, warnings: [...warningsFor(evidence, to)] };
}

/**
 * What prevents Redis from taking over once changes have stopped: any forwarded change that has not been adopted by then,
 * however recent, and any open gap.
 */
export function judgeDoubts(
  state: Evidence['state'],
  { unadopted, lastGapAt }: Pick<Evidence['comparisons'], 'unadopted' | 'lastGapAt'>,
): Finding[] {
  return [...inDoubt(unadopted), ...openGap(state, lastGapAt)];
}

/** Whether a finding prevents a switch even with --force. */
export function blocksEvenForced({ code }: Finding): boolean {
  return [
    'impossible',
    'organizations-unregistered',
    'instance-without-legacy',
    'instance-cannot-replay',
    'instance-silent',
    'migration-running',
    'backlog-would-be-lost',
  ].includes(code);
}

function* when(holds: boolean, finding: Finding): Generator<Finding> {
  if (holds) yield finding;
}

function takesAuthority(from: Mode, to: Mode): boolean {
  return authorityOf(from) === 'legacy' && authorityOf(to) === 'redis';
}

function* reasonsAgainst(evidence: Evidence, to: Mode): Generator<Finding> {
  const { state, comparisons } = evidence;
  yield* state.isStored ? obstacleOfStep(state, to) : obstacleOfFirst(to, state);
  yield* organizationsLost(evidence);
  for (const instance of state.instances) yield* obstaclesOf(instance, to);
  if (state.mode === 'shadow' || takesAuthority(state.mode, to)) yield* keysRefusedHere(comparisons);
  if (takesAuthority(state.mode, to)) yield* beforeTakingAuthority(evidence);
  if (state.hasLostSwitch || state.mode === 'reverse') yield* judgeBacklog(evidence, to);
}

function* obstacleOfStep({ mode: from, hasLostSwitch }: Evidence['state'], to: Mode): Generator<Finding> {
  // Then the mode is chosen again.
  if (hasLostSwitch && from === to) return;
  const rule = ruleOf(from, to);
  if (rule.kind === 'impossible') {
    yield { code: 'impossible', reason: rule.reason, remedy: 'see src/cutover/README.md, "Runbook"' };
  }
  if (rule.kind === 'forced') {
    yield { code: 'not-the-next-mode', reason: rule.reason, remedy: 'add --force if intended' };
  }
}

/** While no mode has been set, native applies; it can then be set explicitly. */
function* obstacleOfFirst(to: Mode, { isLost }: Evidence['state']): Generator<Finding> {
  if (isLost) {
    yield {
      code: to === 'shadow' || to === 'native' ? 'mode-lost' : 'impossible',
      reason:
        'Redis has lost the mode, as if it had come back without its data, and may have been the authority',
      remedy:
        'restore Redis from a backup; otherwise --force makes the legacy service (shadow) or Redis as it is (native) the authority: see src/cutover/README.md, "Redis has lost the mode or a switch"',
    };
    return;
  }
  if (to === 'native') return;
  yield {
    code: to === 'shadow' ? 'no-mode' : 'impossible',
    reason: 'no mode was ever set',
    remedy: 'start the bridge with LEGACY_BASE_URL, and the mode is shadow',
  };
}

/** A switch goes by the registry: it would leave them in the old epoch, and miss what waits or is set aside there. */
function organizationsLost({ unregistered }: Evidence): Generator<Finding> {
  return when(unregistered.length > 0, {
    code: 'organizations-unregistered',
    reason: `the registry of organizations has lost ${counted(unregistered.length, 'organization')} (${firstFew(unregistered)}), as in a failover`,
    remedy: 'run profile-bridge admin fsck --repair',
  });
}

function* obstaclesOf(instance: Instance, to: Mode): Generator<Finding> {
  const { id, kind, silentMs, legacy, replay } = instance;
  yield* when(isSilent(instance), {
    code: 'instance-silent',
    reason: `instance ${id} has not been heard from for ${Math.round(silentMs / 1000)} s`,
    remedy: `restart or stop it; if it has certainly ended, add --assume-stopped ${id}`,
  });
  yield* when(kind === 'migrate' && !isSilent(instance), {
    code: 'migration-running',
    reason: `a migrate apply is under way (${id})`,
    remedy: 'wait until it has ended, or stop it; run again later, it resumes where it stopped',
  });
  yield* when(to !== 'native' && !legacy, {
    code: 'instance-without-legacy',
    reason: `instance ${id} does not know the legacy service`,
    remedy: 'restart it with LEGACY_BASE_URL',
  });
  yield* when(to === 'reverse' && !replay, {
    code: 'instance-cannot-replay',
    reason: `instance ${id} cannot store credentials for the replay`,
    remedy:
      'restart it with the same REPLAY_SECRET as every other instance (if it has one, its log says what is wrong with it)',
  });
}

function* keysRefusedHere({
  unmappedKeys,
  unusableKeys,
}: Pick<Evidence['comparisons'], 'unmappedKeys' | 'unusableKeys'>): Generator<Finding> {
  yield* when(unmappedKeys > 0, {
    code: 'unmapped-keys',
    reason: `${counted(unmappedKeys, 'API key')} that the legacy service accepts ${unmappedKeys === 1 ? 'is' : 'are'} unknown here`,
    remedy: `import ${unmappedKeys === 1 ? 'it' : 'them'} with profile-bridge migrate apply --entities api-keys; profile-bridge admin cutover status --json lists the fingerprints`,
  });
  yield* when(unusableKeys > 0, {
    code: 'unusable-keys',
    reason: `${counted(unusableKeys, 'API key')} that the legacy service accepts would be refused here, having expired or being bound to no user`,
    remedy:
      'correct the source and run profile-bridge migrate apply --entities api-keys, or revoke those that should no longer work: profile-bridge admin key revoke --org ORG KEYID (profile-bridge admin cutover status lists them)',
  });
}

function* beforeTakingAuthority({ state, comparisons }: Evidence): Generator<Finding> {
  const { refusedKeys, refusedKeysInSource, failedAdoptions, differingUsers } = comparisons;
  yield* when(refusedKeys > refusedKeysInSource, {
    code: 'refused-keys',
    reason: `${counted(refusedKeys - refusedKeysInSource, 'API key')} that the legacy service refuses would be accepted here`,
    remedy:
      'wait for their next calls if the legacy service accepts them again; otherwise revoke them: profile-bridge admin key revoke --org ORG KEYID (profile-bridge admin cutover status lists them); if something in front of the legacy service answered 403, run profile-bridge migrate verify of a source that has them',
  });
  yield* inDoubt(comparisons.unsettled);
  yield* when(failedAdoptions > 0, {
    code: 'failed-adoptions',
    reason: `${counted(failedAdoptions, 'user')} ${failedAdoptions === 1 ? 'has' : 'have'} a change that could not be brought over`,
    remedy: `wait for their next calls, which retry it (profile-bridge admin cutover status --json says whose and why), or ${applyAndVerify}`,
  });
  yield* when(differingUsers > 0, {
    code: 'users-differ',
    reason: `${counted(differingUsers, 'user')} differed when last compared`,
    remedy: `wait until their next calls repair them, or ${applyAndVerify}`,
  });
  const { verifiedAt, since } = state;
  if (verifiedAt === undefined || verifiedAt <= since) {
    yield {
      code: 'not-verified',
      reason: `not everything has been verified since the mode became ${state.mode}`,
      remedy: applyAndVerify,
    };
  } else {
    yield* openGap(state, comparisons.lastGapAt);
  }
}

function inDoubt(count: number): Generator<Finding> {
  return when(count > 0, {
    code: 'unsettled',
    reason: `${counted(count, 'forwarded change')} may not have reached Redis`,
    remedy: `wait for the next calls of these users; otherwise, and for a denylist, wait three times LEGACY_TIMEOUT, then ${applyAndVerify}`,
  });
}

function* openGap(
  { verifiedAt = 0, gap, hasFailedOver }: Evidence['state'],
  lastOfChanges: number,
): Generator<Finding> {
  yield* when(hasFailedOver, {
    code: 'gap',
    reason: `since the last verify, ${otherMasters}, and may lack the last changes`,
    remedy: applyAndVerify,
  });
  const lastGapAt = Math.max(gap?.at ?? 0, lastOfChanges);
  yield* when(verifiedAt <= lastGapAt, {
    code: 'gap',
    reason:
      gap?.at === lastGapAt
        ? `since the last verify, an instance may have left changes unfinished: ${gap.reason}`
        : 'since the last verify some changes may not have reached Redis (gaps in profile-bridge admin cutover status --json)',
    remedy: applyAndVerify,
  });
}

function* judgeBacklog(evidence: Evidence, to: Mode): Generator<Finding> {
  const { state, replay } = evidence;
  // To set reverse again is to have them replayed.
  if (state.mode === 'reverse' && to === 'reverse') return;
  const { entries, oldestAt, setAside, pausedBecause } = replay;
  const isLate = oldestAt !== undefined && state.now - oldestAt > smallBacklog.ageMs;
  // Otherwise changes would be on hold for what is not being replayed.
  const isHeldUp = entries > 0 && (pausedBecause !== undefined || state.hasLostSwitch);
  yield* when(entries > smallBacklog.entries || isLate || isHeldUp, backlog(evidence, to));
  yield* judgeSetAside(setAside, to);
}

function backlog(evidence: Evidence, to: Mode): Finding {
  const { hasLostSwitch } = evidence.state;
  const { entries } = evidence.replay;
  return {
    // The legacy service must not get authority without them, whatever is forced.
    code: authorityOf(to) === 'legacy' && !hasLostSwitch ? 'backlog-would-be-lost' : 'backlog',
    reason: `${counted(entries, 'change')} still ${entries === 1 ? 'waits' : 'wait'} to be replayed to the legacy service`,
    remedy: remedyOfBacklog(evidence, to),
  };
}

function remedyOfBacklog({ state, replay }: Evidence, to: Mode): string {
  if (state.hasLostSwitch) {
    const choice =
      to === 'reverse'
        ? `${state.mode === 'reverse' ? 'this' : '--force'} replays them; to discard them, set mirror with --force first`
        : '--force discards them; to replay them, set reverse';
    return `the legacy service may have newer values: ${choice}`;
  }
  const isReplaying = state.instances.some((instance) => instance.kind === 'bridge' && !isSilent(instance));
  if (!isReplaying) return 'start a bridge: no instance that could replay them responds';
  if (replay.pausedBecause !== undefined) return `the replay is paused: ${replay.pausedBecause}`;
  return `wait for the replay, as profile-bridge admin cutover set ${to} --wait 60 does`;
}

/** What changes that are set aside prevent. Asked again once changes have stopped: some may be set aside only then. */
export function judgeSetAside(count: number, to: Mode): Finding[] {
  if (count === 0 || authorityOf(to) !== 'legacy') return [];
  const reason = `${counted(count, 'change')} that the legacy service refused would be undone here`;
  const remedy =
    'see profile-bridge admin cutover aside list; then profile-bridge admin cutover aside retry or drop';
  return [{ code: 'set-aside', reason, remedy }];
}

function* warningsFor(evidence: Evidence, to: Mode): Generator<Finding> {
  const { state, comparisons, replay, legacyPictures } = evidence;
  const { unsettled, refusedKeysInSource, lostNames, compared, unreadable } = comparisons;
  const isTaking = takesAuthority(state.mode, to);
  const isLettingGo = state.mode === 'reverse' && to === 'native';
  yield* when(state.hasLostSwitch, {
    code: 'switch-lost',
    reason: 'Redis has lost the last switch, which an instance has seen, and changes are refused',
    remedy: `choose the mode again with profile-bridge admin cutover set; ${state.mode}, the one before, may be set as well`,
  });
  const isReplayChosenAgain = state.hasLostSwitch && state.mode === 'reverse' && to === 'reverse';
  yield* when(isReplayChosenAgain && replay.entries > 0, backlog(evidence, to));
  yield* when(isLettingGo && replay.setAside > 0, {
    code: 'set-aside',
    reason: `${counted(replay.setAside, 'change')} that the legacy service refused will never reach it`,
    remedy: 'see profile-bridge admin cutover aside list',
  });
  yield* when(isLettingGo && unsettled > 0, {
    code: 'unsettled',
    reason: `${counted(unsettled, 'user')} made a change before reverse that the legacy service may have, and Redis does not`,
    remedy:
      'they were told that the outcome is unknown, and can make it again (profile-bridge admin cutover status --json says whose)',
  });
  yield* when(isLettingGo && state.hasFailedOver, {
    code: 'failed-over',
    reason: `since the last verify, or since it became the authority, ${otherMasters}, and may lack changes that had reached the legacy service`,
    remedy:
      'compare the two with profile-bridge migrate verify; what Redis lacks can be brought over in mirror',
  });
  yield* when(isTaking && refusedKeysInSource > 0, {
    code: 'refused-keys',
    reason: `${counted(refusedKeysInSource, 'API key')} whose last call was answered 403 would be accepted here, as the source has ${refusedKeysInSource === 1 ? 'it' : 'them'}`,
    remedy:
      'revoke those that should no longer work: profile-bridge admin key revoke --org ORG KEYID (profile-bridge admin cutover status lists them)',
  });
  yield* when(isTaking && lostNames > 0, {
    code: 'lost-names',
    reason: `${counted(lostNames, 'user')} lost a username to another user, and the legacy service shows it for both`,
    remedy:
      'compare names as the legacy service does (profile-bridge admin org set --username-comparison), or rename one of the users there',
  });
  const pictures = legacyPictures?.count ?? 0;
  yield* when(pictures > 0 && authorityOf(to) === 'redis', {
    code: 'legacy-pictures',
    reason: `${counted(pictures, 'user')} still ${pictures === 1 ? 'has' : 'have'} a picture at its legacy URL`,
    remedy:
      'copy them with profile-bridge migrate apply --copy-pictures, in mirror or in native, while they can still be fetched',
  });
  const isForward = authorityOf(state.mode) === 'legacy' && to !== 'shadow';
  yield* when(isForward && unreadable > 0, {
    code: 'unreadable-responses',
    reason: `${counted(unreadable, 'response')} of the legacy service to GET could not be read as ${unreadable === 1 ? 'a profile' : 'profiles'}`,
    remedy: 'check LEGACY_BASE_URL and what it answers to GET',
  });
  yield* when(isForward && compared < minComparisons, {
    code: 'few-comparisons',
    reason: `fewer than ${minComparisons} comparisons were made in this mode (${compared})`,
    remedy: 'wait for more traffic',
  });
}
