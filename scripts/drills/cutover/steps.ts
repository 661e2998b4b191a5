import { createHash } from 'node:crypto';
import { defineCutoverScripts } from '../../../src/cutover/switch/registry.ts';
import type { Store } from '../../../src/redis/scripts.ts';

/** The steps of a switch, in order, as `cutover set` takes them by its commands to Redis. */
export const steps = [
  'before the switch',
  'begin: changes stop',
  'wait until changes have stopped',
  'raise the number',
  'check once more',
  'move reads',
  'admit changes in the new mode',
  'after the switch',
  'withdraw',
] as const;

export type Step = (typeof steps)[number];

/** Tells the step that each command of a tool belongs to, given the commands in the order in which they are sent. */
export function createStepper(store: Store): (words: readonly string[]) => Step {
  const names = scriptNames(store);
  let step: Step = 'before the switch';
  return ([command = '', sha = '', , , ...rest]) => {
    const name = command.toLowerCase() === 'evalsha' ? names.get(sha) : undefined;
    if (name === 'cutoverBegin') step = 'begin: changes stop';
    else if (name === 'cutoverWithdraw') step = 'withdraw';
    else if (step === 'admit changes in the new mode') step = 'after the switch';
    else if (name === 'cutoverAdvance') step = advanceStep(step, rest);
    else if (name?.startsWith('cutoverRaiseEpoch') === true && step === 'wait until changes have stopped')
      step = 'raise the number';
    else if (step === 'raise the number' && command.toLowerCase() !== 'evalsha') step = 'check once more';
    return step;
  };
}

/** ARGV of advance.lua: token, phase, lease, whether to go on. */
function advanceStep(step: Step, [, phase, , goOn]: readonly string[]): Step {
  if (step === 'raise the number' && goOn === '0') return step;
  if (goOn === '0') return 'wait until changes have stopped';
  return phase === 'stop' ? 'move reads' : 'admit changes in the new mode';
}

/** Names of the scripts by the SHA-1 of their text. */
function scriptNames(store: Store): Map<string, string> {
  const { scriptsSet } = defineCutoverScripts(store) as unknown as {
    scriptsSet: Record<string, { lua: string }>;
  };
  return new Map(
    Object.entries(scriptsSet).map(([name, { lua }]) => [createHash('sha1').update(lua).digest('hex'), name]),
  );
}
