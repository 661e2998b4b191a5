import { setTimeout as sleep } from 'node:timers/promises';
import type { Mode } from '../../src/cutover/modes.ts';
import type { Ran } from '../../test/support/tools/admin.ts';
import type { Sides } from './sides.ts';

/** What a step works with. */
export interface Stage {
  /** Runs a command of the operator; it and the last line of its output go to the timeline. */
  run: (command: string) => Promise<Ran>;
  /** The folder of the legacy service's data, freshly written, and the moment of its snapshot (ISO 8601). */
  dump: () => Promise<{ folder: string; asOf: string }>;
  /** Starts the phase of this mode for the clients. */
  begin: (mode: Mode) => void;
  sides: Sides;
  mode: () => Mode;
  say: (line: string) => void;
  violation: (text: string) => void;
  /** How long clients call at least before a step, in ms. */
  dwell: number;
  /** Waits until each instance has been killed as often in this mode as it has to be. */
  killedOften: () => Promise<void>;
  /** How many instances have been killed. */
  kills: () => number;
  /** Waits until no change of an instance that was killed can take effect any more. */
  settled: () => Promise<void>;
}

export type Step = (stage: Stage) => Promise<void>;

/** Switches fail if an instance is killed at the wrong moment: an operator tries again. */
const mostAttempts = 30;

/** How long an export takes at least, in ms: what was on its way to Redis when it began has arrived. */
const exporting = 3000;

/** The whole cut-over, as an operator makes it, with a return from each mode that has one. */
export const steps: readonly Step[] = [
  callIn('shadow'),
  switchTo('mirror'),
  callIn('mirror'),
  switchTo('shadow'),
  callIn('shadow'),
  killOften,
  switchTo('mirror'),
  callIn('mirror'),
  takeOver,
  callIn('reverse'),
  switchTo('mirror'),
  callIn('mirror'),
  killOften,
  takeOver,
  callIn('reverse'),
  killOften,
  checkBothSides,
  switchTo('native'),
  callIn('native'),
  killOften,
  checkAcknowledged,
];

async function killOften(stage: Stage): Promise<void> {
  await stage.killedOften();
}

function callIn(mode: Mode): Step {
  return async (stage) => {
    if (stage.mode() !== mode) stage.violation(`the mode is ${stage.mode()} where it should be ${mode}`);
    await sleep(stage.dwell);
  };
}

function switchTo(mode: Mode): Step {
  const command = `admin cutover set ${mode} --wait 30`;
  return async (stage) => {
    for (let attempt = 1; attempt <= mostAttempts; attempt++) {
      const { code } = await stage.run(command);
      if (code === 0) return stage.begin(mode);
      await sleep(1000);
    }
    throw new Error(`${command} was refused ${mostAttempts} times`);
  };
}

/**
 * Migrates all of the legacy service's data, verifies it against a later snapshot, and lets Redis take over. If an
 * instance is killed in between, something is in doubt, and it starts over. The snapshot to verify against is taken
 * once nothing that the instance had forwarded can take effect any more.
 */
async function takeOver(stage: Stage): Promise<void> {
  const migrate = async (command: string): Promise<boolean> => {
    const { folder, asOf } = await stage.dump();
    await sleep(exporting);
    return (await stage.run(`migrate ${command} --source ${folder} --as-of ${asOf}`)).code === 0;
  };
  for (let attempt = 1; attempt <= mostAttempts; attempt++) {
    const kills = stage.kills();
    const isDisturbed = (): boolean => {
      if (stage.kills() === kills) return false;
      stage.say('a bridge was killed meanwhile, so that changes may be missing: once more');
      return true;
    };
    if (!(await migrate('apply --prune --prune-at-most 1000'))) continue;
    await stage.settled();
    if (isDisturbed() || !(await migrate('verify')) || isDisturbed()) continue;
    const { code } = await stage.run('admin cutover set reverse --wait 5');
    if (code === 0) return stage.begin('reverse');
  }
  throw new Error(`the bridge could not take over in ${mostAttempts} attempts`);
}

async function checkBothSides(stage: Stage): Promise<void> {
  await checkAcknowledged(stage);
  const found = await stage.sides.differing();
  stage.say(found.length === 0 ? 'both sides are equal' : `both sides differ: ${found.length} times`);
  for (const each of found) stage.violation(`both sides differ: ${each}`);
}

async function checkAcknowledged(stage: Stage): Promise<void> {
  const found = await stage.sides.missing(stage.mode());
  stage.say(
    found.length === 0
      ? 'every acknowledged change is there'
      : `acknowledged changes are missing: ${found.length}`,
  );
  for (const each of found) stage.violation(`acknowledged and gone: ${each}`);
}
