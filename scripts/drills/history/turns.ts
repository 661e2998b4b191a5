import fc from 'fast-check';
import { normalizedName } from '../../../src/domain/usernames.ts';

/** One request of a client. */
export type Command =
  | { kind: 'read'; user: string }
  | { kind: 'put'; user: string; username?: string | undefined; avatar?: string | undefined }
  | { kind: 'ban'; replacements: readonly (readonly [string, string])[] }
  | { kind: 'remove'; usernames: readonly string[] }
  | { kind: 'overwrite'; usernames: readonly string[] };

/** What a client does next: waits for this many ms, sends the command, and goes away after `timeoutMs`, if given. */
export interface Turn {
  pause: number;
  timeoutMs?: number | undefined;
  command: Command;
}

/** Few users and few names, so that clients conflict all the time. */
export const users: readonly string[] = ['u0', 'u1', 'u2', 'u3'];
export const usernames: readonly string[] = ['a', 'A', 'b', 'c', 'd', 'é', 'e\u0301', '__proto__'];

const anyUser = fc.constantFrom(...users);
const anyUsername = fc.constantFrom(...usernames);
/** No two are the same, however names are compared: the contract answers for each name once. */
const list = fc.uniqueArray(anyUsername, {
  minLength: 1,
  maxLength: 3,
  selector: (name) => normalizedName(name, 'case-insensitive'),
});

/** Turns of one client, the same ones for the same seed. */
export function turnsOf(
  client: number,
  { seed, impatient }: { seed: number; impatient: boolean },
): readonly Turn[] {
  let avatars = 0;
  const avatar = fc.constantFrom(undefined, 'new').map((kind) => kind && `avatar-${client}-${avatars++}`);
  const command: fc.Arbitrary<Command> = fc.oneof(
    { weight: 6, arbitrary: fc.record({ kind: fc.constant('read'), user: anyUser }) },
    {
      weight: 6,
      arbitrary: fc.record({
        kind: fc.constant('put'),
        user: anyUser,
        username: fc.option(anyUsername, { nil: undefined }),
        avatar,
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({
        kind: fc.constant('ban'),
        replacements: list.chain((names) =>
          fc.tuple(...names.map((name) => anyUsername.map((replacement) => [name, replacement] as const))),
        ),
      }),
    },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('remove'), usernames: list }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('overwrite'), usernames: list }) },
  );
  const timeoutMs = impatient
    ? fc.oneof({ weight: 15, arbitrary: fc.constant(undefined) }, fc.integer({ min: 1, max: 6 }))
    : fc.constant(undefined);
  return fc.sample(fc.record({ pause: fc.nat(40), timeoutMs, command }), {
    seed: seed + client,
    numRuns: 400,
  });
}

/** How many unrelated names surround each name of a long list: so many that each is in another script call. */
const padding = 130;

/** A command whose lists are long, with the same names among others that nobody uses. */
export function lengthen(command: Command): Command {
  if (!('usernames' in command || 'replacements' in command)) return command;
  const fillers = (name: string): string[] =>
    Array.from({ length: padding }, (_, index) => `filler ${name} ${index}`);
  if ('usernames' in command) {
    return { ...command, usernames: command.usernames.flatMap((name) => [...fillers(name), name]) };
  }
  return {
    ...command,
    replacements: command.replacements.flatMap(([name, replacement]) => [
      ...fillers(name).map((filler) => [filler, `${filler} replaced`] as const),
      [name, replacement] as const,
    ]),
  };
}

export const fillerName = 'filler of no interest';
export const isFiller = (name: string): boolean => name.startsWith('filler ');
