import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { normalizedName, type UsernameComparison } from '../../src/domain/usernames.ts';
import { closeRedis } from '../../src/redis/connection/connect.ts';
import { banUsernames, overwriteDenylist, removeDenied } from '../../src/redis/denylist.ts';
import { organizationBase } from '../../src/redis/keys.ts';
import { putProfile } from '../../src/redis/profiles.ts';
import { readWriteSnapshot } from '../../src/redis/changes.ts';
import { openTestStore } from '../support/store.ts';
import { freshPrefix } from '../support/redis.ts';
import { anyCommand, run, type Command, type Model } from '../support/models/usernames.ts';
import type { RedisClient } from '../../src/redis/connection/client.ts';

let stores: RedisClient[];
let store: RedisClient;
const prefix = freshPrefix();
beforeAll(async () => {
  // Clients of one connection would be served in the order in which they ask.
  stores = await Promise.all([0, 1, 2, 3].map(() => openTestStore()));
  [store] = stores as [RedisClient];
});
afterAll(async () => {
  await Promise.all(stores.map(closeRedis));
});

const users = ['u0', 'u1', 'u2', 'u3'];
const pool = ['a', 'A', 'b', 'c', 'é', 'e\u0301', '__proto__', 'Ｂ'];
const command = anyCommand(users, pool);

let organizations = 0;

/** An empty organization, and how to run a command in it and look at what it holds. */
async function newOrganization(comparison: UsernameComparison) {
  const base = organizationBase(prefix, `o${organizations++}`);
  await store.hset(`${base}settings`, 'comparison', comparison);
  const empty: Model = { comparison, names: new Map(), denied: new Set() };

  const runReal = async (asked: Command, client = 0): Promise<unknown> => {
    const own = stores[client % stores.length] as RedisClient;
    const user = asked.kind === 'put' ? asked.user : undefined;
    const snapshot = await readWriteSnapshot(own, base, user);
    const context = { store: own, base, keyId: 'k', snapshot };
    switch (asked.kind) {
      case 'put':
        return (await putProfile(own, base, asked.user, { username: asked.name }, snapshot)).kind;
      case 'ban': {
        const outcome = await banUsernames(context, new Map(asked.replacements));
        return outcome.kind === 'busy'
          ? outcome.kind
          : outcome.failures.map(({ username, reason }) => [username, reason]);
      }
      case 'remove': {
        const outcome = await removeDenied(context, asked.names);
        return outcome.kind === 'busy' ? outcome.kind : { deleted: outcome.deleted, inUse: outcome.inUse };
      }
      case 'overwrite': {
        const outcome = await overwriteDenylist(context, asked.names);
        return outcome.kind === 'in-use' ? new Set(outcome.usernames) : outcome.kind;
      }
    }
  };

  /** What Redis holds, as a model; and that the index says the same as the profiles. */
  const look = async (): Promise<Model> => {
    const names = new Map<string, string>();
    for (const user of users) {
      const held = await store.hget(`${base}p:${user}`, 'u');
      if (held !== null) names.set(user, held);
    }
    // So few names are in one bucket.
    const index = new Map(Object.entries(await store.hgetall(`${base}n0:0`)));
    const expected = new Map([...names].map(([user, held]) => [normalizedName(held, comparison), user]));
    expect(index).toEqual(expected);
    return { comparison, names, denied: new Set(await store.hkeys(`${base}d0`)) };
  };
  return { empty, runReal, look };
}

/** Whether some order of the commands explains all outcomes and the state that they left. */
function isExplained(
  before: Model,
  commands: readonly Command[],
  outcomes: readonly unknown[],
  after: Model,
): boolean {
  if (commands.length === 0) {
    return isDeepStrictEqual(before.names, after.names) && isDeepStrictEqual(before.denied, after.denied);
  }
  return commands.some((first, position) => {
    const step = run(before, first);
    return (
      isDeepStrictEqual(step.outcome, outcomes[position]) &&
      isExplained(step.after, commands.toSpliced(position, 1), outcomes.toSpliced(position, 1), after)
    );
  });
}

/**
 * Commands that are whole: a ban is so for each of its names only, since it waits for an overwrite to decide about a
 * replacement (ban.lua).
 */
function whole(commands: readonly Command[]): Command[] {
  const isOverwritten = commands.some(({ kind }) => kind === 'overwrite');
  return commands.map((asked) =>
    isOverwritten && asked.kind === 'ban'
      ? { ...asked, replacements: asked.replacements.slice(0, 1) }
      : asked,
  );
}

describe.each<UsernameComparison>(['exact', 'case-insensitive'])('names compared %s', (comparison) => {
  test('commands that are run one after the other do what the model does', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(command, { maxLength: 25 }), async (commands) => {
        const { empty, runReal, look } = await newOrganization(comparison);
        let model = empty;
        for (const asked of commands) {
          const { outcome, after } = run(model, asked);
          expect(await runReal(asked)).toEqual(outcome);
          model = after;
        }
        expect(await look()).toEqual(model);
      }),
      { numRuns: 60 },
    );
  });

  test('commands that are run at once have the outcomes of some order, and leave its state', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(command, { minLength: 2, maxLength: 5 }), { maxLength: 5 }),
        async (waves) => {
          const { empty, runReal, look } = await newOrganization(comparison);
          let before = empty;
          for (const commands of waves.map(whole)) {
            const outcomes = await Promise.all(commands.map((asked, client) => runReal(asked, client)));
            const after = await look();
            expect({
              commands,
              outcomes,
              explained: isExplained(before, commands, outcomes, after),
            }).toMatchObject({ explained: true });
            before = after;
          }
        },
      ),
      { numRuns: 60 },
    );
  });
});
