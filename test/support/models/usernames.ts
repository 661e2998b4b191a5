import fc from 'fast-check';
import { normalizedName, type UsernameComparison } from '../../../src/domain/usernames.ts';

/** One command of a client, as the model and the real thing both understand it. */
export type Command =
  | { kind: 'put'; user: string; name: string }
  | { kind: 'ban'; replacements: [string, string][] }
  | { kind: 'remove'; names: string[] }
  | { kind: 'overwrite'; names: string[] };

/** Any command of these users about these names. */
export function anyCommand(users: readonly string[], names: readonly string[]): fc.Arbitrary<Command> {
  const name = fc.constantFrom(...names);
  const some = fc.array(name, { maxLength: 3 });
  const replacements = fc.array(fc.tuple(name, name), { minLength: 1, maxLength: 3 });
  return fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({ kind: fc.constant('put'), user: fc.constantFrom(...users), name }),
    },
    { weight: 3, arbitrary: fc.record({ kind: fc.constant('ban'), replacements }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('remove'), names: some }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('overwrite'), names: some }) },
  );
}

/** The simplest model of the contract: the names of users, and denied names. */
export interface Model {
  comparison: UsernameComparison;
  /** User → name as given. */
  names: ReadonlyMap<string, string>;
  /** Comparison forms. */
  denied: ReadonlySet<string>;
}

/** The answer to a command, and the state that it leaves. */
export function run(model: Model, command: Command): { outcome: unknown; after: Model } {
  const form = (name: string): string => normalizedName(name, model.comparison);
  const names = new Map(model.names);
  const denied = new Set(model.denied);
  const holder = (name: string): string | undefined =>
    [...names].find(([, held]) => form(held) === form(name))?.[0];
  const answer = (outcome: unknown) => ({ outcome, after: { ...model, names, denied } });

  switch (command.kind) {
    case 'put': {
      const { user, name } = command;
      if (denied.has(form(name)) && holder(name) !== user) return answer('denied');
      if (![user, undefined].includes(holder(name))) return answer('taken');
      names.set(user, name);
      return answer('put');
    }
    case 'ban': {
      const failures: [string, string][] = [];
      const all = new Map(command.replacements);
      const banned = new Set([...all.keys()].map(form));
      for (const [name, replacement] of all) {
        if (denied.has(form(name))) continue;
        const user = holder(name);
        if (user !== undefined) {
          if (banned.has(form(replacement)) || denied.has(form(replacement))) {
            failures.push([name, 'replacement-denied']);
            continue;
          }
          if (holder(replacement) !== undefined) {
            failures.push([name, 'replacement-in-use']);
            continue;
          }
          names.set(user, replacement);
        }
        denied.add(form(name));
      }
      // Another spelling of the same name may have been added.
      const notAdded = failures.filter(([name]) => !denied.has(form(name)));
      const byResult = notAdded.map(([name, reason]) => {
        const replacement = form(all.get(name) ?? '');
        const isDenied = denied.has(replacement) || replacement === form(name);
        return [name, isDenied ? reason : 'replacement-in-use'];
      });
      return answer(byResult);
    }
    case 'remove': {
      const outcome: { deleted: string[]; inUse: string[] } = { deleted: [], inUse: [] };
      const seen = new Set<string>();
      for (const name of command.names) {
        if (seen.has(form(name))) continue;
        seen.add(form(name));
        if (holder(name) !== undefined) outcome.inUse.push(name);
        else if (denied.delete(form(name))) outcome.deleted.push(name);
      }
      return answer(outcome);
    }
    case 'overwrite': {
      const used = command.names.filter(
        (name, position) =>
          holder(name) !== undefined &&
          command.names.findIndex((other) => form(other) === form(name)) === position,
      );
      if (used.length > 0) return answer(new Set(used));
      denied.clear();
      for (const name of command.names) denied.add(form(name));
      return answer('overwritten');
    }
  }
}
