import { defaultKeyPrefix } from '../../config.ts';
import { firstFew } from '../../lib/collections/first-few.ts';
import { counted } from '../../lib/numbers.ts';
import { countPendingRenames } from '../../migration/engine/write/renames.ts';
import type { MigrationContext } from '../../migration/context/context.ts';
import { MigrationError, UsageError } from '../../migration/errors.ts';
import { countRehearsal, forgetRun, removeRehearsal } from '../../migration/engine/forget.ts';
import { readRun, requireRun } from '../../migration/runs/runs.ts';
import type { CommandResult } from '../tool.ts';
import { withSession, type CliEnvironment } from './session.ts';

export interface ForgetChoice {
  run?: string | undefined;
  rehearsal?: true | undefined;
  yes?: true | undefined;
}

/** `migrate forget`: removes what a run keeps in Redis, or everything that a rehearsal wrote. */
export async function forget(environment: CliEnvironment, choice: ForgetChoice): Promise<CommandResult> {
  const { run, rehearsal } = choice;
  if ((run === undefined) === (rehearsal === undefined))
    throw new UsageError(
      'choose what to forget: --run NAME, or --rehearsal for all keys that begin with KEY_PREFIX',
    );
  return await withSession(environment, {}, async (context) =>
    run === undefined
      ? await forgetRehearsal(environment, context, choice)
      : await forgetOne(environment, context, run, choice),
  );
}

async function forgetOne(
  environment: CliEnvironment,
  context: MigrationContext,
  run: string,
  choice: ForgetChoice,
): Promise<CommandResult> {
  await requireRun(context, run);
  const state = await readRun(context, run);
  const renames = await countPendingRenames(context, run);
  if (renames > 0) {
    throw new MigrationError(
      `run ${run} has ${counted(renames, 'rename')} to complete: run its apply again first, or names are lost`,
    );
  }
  // One that was killed before it wrote anything has no state.
  const what = state === undefined ? `run ${run}` : `run ${run} from ${state.source}`;
  await confirm(environment, choice, `Forget ${what}? Its records stay; the next apply reads everything.`);
  const rolledBack = await forgetRun(context, run);
  const named = firstFew(rolledBack);
  const load =
    named === ''
      ? ''
      : ` Its unfinished load of ${counted(rolledBack.length, 'organization')} was rolled back: ${named}.`;
  return { exitCode: 0, json: { command: 'forget', run, rolledBack }, text: `Forgot ${what}.${load}` };
}

async function forgetRehearsal(
  environment: CliEnvironment,
  context: MigrationContext,
  choice: ForgetChoice,
): Promise<CommandResult> {
  const { prefix } = context;
  // Its data may have been migrated before it has run for the first time.
  if (defaultKeyPrefix.startsWith(prefix)) {
    throw new UsageError(
      `${defaultKeyPrefix} is the prefix of the service itself: set KEY_PREFIX to that of the rehearsal`,
    );
  }
  const found = await countRehearsal(context);
  if (found > 0)
    await confirm(environment, choice, `Delete ${counted(found, 'key')} under the prefix ${prefix}?`);
  const keys = found === 0 ? 0 : await removeRehearsal(context);
  return {
    exitCode: 0,
    json: { command: 'forget', prefix, keys },
    text: `Deleted ${counted(keys, 'key')} under the prefix ${prefix}.`,
  };
}

/** Throws unless the operator confirms at the terminal or with --yes. */
async function confirm({ ask }: CliEnvironment, { yes }: ForgetChoice, question: string): Promise<void> {
  if (yes === true) return;
  if (ask === undefined) throw new UsageError('there is no terminal to ask on: add --yes');
  if (!/^y(?:es)?$/i.test((await ask(`${question} [y/N] `)).trim()))
    throw new MigrationError('nothing was forgotten');
}
