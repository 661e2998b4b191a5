import { authorityOf } from '../../../cutover/modes.ts';
import { readCutover, type CutoverState } from '../../../cutover/switch/registry.ts';
import { gatherEvidence, type Evidence } from '../../../cutover/verdict/evidence.ts';
import { judge, nextMode } from '../../../cutover/verdict/readiness.ts';
import { formatInstant } from '../../../lib/iso8601.ts';
import type { AdminCommand, AdminContext } from '../context.ts';
import { done, problem, type CommandResult } from '../../tool.ts';
import { addAside } from './aside.ts';
import { addSet } from './set.ts';
import {
  comparisonLines,
  doubtLines,
  findingLines,
  gapLines,
  instanceLines,
  modeLines,
  pictureLines,
  replayLines,
} from './texts.ts';

/** `admin cutover`: takes over from a live legacy service, step by step (src/cutover/README.md). */
export function addCutover(program: AdminCommand): void {
  const group = program
    .command('cutover')
    .description('take over from a live legacy service, step by step: shadow, mirror, reverse, native')
    .examples('cutover status', 'cutover set mirror --dry-run', 'cutover set mirror');
  group
    .command('show')
    .description('show the mode, since when it has been in force, and which command set it')
    .examples('cutover show', 'cutover show --json')
    .runs(showMode);
  group
    .command('status')
    .description(
      'show the mode, the instances, the results of comparing, and whether the next step is safe, with reasons and remedies; exit 1 if it is not',
    )
    .examples('cutover status', 'cutover status --json')
    .runs(showStatus);
  addSet(group);
  addAside(group);
}

async function showMode(context: AdminContext): Promise<CommandResult> {
  const { store, keyPrefix } = await context.open();
  const state = await readCutover(store, keyPrefix);
  return done(modeJson(state), modeLines(state).join('\n'));
}

async function showStatus(context: AdminContext): Promise<CommandResult> {
  const { store, keyPrefix } = await context.open();
  const evidence = await gatherEvidence(store, keyPrefix);
  const { state, comparisons, organizations, replay, legacyPictures } = evidence;
  const next = state.isLost
    ? 'shadow'
    : (nextMode(state.mode) ?? (state.hasLostSwitch ? 'native' : undefined));
  const verdict = next && judge(evidence, next);
  const json = {
    ...modeJson(state),
    instances: state.instances,
    history: state.history.map(({ mode, since, by, epoch }) => ({
      mode,
      since: formatInstant(since),
      by,
      number: epoch,
    })),
    ...(state.gap && { gap: { at: formatInstant(state.gap.at), reason: state.gap.reason } }),
    ...(state.verifiedAt !== undefined && { verifiedAt: formatInstant(state.verifiedAt) }),
    comparisons,
    organizations,
    replay: replayJson(evidence),
    ...(legacyPictures && {
      legacyPictures: { count: legacyPictures.count, countedAt: formatInstant(legacyPictures.at) },
    }),
    next: verdict ?? null,
  };
  const text = [
    ...modeLines(state),
    ...instanceLines(state.instances),
    ...(authorityOf(state.mode) === 'legacy' ? comparisonLines(evidence) : []),
    ...doubtLines(evidence),
    ...gapLines(evidence),
    ...pictureLines(evidence),
    ...(state.mode === 'reverse' || replay.entries + replay.setAside > 0 ? replayLines(evidence) : []),
    ...(verdict
      ? [`Next: ${verdict.to}; ready: ${verdict.ready ? 'yes' : 'no'}`, ...findingLines(verdict)]
      : []),
  ].join('\n');
  if (verdict === undefined || verdict.ready) return done(json, text);
  return problem(`not ready for ${verdict.to}: see the reasons above`, { json, text });
}

function modeJson({ mode, isStored, isLost, hasLostSwitch, epoch, since, by, underWay }: CutoverState) {
  return {
    mode,
    isStored,
    isLost,
    hasLostSwitch,
    number: epoch,
    ...(since > 0 && { since: formatInstant(since), by }),
    ...(underWay && { switchingTo: underWay.to, phase: underWay.phase }),
  };
}

function replayJson({ state, replay }: Evidence) {
  const { entries, oldestAt, setAside, pausedBecause, organizations } = replay;
  return {
    entries,
    ...(oldestAt !== undefined && {
      oldest: formatInstant(oldestAt),
      lagMs: Math.max(0, state.now - oldestAt),
    }),
    setAside,
    ...(pausedBecause !== undefined && { pausedBecause }),
    organizations: organizations.map(({ oldestAt: _oldestAt, retried, ...counts }) => ({
      ...counts,
      ...(retried && { retried: { ...retried, since: formatInstant(retried.since) } }),
    })),
  };
}
