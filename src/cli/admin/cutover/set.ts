import { Argument } from 'commander';
import { setTimeout as sleep } from 'node:timers/promises';
import { modes, ruleOf, type Mode } from '../../../cutover/modes.ts';
import { createReplayQueue, type ReplayQueue } from '../../../cutover/replay/queue/queue.ts';
import { switchMode, type SwitchOutcome } from '../../../cutover/switch/coordinator.ts';
import { gatherEvidence } from '../../../cutover/verdict/evidence.ts';
import { blocksEvenForced, judge, type Finding, type Verdict } from '../../../cutover/verdict/readiness.ts';
import { isStoreUnavailable } from '../../../redis/connection/connect.ts';
import { organizationsBeingLoaded } from '../../../migration/runs/runs.ts';
import { formatNumber } from '../../../lib/numbers.ts';
import { adminCommand, parseId, storeFaultOf, wholeNumber } from '../../command-line.ts';
import type { AdminCommand, AdminContext } from '../context.ts';
import { done, interrupted, problem, wrongUsage, type CommandResult } from '../../tool.ts';
import { repeatable } from '../options.ts';
import { removeAssumed, without } from './assume-stopped.ts';
import { endsReplay, obstaclesOnHold } from './on-hold.ts';
import { findingLines, instanceLines, inWords } from './texts.ts';
import type { RedisClient } from '../../../redis/connection/client.ts';

interface SetOptions {
  dryRun?: boolean;
  force?: boolean;
  wait: number;
  hold: number;
  assumeStopped?: string[];
}

/** `admin cutover set`. */
export function addSet(cutover: AdminCommand): void {
  cutover
    .command('set')
    .description(
      'switch every instance to another mode: changes are on hold for about a second, reads are not, and no request fails. If an instance does not respond in time, all of them stay in the old mode',
    )
    .addArgument(new Argument('<mode>', 'the new mode').choices(modes))
    .option(
      '--dry-run',
      'only print whether the step is safe, the instances, and what would be done; exit 1 if it would be refused',
    )
    .option(
      '--force',
      'switch even if checks fail, or skip a mode; not past an instance that is silent or lacks a setting, a migrate apply under way, or changes that would be lost',
    )
    .option('--wait <seconds>', 'how long to wait until the checks pass', wholeNumber(0), 0)
    .option(
      '--hold <seconds>',
      'how long changes may be on hold while instances respond, from 1 to 300',
      wholeNumber(1, 300),
      3,
    )
    .option(
      '--assume-stopped <instance>',
      'remove an instance that does not respond and has certainly ended; repeatable. One that is only cut off from Redis may still write to the legacy service',
      repeatable(parseId),
    )
    .examples(
      'cutover set mirror --dry-run',
      'cutover set mirror',
      'cutover set shadow --force',
      'cutover set mirror --assume-stopped web-1-4242-5f0c1a',
    )
    .runs(set);
}

async function set(context: AdminContext, to: Mode, options: SetOptions): Promise<CommandResult> {
  if (to !== 'native' && context.config().legacyBaseUrl === undefined) {
    return wrongUsage(`the mode ${to} needs the legacy service: set LEGACY_BASE_URL`);
  }
  const { store, keyPrefix } = await context.open();
  const unknown = await removeAssumed(store, keyPrefix, options);
  if (unknown !== undefined) return problem(unknown);

  const queue = createReplayQueue(store, keyPrefix);
  const { verdict, from, epoch, isAlreadyInForce, hasLostSwitch, instances } = await judgeUntilReady(
    context,
    store,
    to,
    options,
  );
  if (isAlreadyInForce) {
    // A tool that was killed after its switch may have left something.
    if (to !== 'reverse' && options.dryRun !== true) await discardReplay(context, queue, epoch);
    return done({ switched: false, from, to }, `The mode is ${to} already.`);
  }
  const isForced = options.force === true || (ruleOf(from, to).kind === 'free' && !hasLostSwitch);
  const blocking = verdict.reasons.filter((finding) => !isForced || blocksEvenForced(finding));
  if (options.dryRun === true) {
    const despite = blocking.length === 0 ? ', but the switch would be made anyway' : '';
    const lines = [
      `Step: ${from} -> ${to}`,
      `Ready: ${verdict.ready ? 'yes' : `no${despite}`}`,
      ...findingLines(verdict),
      ...instanceLines(instances),
      'Would be done: hold new changes until every instance has finished those in progress, raise the epoch in every organization, move reads, admit changes again.',
    ];
    const output = { json: { from, ...verdict, instances }, text: lines.join('\n') };
    return blocking.length === 0
      ? done(output.json, output.text)
      : problem(`not ready for ${to}: see the reasons above`, output);
  }
  if (context.signal.aborted) return report({ kind: 'interrupted' }, from, verdict, options);
  if (blocking.length > 0) return notSwitched(from, verdict, blocking);

  warn(context, verdict);
  // What an earlier reverse may have left behind is out of date; but Redis may have lost the switch to that reverse.
  if (to === 'reverse' && to !== from && !hasLostSwitch) await discardReplay(context, queue, epoch);
  const step = { from, to, hasLostSwitch };
  const by = `cutover set ${to}${options.force === true ? ' --force' : ''}`;
  try {
    const outcome = await switchMode(store, keyPrefix, {
      from,
      to,
      holdMs: options.hold * 1000,
      by,
      signal: context.signal,
      onProgress: (line) => context.note(line),
      beingLoaded: async () => await organizationsBeingLoaded(store, keyPrefix),
      obstacles: async () => await obstaclesOnHold(store, keyPrefix, queue, step, options.force),
    });
    // Not before: a switch that is withdrawn leaves everything to replay.
    if (outcome.kind === 'switched' && endsReplay(step)) await discardReplay(context, queue, outcome.epoch);
    return report(outcome, from, verdict, options);
  } catch (error) {
    if (!(error instanceof Error) || !isStoreUnavailable(error)) throw error;
    const [fault, remedy] = storeFaultOf(error.message, ['Redis is unavailable', 'once Redis is back']);
    return problem(
      `${fault} during the switch, so the mode may be ${from} or ${to}: ${remedy}, see ${adminCommand} cutover show, then run this again`,
    );
  }
}

