import { readCutover, cutoverRemove } from '../../../cutover/switch/registry.ts';
import type { Evidence } from '../../../cutover/verdict/evidence.ts';
import { isSilent } from '../../../cutover/verdict/readiness.ts';
import type { RedisClient } from '../../../redis/connection/client.ts';
import { cutoverKey } from '../../../redis/keys.ts';
import { adminCommand } from '../../command-line.ts';

/** Removes the instances that the operator knows to have ended, or none; returns why one cannot be removed. */
export async function removeAssumed(
  store: RedisClient,
  prefix: string,
  { assumeStopped = [], dryRun }: { assumeStopped?: readonly string[]; dryRun?: boolean },
): Promise<string | undefined> {
  if (assumeStopped.length === 0) return undefined;
  const { instances } = await readCutover(store, prefix);
  for (const id of assumeStopped) {
    const instance = instances.find((one) => one.id === id);
    if (instance === undefined) return `there is no instance ${id}: see ${adminCommand} cutover status`;
    if (!isSilent(instance)) return `instance ${id} responded a moment ago: stop it first`;
  }
  if (dryRun === true) return undefined;
  for (const id of assumeStopped) await cutoverRemove(store, cutoverKey(prefix), id, assumption(id));
  return undefined;
}

/** The evidence once these instances are removed, which --dry-run does not do. */
export function without(assumed: readonly string[], evidence: Evidence): Evidence {
  const { state } = evidence;
  const gone = state.instances.find(({ id }) => assumed.includes(id));
  if (gone === undefined) return evidence;
  const instances = state.instances.filter(({ id }) => !assumed.includes(id));
  return { ...evidence, state: { ...state, instances, gap: { at: state.now, reason: assumption(gone.id) } } };
}

function assumption(id: string): string {
  return `${id} was assumed to have stopped`;
}
