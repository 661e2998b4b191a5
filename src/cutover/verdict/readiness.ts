import { counted } from '../../lib/numbers.ts';
import { authorityOf, ruleOf, type Mode } from '../modes.ts';
import type { ReplayState } from '../replay/queue/queue.ts';
import type { CutoverState, Instance } from '../switch/registry.ts';
import type { LegacyPictures } from './pictures.ts';

/** What is known of all organizations together. */
export interface ComparisonTotals {
  compared: number;
  different: number;
  /** Users whose last comparison differed. */
  differingUsers: number;
  /** Keys that the legacy service accepts and Redis does not have. */
  unmappedKeys: number;
  /** Keys that Redis accepts and the legacy service refuses. */
  refusedKeys: number;
  /** Users, and denylists, with a change that was forwarded some seconds ago and not adopted yet. */
  unsettled: number;
  /** The same, with those whose change is just under way. */
  unadopted: number;
  /** Users with a change that could not be adopted. */
  failedAdoptions: number;
  /** Users whose name the legacy service shows for another user. */
  lostNames: number;
  /** When a change was last forwarded that may be missing here for good, ms; 0 if none was. */
  lastGapAt: number;
}

/** What a verdict is made of. */
export interface Evidence {
  state: CutoverState;
  comparisons: ComparisonTotals;
  replay: Omit<ReplayState, 'organizations'>;
  /** Undefined where they have not been counted yet. */
  legacyPictures: LegacyPictures | undefined;
}

/** Something that stands in the way of a step, or that is to be known before it. */
export interface Finding {
  /** Stable, for machines. */
  code: string;
  reason: string;
  remedy: string;
}

/** Whether the step to a mode is safe. */
export interface Verdict {
  to: Mode;
  ready: boolean;
  /** What stands in the way. */
  reasons: Finding[];
  warnings: Finding[];
}

/** The mode that usually comes after. */
export function nextMode(mode: Mode): Mode | undefined {
  const next: Record<Mode, Mode | undefined> = {
    shadow: 'mirror',
    mirror: 'reverse',
    reverse: 'native',
    native: undefined,
  };
  return next[mode];
}

/** How long an instance may be silent before it counts as one that blocks a switch, in ms. */
export const silence = 3000;

const fewComparisons = 100;

/** So few waiting changes are replayed while a switch holds changes up, if the oldest is not older than this, in ms. */
const smallBacklog = { entries: 100, ageMs: 10_000 };

/**
 * Judges the step to a mode by what is known now. Once changes have stopped none is under way any more: one that has
 * not been adopted by then is in doubt, however young it is.
 */
export function judge(evidence: Evidence, to: Mode, haveChangesStopped = false): Verdict {
  const { state, comparisons } = evidence;
  const rule = ruleOf(state.mode, to);
  const reasons: Finding[] = [];
  // Where no mode was ever set it is native, and can be set to that for good.
  const isFirst = !state.isStored && to === 'native';
  if (rule.kind === 'impossible' && !isFirst) {
    reasons.push({ code: 'impossible', reason: rule.reason, remedy: 'see src/cutover/README.md, "Modes"' });
  }
  if (rule.kind === 'forced') {
    reasons.push({ code: 'not-the-next-mode', reason: rule.reason, remedy: 'add --force if intended' });
  }
  reasons.push(...state.instances.flatMap((instance) => obstaclesOf(instance, to)));
  if (to === 'mirror') reasons.push(...disputedKeys(comparisons, false));
  const takesAuthority = authorityOf(state.mode) === 'legacy' && authorityOf(to) === 'redis';
  const inDoubt = haveChangesStopped ? comparisons.unadopted : comparisons.unsettled;
  if (takesAuthority) reasons.push(...beforeTakingAuthority(evidence, inDoubt));
  if (state.mode === 'reverse') reasons.push(...beforeLeavingReverse(evidence, to));
  return { to, ready: reasons.length === 0, reasons, warnings: warningsFor(evidence, to, takesAuthority) };
}

/** Whether a finding holds up a switch even with --force. */
export function isInsuperable({ code }: Finding): boolean {
  return [
    'impossible',
    'instance-without-legacy',
    'instance-cannot-replay',
    'instance-silent',
    'migration-running',
    'backlog-would-be-lost',
  ].includes(code);
}

function obstaclesOf({ id, kind, silentMs, legacy, replay }: Instance, to: Mode): Finding[] {
  const found: Finding[] = [];
  if (silentMs > silence) {
    found.push({
      code: 'instance-silent',
      reason: `instance ${id} has not been heard of for ${Math.round(silentMs / 1000)} s`,
      remedy: `restart or stop it; if it has certainly ended, add --assume-stopped ${id}`,
    });
  }
  if (kind === 'migrate' && silentMs <= silence) {
    found.push({
      code: 'migration-running',
      reason: `a migrate apply is under way (${id})`,
      remedy: 'wait until it has ended, or stop it; run again later, it resumes where it stopped',
    });
  }
  if (to !== 'native' && !legacy) {
    found.push({
      code: 'instance-without-legacy',
      reason: `instance ${id} does not know the legacy service`,
      remedy: 'restart it with LEGACY_BASE_URL',
    });
  }
  if (to === 'reverse' && !replay) {
    found.push({
      code: 'instance-cannot-replay',
      reason: `instance ${id} cannot store credentials for the replay`,
      remedy: 'restart it with REPLAY_SECRET',
    });
  }
  return found;
}

