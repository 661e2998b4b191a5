import { createHash } from 'node:crypto';
import type { Mode } from '../../../src/cutover/modes.ts';
import { replayerKey } from '../../../src/redis/keys.ts';
import { readScript } from '../../../src/redis/connection/script-source.ts';
import { keyPrefix } from '../history/deployment.ts';

/** The steps of a switch, in order, as `cutover set` takes them by its commands to Redis. */
export const steps = [
  'before the switch',
  'begin: changes stop',
  'wait until changes have stopped',
  'raise the epoch',
  'check what is in doubt',
  'wait until the queue is empty',
  'wait until nobody replays',
  'move reads',
  'admit changes in the new mode',
  'after the switch',
  'withdraw',
] as const;

export type Step = (typeof steps)[number];

/**
 * Finds the step that each command of a tool belongs to, given the commands of a switch in the order in which they are
 * sent.
 */
export function createStepper(from: Mode): (words: readonly string[]) => Step {
  const names = scriptNames();
  let step: Step = 'before the switch';
  return ([command = '', script = '', , , ...rest]) => {
    const name = names.get(command.toLowerCase() === 'eval' ? sha1(script) : script) ?? command.toLowerCase();
    const isLease = name === 'get' && script === replayerKey(keyPrefix);
    step = nextStep(step, isLease ? 'leaseHolder' : name, rest, from);
    return step;
  };
}

function nextStep(step: Step, command: string, parameters: readonly string[], from: Mode): Step {
  switch (command) {
    case 'cutover/begin':
      return 'begin: changes stop';
    case 'cutover/advance': {
      // Token, phase, lease, and whether to go on to the next phase (advance.lua).
      const [, phase, , goOn] = parameters;
      if (goOn === '1') return phase === 'stop' ? 'move reads' : 'admit changes in the new mode';
      return step === 'begin: changes stop' ? 'wait until changes have stopped' : step;
    }
    case 'cutover/withdraw':
      return 'withdraw';
    case 'cutover/read':
    case 'cutover/remove':
      // While instances are waited for.
      return step;
    case 'cutover/raise_epoch':
      return step === 'wait until changes have stopped' ? 'raise the epoch' : step;
    case 'leaseHolder':
      return step === 'wait until the queue is empty' ? 'wait until nobody replays' : step;
    default:
      if (step === 'raise the epoch')
        return from === 'reverse' ? 'wait until the queue is empty' : 'check what is in doubt';
      return step === 'admit changes in the new mode' ? 'after the switch' : step;
  }
}

/** The scripts of a switch by the SHA-1 of their text. */
function scriptNames(): Map<string, string> {
  const names = ['begin', 'advance', 'withdraw', 'read', 'remove', 'raise_epoch'].map(
    (name) => `cutover/${name}`,
  );
  return new Map(names.map((name) => [sha1(readScript(name)().lua), name]));
}

function sha1(text: string): string {
  return createHash('sha1').update(text).digest('hex');
}
