import type { Entity } from '../records/records.ts';
import { totalOf } from '../../lib/numbers.ts';
import type { LockedContext } from '../runs/lock.ts';
import type { LoadBasis, RoundState } from '../runs/runs.ts';

/** The time between two saves, in ms: the work that a kill makes the next start repeat. */
const saveInterval = 200;

export type RoundKeeper = ReturnType<typeof createRoundKeeper>;

/** Keeps a round's state in Redis up to date, for `status` and for resuming; without a basis, no load is resumed. */
export function createRoundKeeper(
  { lock, tallies }: LockedContext,
  round: RoundState,
  basis: LoadBasis | undefined,
) {
  const shares = new Map<Entity, number>();
  let isBegun = false;
  let savedAt = performance.now();
  let running: Promise<void> = Promise.resolve();
  let failed: unknown;

  const count = (): RoundState['entities'] => {
    const entities: RoundState['entities'] = {};
    for (const [entity, progress] of shares) {
      const tally = { ...tallies.of(entity) };
      const read = totalOf(Object.values(tally));
      entities[entity] = { read, tally, progress };
    }
    return entities;
  };
  const save = async (entities = count()): Promise<void> => {
    round.entities = entities;
    await lock.save(round);
  };
  /** Saves what is counted now, if that is due, once `ready` resolves. */
  const saveIfDue = (ready?: () => Promise<void>): void => {
    if (failed !== undefined) throw failed;
    if (!isBegun || performance.now() - savedAt < saveInterval) return;
    savedAt = performance.now();
    const counted = count();
    running = Promise.all([running, ready?.()])
      .then(async () => await save(counted))
      .catch((error: unknown) => {
        failed = error;
      });
  };
  return {
    /** Saves the round, before anything is written for it. Rejects once another process has the run. */
    begin: async (): Promise<void> => {
      isBegun = true;
      await save();
    },
    /**
     * So many rows of the source were accepted, up to this share of an entity. Those of new organizations are loaded
     * once `flush` resolves; it is called if that is to be saved.
     */
    accepted: (rows: number, entity: Entity, share: number, flush: () => Promise<void>): void => {
      shares.set(entity, share);
      saveIfDue(async () => {
        await flush();
        if (basis !== undefined) round.loaded = { rows, ...basis };
      });
    },
    /** The load can no longer be resumed: if this process ends before its round, everything is loaded again. */
    discardLoaded: async (): Promise<void> => {
      await running;
      if (round.loaded === undefined) return;
      round.loaded = undefined;
      await save();
    },
    /** The share of the records to be written that is written. */
    written: (share: number): void => {
      for (const entity of shares.keys()) shares.set(entity, share);
      saveIfDue();
    },
    /** Saves the round now, if it was begun. */
    saveNow: async (): Promise<void> => {
      await running;
      if (failed !== undefined) throw failed;
      if (isBegun) await save();
    },
    /** Resolves when nothing is being saved any more. */
    drain: async (): Promise<void> => await running,
  };
}
