import { createHash } from 'node:crypto';
import { defineCutoverScripts } from '../../../src/cutover/switch/registry.ts';
import type { Store } from '../../../src/redis/scripts.ts';

/** The steps of a switch, in order, as `cutover set` takes them by its commands to Redis. */
export const steps = [
  'before the switch',
  'begin: changes stop',
  'wait until changes have stopped',
  'raise the number',
  'check what is in doubt',
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
  return ([command = '', script = '', , , ...rest]) => {
    const name = names.get(command.toLowerCase() === 'eval' ? sha1(script) : script) ?? command.toLowerCase();
    step = nextStep(step, name.replace(/:$/, ''), rest);
    return step;
  };
}

function nextStep(step: Step, command: string, parameters: readonly string[]): Step {
  switch (command) {
    case 'cutoverBegin':
      return 'begin: changes stop';
    case 'cutoverAdvance': {
      // Token, phase, lease, and whether to go on to the next phase (advance.lua).
      const [, phase, , goOn] = parameters;
      if (goOn === '1') return phase === 'stop' ? 'move reads' : 'admit changes in the new mode';
      return step === 'begin: changes stop' ? 'wait until changes have stopped' : step;
    }
    case 'cutoverWithdraw':
      return 'withdraw';
    case 'cutoverRead':
    case 'cutoverRemove':
      // While instances are waited for.
      return step;
    case 'cutoverRaiseEpoch':
      return step === 'wait until changes have stopped' ? 'raise the number' : step;
    default:
      if (step === 'raise the number') return 'check what is in doubt';
      return step === 'admit changes in the new mode' ? 'after the switch' : step;
  }
}

/** Names of the scripts by the SHA-1 of their text. */
function scriptNames(store: Store): Map<string, string> {
  const { scriptsSet } = defineCutoverScripts(store) as unknown as {
    scriptsSet: Record<string, { lua: string }>;
  };
  return new Map(Object.entries(scriptsSet).map(([name, { lua }]) => [sha1(lua), name]));
}

function sha1(text: string): string {
  return createHash('sha1').update(text).digest('hex');
}
