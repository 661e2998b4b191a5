import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { counted } from '../../lib/numbers.ts';
import { repeat } from '../../lib/repeat.ts';
import { yieldingChunks } from '../../lib/time-slices.ts';
import {
  infoField,
  replicationIdsOf,
  replicationOf,
  type RedisClient,
} from '../../redis/connection/client.ts';
import { cutoverKey, organizationBase, organizationsKey } from '../../redis/keys.ts';
import { authorityOf, type Mode } from '../modes.ts';
import {
  cutoverAdvance,
  cutoverBegin,
  cutoverRaiseEpoch,
  cutoverWithdraw,
  readCutover,
  removeEnded,
} from './registry.ts';

export interface SwitchRequest {
  from: Mode;
  to: Mode;
  /** How long the instances have to acknowledge each phase, in ms. */
  holdMs: number;
  /** The command, for the record. */
  by: string;
  signal: AbortSignal;
  onProgress: (line: string) => void;
  /** Organizations that migrations are loading and that are not yet on the list of all organizations. */
  beingLoaded: () => Promise<string[]>;
  /** What prevents the switch once no instance makes changes any more; it goes on if the list is empty. */
  obstacles: () => Promise<string[]>;
}

export type SwitchOutcome =
  | { kind: 'switched'; epoch: number; heldMs: number }
  | { kind: 'busy'; to: string }
  /** The mode is not the one that the switch was to start from. */
  | { kind: 'changed'; mode: string }
  /** The old mode goes on. `missing`: the instances that did not acknowledge in time, and have not said why. */
  | { kind: 'withdrawn'; reasons: string[]; missing: string[] }
  | { kind: 'interrupted' };

/** How long a switch lasts without being renewed, in ms: a tool that dies delays changes for no longer than this. */
const switchLeaseMs = 3000;
const pollInterval = 25;
const organizationsAtOnce = 200;

class Withdrawal extends Error {
  readonly outcome: SwitchOutcome;

  constructor(outcome: SwitchOutcome) {
    super(outcome.kind);
    this.outcome = outcome;
  }
}

const cannotRecord =
  'cannot record in Redis which changes may be missing there: if Redis is full, raise its maxmemory';

const withdrawn = (reasons: string[], missing: string[] = []): Withdrawal =>
  new Withdrawal({ kind: 'withdrawn', reasons, missing });

/**
 * Switches all instances to another mode, or leaves all in the old one. No instance makes changes while the authority
 * moves: they stop admitting changes and finish those under way; the epoch is raised in every organization, so that
 * nothing from before can land later; reads move; only then are changes admitted again (lua/lib/cutover.lua).
 */