/** Says before the switch what speaks against it: there may be no way back. */
function warn(context: AdminContext, { reasons, warnings }: Verdict): void {
  for (const finding of [...reasons, ...warnings]) {
    // --force is what its remedy names, and it was given.
    const text = finding.code === 'not-the-next-mode' ? finding.reason : inWords(finding);
    context.note(`warning: ${text}`);
  }
}

/** Discards what waits to be replayed, so that no API key is left behind, and says what it was. */
async function discardReplay(context: AdminContext, queue: ReplayQueue, epoch: number): Promise<void> {
  const kinds = Object.entries(await queue.discard(epoch)).filter(([, count]) => count > 0);
  if (kinds.length > 0) {
    const what = kinds.map(([kind, count]) => `${formatNumber(count)} ${kind}`).join(', ');
    context.note(`warning: changes that had not reached the legacy service were discarded: ${what}`);
  }
}

async function judgeUntilReady(
  context: AdminContext,
  store: RedisClient,
  to: Mode,
  { wait, force, dryRun, assumeStopped = [] }: SetOptions,
) {
  const deadline = performance.now() + wait * 1000;
  for (;;) {
    const evidence = without(assumeStopped, await gatherEvidence(store, context.config().keyPrefix));
    const { mode: from, epoch, isStored, hasLostSwitch, underWay, instances } = evidence.state;
    const verdict = judge(evidence, to);
    const isAlreadyInForce = from === to && isStored && !hasLostSwitch && underWay === undefined;
    const isOver =
      isAlreadyInForce || verdict.ready || force === true || dryRun === true || performance.now() >= deadline;
    if (isOver || context.signal.aborted)
      return { verdict, from, epoch, isAlreadyInForce, hasLostSwitch, instances };
    await sleep(1000, undefined, { signal: context.signal }).catch(() => {});
  }
}

function notSwitched(from: Mode, verdict: Verdict, blocking: readonly Finding[]): CommandResult {
  const why = blocking.map(inWords).join('; ');
  const hint = blocking.some(blocksEvenForced) ? '' : ' (--force switches anyway)';
  const others = verdict.reasons.filter((finding) => !blocking.includes(finding));
  return problem(`not switched from ${from} to ${verdict.to}: ${why}${hint}`, {
    json: { switched: false, from, ...verdict },
    text: findingLines({ ...verdict, reasons: others }).join('\n'),
  });
}

function report(
  outcome: SwitchOutcome,
  from: Mode,
  { to, warnings }: Verdict,
  { hold }: SetOptions,
): CommandResult {
  switch (outcome.kind) {
    case 'switched':
      return done(
        { switched: true, from, to, number: outcome.epoch, heldMs: outcome.heldMs, warnings },
        `The mode is ${to}. Changes were on hold for ${(outcome.heldMs / 1000).toFixed(1)} s.`,
      );
    case 'busy':
      return problem(`a switch to ${outcome.to} is under way: wait until it has ended`);
    case 'changed':
      return problem(`the mode has changed to ${outcome.mode} meanwhile: see ${adminCommand} cutover show`);
    case 'interrupted':
      return interrupted(`interrupted: the mode is ${from} as before`);
    case 'withdrawn': {
      const { reasons, missing } = outcome;
      const who =
        missing.length === 0
          ? ''
          : ` (no response from ${missing.join(', ')} within ${hold} s: check why, or allow more time with --hold)`;
      return problem(`withdrawn, the mode is ${from} as before: ${reasons.join('; ')}${who}`, {
        json: { switched: false, from, to, reasons, missing, warnings },
      });
    }
  }
}
