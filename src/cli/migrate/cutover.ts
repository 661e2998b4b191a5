import type { Mode } from '../../cutover/modes.ts';
import { joinCutover } from '../../cutover/switch/instance.ts';
import { FinalError, MigrationError } from '../../migration/errors.ts';
import type { RedisClient } from '../../redis/connection/client.ts';
import { cutoverKey } from '../../redis/keys.ts';
import { isOutdated } from '../../redis/changes.ts';

/** Redis is the authority, and its changes are replayed to the source: there is nothing left to bring over. */
export class ReverseModeError extends FinalError {
  constructor() {
    super(
      'the mode of the cut-over is reverse: Redis is the authority now, and its changes are replayed to the legacy service, so applying the source could undo them. To apply again, go back first: profile-bridge admin cutover set mirror',
    );
  }
}

/**
 * Registers this process as a migration while it writes, so that no switch of the mode is made meanwhile. The work gets
 * the epoch under which it writes: Redis refuses its writes if a switch is made nevertheless. Rejects with a
 * `ReverseModeError` in the mode reverse. Without a cut-over, where no mode was ever stored, nothing is registered.
 */
export async function whileRegistered<Result>(
  context: { store: RedisClient; prefix: string; signal: AbortSignal },
  work: (epoch: number, signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const { store, prefix, signal } = context;
  try {
    const hasMode = (await store.hexists(cutoverKey(prefix), 'mode')) === 1;
    return await (hasMode ? whileAdmitted(context, work) : work(0, signal));
  } catch (cause) {
    if (!isOutdated(cause)) throw cause;
    if ((await store.hget(cutoverKey(prefix), 'mode')) === 'reverse') throw new ReverseModeError();
    throw new MigrationError(
      'the mode of the cut-over was switched while this was under way, and nothing more was written: run the same command again, and it resumes',
      { cause },
    );
  }
}

const whileAdmitted: typeof whileRegistered = async ({ store, prefix, signal }, work) => {
  // An operator can switch nevertheless, by --assume-stopped.
  const overtaken = new AbortController();
  const stopInReverse = (mode: Mode): void => {
    if (mode === 'reverse') overtaken.abort(new ReverseModeError());
  };
  const cutover = await joinCutover(store, {
    keyPrefix: prefix,
    kind: 'migrate',
    legacy: true,
    replay: true,
    onMode: stopInReverse,
  });
  try {
    const { mode, epoch, release } = await Promise.resolve(cutover.admitChange()).catch((cause) => {
      throw new MigrationError(
        cutover.hasLostSwitch()
          ? 'Redis has lost the last switch of the mode: choose the mode again with profile-bridge admin cutover set, then run the same command again'
          : 'a switch of the mode is under way: once it has ended (profile-bridge admin cutover show), run the same command again',
        { cause },
      );
    });
    try {
      stopInReverse(mode);
      overtaken.signal.throwIfAborted();
      const result = await work(epoch, AbortSignal.any([signal, overtaken.signal]));
      overtaken.signal.throwIfAborted();
      return result;
    } finally {
      release();
    }
  } finally {
    await cutover.close();
  }
};
