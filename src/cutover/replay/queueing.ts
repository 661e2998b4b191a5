import { ProblemError } from '../../contract/problems.ts';
import type { ReplayAbility } from './api-key-cipher.ts';
import type { Queued } from '../../redis/changes.ts';
import { callerFields, type QueuedCaller } from './queue/changes.ts';
import type { ReplayQueue } from './queue/queue.ts';

/** Gives what the scripts queue a caller's change with (lua/lib/change.lua). */
export type Queueing = (caller: QueuedCaller, apiKey: string) => Queued;

/**
 * `most`: how many changes of an organization may wait. Throws a 503 `replay-unavailable` if this instance is unable.
 */
export function createQueueing(
  ability: ReplayAbility,
  most: number,
  queue: Pick<ReplayQueue, 'announce'>,
): Queueing {
  return (caller, apiKey) => {
    if (ability.kind === 'unable') {
      throw new ProblemError(
        'replay-unavailable',
        'This instance cannot record changes for the legacy service.',
      );
    }
    const fields = callerFields(caller, ability.cipher.seal(caller, apiKey));
    const announce = (): void => void queue.announce(caller.organizationId);
    return { fields: JSON.stringify({ ...fields, most }), announce };
  };
}