export async function switchMode(
  store: RedisClient,
  prefix: string,
  request: SwitchRequest,
): Promise<SwitchOutcome> {
  const { from, to, holdMs, by, signal, onProgress, beingLoaded, obstacles } = request;
  const key = cutoverKey(prefix);
  const token = randomUUID();
  const infos = await replicationOf(store);
  const hasReplicas = infos.some((info) => Number(infoField(info, 'connected_slaves') ?? 0) > 0);

  await auditSwitches(store, prefix);
  await removeEnded(store, prefix);
  const begun = await cutoverBegin(store, key, token, from, to, switchLeaseMs);
  if (begun[0] === 'busy') return { kind: 'busy', to: begun[1] };
  if (begun[0] === 'changed') return { kind: 'changed', mode: begun[1] };
  const epoch = begun[1];
  const startedAt = performance.now();
  try {
    await requireReplicated();
    onProgress('changes are on hold; waiting for those under way');
    await untilAcknowledged('stop', 0);
    const organizations = await raiseEpochs();
    onProgress(`epoch ${epoch} is in force in ${counted(organizations, 'organization')}`);
    // Only now: before, an instance that was wrongly assumed to have ended could still have made a change.
    const reasons = await whileRenewed(obstacles);
    if (reasons.length > 0) throw withdrawn(reasons);
    await untilAcknowledged('stop', 1);
    await requireReplicated();
    onProgress(`reads move to ${to}`);
    await untilAcknowledged('reads', 1);
  } catch (error) {
    // Perhaps only the reply was lost, and the switch has been made.
    const state = await withdraw();
    if (state !== 'done') {
      if (error instanceof Withdrawal) return error.outcome;
      throw error;
    }
  }
  const heldMs = Math.round(performance.now() - startedAt);
  if (authorityOf(from) === 'legacy' && authorityOf(to) === 'redis')
    await store.hset(key, 'switched-on', await replicationIdsOf(store));
  if (!(await isReplicated())) onProgress('warning: no replica has confirmed the switch yet');
  await auditSwitches(store, prefix, await beingLoaded());
  return { kind: 'switched', epoch, heldMs };

  /** Waits until every instance has acknowledged a phase, and with `goOn` takes the switch to the next one. */
  async function untilAcknowledged(phase: 'stop' | 'reads', goOn: 0 | 1): Promise<void> {
    const deadline = performance.now() + holdMs;
    for (;;) {
      if (signal.aborted) throw new Withdrawal({ kind: 'interrupted' });
      const reply = await cutoverAdvance(store, key, token, phase, switchLeaseMs, goOn, by);
      if (reply[0] === 'ready') return;
      if (reply[0] === 'lost')
        throw withdrawn(['this tool was held up for too long: run it again, with a longer --hold if needed']);
      if (performance.now() >= deadline) {
        const { instances } = await readCutover(store, prefix);
        const holding = instances.filter((one) => one.hasUnsavedGaps).map(({ id }) => id);
        throw withdrawn(
          [
            `not all instances ${phase === 'stop' ? 'stopped changes' : 'moved reads'} in time`,
            ...holding.map((id) => `${id} ${cannotRecord}`),
          ],
          reply[1].filter((id) => !holding.includes(id)),
        );
      }
      await removeEnded(store, prefix, reply[1]);
      await sleep(pollInterval);
    }
  }

  /** Raises the epoch everywhere; returns in how many organizations it is in force. */
  async function raiseEpochs(): Promise<number> {
    let count = 0;
    for await (const raised of raiseInParts(store, prefix, await beingLoaded(), epoch)) {
      count += raised.filter((inForce) => inForce > 0).length;
      await renew();
    }
    return count;
  }

  async function renew(): Promise<void> {
    await cutoverAdvance(store, key, token, 'stop', switchLeaseMs, 0, by);
  }

  /** Renews the lease during work in the phase `stop`, for as long as changes may be on hold. */
  async function whileRenewed<Result>(work: () => Promise<Result>): Promise<Result> {
    const until = performance.now() + holdMs;
    const stopRenewing = repeat(async () => {
      if (performance.now() < until) await renew().catch(() => {});
    }, switchLeaseMs / 3);
    try {
      return await work();
    } finally {
      await stopRenewing();
    }
  }

  /** Withdraws the switch and waits until that is complete; `done` if the switch had been made. */
  async function withdraw(): Promise<'done' | 'withdrawn'> {
    for (;;) {
      const state = await cutoverWithdraw(store, key, token);
      if (state !== 'waiting') return state;
      await sleep(pollInterval);
    }
  }

  async function isReplicated(): Promise<boolean> {
    if (!hasReplicas) return true;
    // Sent together, so that both reach the server that has the key.
    const replies = await store.pipeline().exists(key).wait(1, 1000).exec();
    return Number(replies?.[1]?.[1] ?? 0) >= 1;
  }

  async function requireReplicated(): Promise<void> {
    if (await isReplicated()) return;
    throw withdrawn(['no replica of Redis confirmed the switch within a second: a failover could lose it']);
  }
}

/**
 * Writes the audit entries of switches that were made, and raises the epoch in organizations created meanwhile. A tool
 * that was killed leaves this to the next one, and to housekeeping.
 */
export async function auditSwitches(
  store: RedisClient,
  prefix: string,
  beingLoaded: readonly string[] = [],
): Promise<void> {
  const key = cutoverKey(prefix);
  for (const [field, value] of Object.entries(await store.hgetall(key))) {
    const [, epoch] = /^unaudited:(\d+)$/.exec(field) ?? [];
    if (epoch === undefined) continue;
    const [from = '', to = ''] = value.split(' ');
    for await (const _ of raiseInParts(store, prefix, beingLoaded, Number(epoch), from, to));
    await store.hdel(key, field);
  }
}

/** Raises the epoch in all organizations; gives the epochs in force. */
async function* raiseInParts(
  store: RedisClient,
  prefix: string,
  beingLoaded: readonly string[],
  epoch: number,
  from = '',
  to = '',
): AsyncGenerator<number[], void> {
  const ids = new Set([...(await store.smembers(organizationsKey(prefix))), ...beingLoaded]);
  for await (const some of yieldingChunks(ids, organizationsAtOnce)) {
    const bases = some.map((id) => organizationBase(prefix, id));
    yield await Promise.all(bases.map((base) => cutoverRaiseEpoch(store, base, epoch, from, to)));
  }
}
