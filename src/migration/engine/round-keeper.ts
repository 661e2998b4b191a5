import type { Tallies } from '../analysis/outcomes.ts';
import { entityNames, type Entity } from '../records/records.ts';
import type { RunLock } from '../runs/lock.ts';
import { forgetLoaded, runKey, saveProgress, saveRound, type RoundState } from '../runs/runs.ts';
import type { MigrationContext } from './context.ts';

/** Keeps a round's state in Redis up to date, for `status` and for resuming. */
export interface RoundKeeper {
  /** Saves the round before anything is written for it; only once. */
  begin: () => Promise<void>;
  /** How far new organizations are loaded once `flush` resolves; it is called if that is to be saved. */
  loaded: (
    loaded: { rows: number; version: string },
    entity: Entity,
    share: number,
    flush: () => Promise<void>,
  ) => void;
  /** The load can no longer be resumed: if this process ends before its round, everything is loaded again. */
  discardLoaded: () => Promise<void>;
  /** The share of the records to be written that is written. */
  written: (share: number) => void;
  /** Saves now. */
  now: () => Promise<void>;
  /** Saves the round as it is at its end. */
  finish: (finished: RoundState) => Promise<void>;
  /** Resolves when nothing is being saved any more. */
  drain: () => Promise<void>;
  /** Puts an earlier round's state back, or none, if the round was begun. What it had loaded is rolled back by then. */
  restore: (last: RoundState | undefined) => Promise<void>;
}

/** The time between two saves, in ms: the work that a kill makes the next start repeat. */
const saveInterval = 200;

export function createRoundKeeper(
  context: Pick<MigrationContext, 'store' | 'prefix'>,
  lock: RunLock,
  round: RoundState,
  tallies: Tallies,
): RoundKeeper {
  const { run } = lock;
  let beginning: Promise<void> | undefined;
  let last = Date.now();
  let running: Promise<void> = Promise.resolve();
  let failed: unknown;

  const save = async (): Promise<void> => {
    await lock.check();
    for (const [entity, state] of Object.entries(round.entities)) state.tally = tallies.of(entity as Entity);
    await saveProgress(context, run, round);
  };
  const isDue = (): boolean => {
    if (failed !== undefined) throw failed;
    return beginning !== undefined && Date.now() - last >= saveInterval;
  };
  /** Saves, if that is due, once `ready` resolves. */
  const soon = (ready?: () => Promise<void>): void => {
    if (!isDue()) return;
    last = Date.now();
    running = Promise.all([running, ready?.()])
      .then(save)
      .catch((error: unknown) => {
        failed = error;
      });
  };
  const setProgress = (entity: Entity, progress: number): void => {
    const tally = tallies.of(entity);
    const read = Object.values(tally).reduce((sum, count) => sum + count, 0);
    round.entities[entity] = { read, tally, progress };
  };
  return {
    begin: () => (beginning ??= lock.check().then(async () => await saveRound(context, run, round))),
    loaded: (loaded, entity, share, flush) => {
      setProgress(entity, share);
      // A source without a version is read again from its beginning.
      if (loaded.version === '') soon();
      else
        soon(async () => {
          await flush();
          round.loaded = loaded;
        });
    },
    discardLoaded: async () => {
      await running;
      if (round.loaded === undefined) return;
      round.loaded = undefined;
      await forgetLoaded(context, run);
    },
    written: (share) => {
      for (const entity of entityNames) if (round.entities[entity] !== undefined) setProgress(entity, share);
      soon();
    },
    now: async () => {
      await running;
      if (failed !== undefined) throw failed;
      if (beginning !== undefined) await save();
    },
    finish: async (finished) => {
      await running;
      await lock.check();
      await saveRound(context, run, finished);
    },
    drain: async () => await running,
    restore: async (state) => {
      if (beginning === undefined) return;
      await lock.check();
      if (state === undefined) await context.store.del(runKey(context.prefix, run));
      else await saveRound(context, run, { ...state, loaded: undefined });
    },
  };
}
