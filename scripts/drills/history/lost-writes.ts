import type { Operation } from '../checker/linearizability.ts';
import type { Input } from '../checker/organization.ts';

/**
 * How many writes of an avatar were acknowledged and are gone: a later read shows an avatar that was replaced by them,
 * or none. Each avatar is written once, so a read shows which write it sees.
 */
export function countLostWrites(history: readonly Operation<Input>[]): number {
  const lost = new Set<Operation<Input>>();
  const writes = history.filter(({ input }) => input.kind === 'put' && typeof input.avatar === 'string');
  for (const { input, outcome, sentAt } of history) {
    if (input.kind !== 'read' || outcome === undefined) continue;
    const own = writes.filter((write) => write.input.kind === 'put' && write.input.user === input.user);
    const seen = own.find(
      (write) => write.input.kind === 'put' && outcome.includes(JSON.stringify(write.input.avatar)),
    );
    const replaced = own.filter(
      (write) =>
        write.outcome?.startsWith('profile') === true &&
        write.answeredAt < sentAt &&
        (seen === undefined || seen.answeredAt < write.sentAt),
    );
    for (const write of replaced) lost.add(write);
  }
  return lost.size;
}