function disputedKeys({ unmappedKeys, refusedKeys }: ComparisonTotals, withRefused: boolean): Finding[] {
  const found: Finding[] = [];
  if (unmappedKeys > 0) {
    found.push({
      code: 'unmapped-keys',
      reason: `${counted(unmappedKeys, 'API key')} that the legacy service accepts ${unmappedKeys === 1 ? 'is' : 'are'} unknown here`,
      remedy: 'import them with migrate apply --entities api-keys; status --json lists their fingerprints',
    });
  }
  if (withRefused && refusedKeys > 0) {
    found.push({
      code: 'refused-keys',
      reason: `${counted(refusedKeys, 'API key')} that the legacy service refuses would be accepted here`,
      remedy: 'revoke them with key revoke; status --json lists their fingerprints',
    });
  }
  return found;
}

function beforeTakingAuthority({ state, comparisons }: Evidence, inDoubt: number): Finding[] {
  const found = disputedKeys(comparisons, true);
  const { verifiedAt, since, gap } = state;
  const lastGapAt = Math.max(gap?.at ?? 0, comparisons.lastGapAt);
  if (inDoubt > 0) {
    found.push({
      code: 'unsettled',
      reason: `${counted(inDoubt, 'forwarded change')} may not have reached Redis`,
      remedy:
        'wait for the next calls of these users, or, once three times LEGACY_TIMEOUT has passed, run migrate apply, then migrate verify of all organizations and entities',
    });
  }
  if (comparisons.failedAdoptions > 0) {
    found.push({
      code: 'failed-adoptions',
      reason: `${counted(comparisons.failedAdoptions, 'user')} ${comparisons.failedAdoptions === 1 ? 'has' : 'have'} a change that could not be brought over`,
      remedy:
        'wait for their next calls, which retry it (status --json says whose and why), or run migrate apply, then migrate verify of all organizations and entities',
    });
  }
  if (comparisons.differingUsers > 0) {
    found.push({
      code: 'users-differ',
      reason: `${counted(comparisons.differingUsers, 'user')} differed when last compared`,
      remedy:
        'wait until their next calls repair them, or run migrate apply, then migrate verify of all organizations and entities',
    });
  }
  if (verifiedAt === undefined || verifiedAt <= since) {
    found.push({
      code: 'not-verified',
      reason: `everything has not been verified since the mode is ${state.mode}`,
      remedy: 'run migrate apply, then migrate verify of all organizations and entities',
    });
  } else if (verifiedAt <= lastGapAt) {
    found.push({
      code: 'gap',
      reason:
        gap?.at === lastGapAt
          ? `what an instance was about is in doubt since the last verify: ${gap.reason}`
          : 'since the last verify some changes may not have reached Redis (status --json: gaps)',
      remedy: 'run migrate apply, then migrate verify of all organizations and entities',
    });
  }
  return found;
}

function beforeLeavingReverse({ state, replay }: Evidence, to: Mode): Finding[] {
  const found: Finding[] = [];
  const { entries, oldestAt, setAside, pausedBecause } = replay;
  const isLate = oldestAt !== undefined && state.now - oldestAt > smallBacklog.ageMs;
  if (entries > smallBacklog.entries || isLate) {
    found.push({
      // The legacy service must not get authority without them, whatever is forced.
      code: authorityOf(to) === 'legacy' ? 'backlog-would-be-lost' : 'backlog',
      reason: `${counted(entries, 'change')} still ${entries === 1 ? 'waits' : 'wait'} to be replayed to the legacy service`,
      remedy:
        pausedBecause === undefined
          ? 'wait until they are replayed: add --wait 60'
          : `the replay pauses, since ${pausedBecause}`,
    });
  }
  if (setAside > 0 && authorityOf(to) === 'legacy') {
    found.push({
      code: 'set-aside',
      reason: `${counted(setAside, 'change')} that the legacy service refused would be undone here`,
      remedy: 'see cutover aside list; then cutover aside retry or drop',
    });
  }
  return found;
}

function warningsFor(
  { state, comparisons, replay, legacyPictures }: Evidence,
  to: Mode,
  takesAuthority: boolean,
): Finding[] {
  const found: Finding[] = [];
  const warn = (code: string, count: number, reason: string, remedy: string): void => {
    if (count > 0) found.push({ code, reason: `${counted(count, 'user')} ${reason}`, remedy });
  };
  if (state.mode === 'reverse' && to === 'native') {
    if (replay.setAside > 0) {
      const reason = `${counted(replay.setAside, 'change')} that the legacy service refused will never reach it`;
      found.push({ code: 'set-aside', reason, remedy: 'see cutover aside list' });
    }
    warn(
      'unsettled',
      comparisons.unsettled,
      'made a change before reverse that the legacy service may have, and Redis does not',
      'they were told that the outcome is unknown, and can make it again (status --json says whose)',
    );
  }
  if (takesAuthority) {
    warn(
      'lost-names',
      comparisons.lostNames,
      'lost a username to another one, which the legacy service shows for both',
      'let names be compared as the legacy service does (org set --username-comparison), or change one of them there',
    );
  }
  if (legacyPictures !== undefined && authorityOf(to) === 'redis') {
    warn(
      'legacy-pictures',
      legacyPictures.count,
      `still ${legacyPictures.count === 1 ? 'has' : 'have'} a picture where the legacy service shows it`,
      'copy them by migrate apply --copy-pictures, in mirror or in native, while they can still be fetched',
    );
  }
  if (
    (takesAuthority || to === 'mirror') &&
    state.mode !== 'reverse' &&
    comparisons.compared < fewComparisons
  ) {
    found.push({
      code: 'few-comparisons',
      reason: `only ${counted(comparisons.compared, 'comparison')} ${comparisons.compared === 1 ? 'was' : 'were'} made in this mode`,
      remedy: 'wait for more traffic',
    });
  }
  return found;
}
