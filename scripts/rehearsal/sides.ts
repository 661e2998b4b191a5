import { setTimeout as sleep } from 'node:timers/promises';
import { compare, toShown, type Shown } from '../../src/cutover/compare/compare.ts';
import { authorityOf, type Authority, type Mode } from '../../src/cutover/modes.ts';
import { toGetView } from '../../src/contract/views.ts';
import { readOwnProfile } from '../../src/redis/profiles.ts';
import { denylistKey, hashApiKey, organizationBase, settingsKey } from '../../src/redis/keys.ts';
import { seenIn } from './changes.ts';
import type { Clients } from './clients.ts';
import { organizationId, type LegacyService } from './legacy-service.ts';
import type { Client } from './requests.ts';
import type { RedisClient } from '../../src/redis/connection/client.ts';

export type Sides = ReturnType<typeof createSides>;

export interface SidesOptions {
  store: RedisClient;
  keyPrefix: string;
  legacy: LegacyService;
  clients: Clients;
  publicUrl: string;
}

/** How long a change may be on its way, in ms: after an unknown outcome the bridge waits twice LEGACY_TIMEOUT. */
const mostOnTheWayMs = 40_000;

/** Players that are compared at once. */
const atOnce = 20;

/** Reads both services directly, not through a bridge. */
export function createSides({ store, keyPrefix, legacy, clients, publicUrl }: SidesOptions) {
  const base = organizationBase(keyPrefix, organizationId);
  const fileUrl = (file: string): string => `${publicUrl}/media/${file}`;

  async function readHere({ apiKey, userId }: Client) {
    const here = await readOwnProfile(store, base, hashApiKey(apiKey));
    if (here.kind === 'unknown') throw new Error(`the API key of ${userId} is unknown to Redis`);
    return here;
  }

  async function deniedHere(): Promise<Set<string>> {
    const index = (await store.hget(settingsKey(base), 'index')) ?? '0';
    return new Set(await store.hkeys(denylistKey(base, index)));
  }

  async function missingOf(client: Client, authority: Authority): Promise<string[]> {
    const here = await readHere(client);
    const shown =
      authority === 'legacy'
        ? legacy.organization.read(client.userId)
        : here.kind === 'profile'
          ? toGetView(here.profile, fileUrl)
          : undefined;
    const seen = seenIn(shown);
    return client.expected.wrong(seen).map((field) => `${client.userId}: ${field} is ${seen[field]}`);
  }

  async function differingOf(client: Client): Promise<string[]> {
    const deadline = performance.now() + mostOnTheWayMs;
    for (;;) {
      const here = await readHere(client);
      const there = toShown(legacy.organization.read(client.userId)) as Shown;
      const fields = await compare({ store, base, fileUrl }, there, here);
      if (fields.length === 0) return [];
      if (performance.now() > deadline) return [`${client.userId}: ${fields.join(', ')}`];
      // While the legacy service is the authority, the player's next call repairs what a killed instance has left.
      await clients.read(client);
      await sleep(200);
    }
  }

  async function ofAll(look: (client: Client) => Promise<string[]>): Promise<string[]> {
    const found: string[] = [];
    for (let at = 0; at < clients.all.length; at += atOnce) {
      const some = clients.all.slice(at, at + atOnce);
      const looks = some.map((client) => clients.alone(client, () => look(client)));
      found.push(...(await Promise.all(looks)).flat());
    }
    return found;
  }

  async function withoutAdmin(look: () => Promise<string[]>): Promise<string[]> {
    await clients.quietAdmin();
    try {
      return await look();
    } finally {
      clients.resumeAdmin();
    }
  }

  return {
    /** Acknowledged changes that the authority of this mode does not have; the player's clients are paused meanwhile. */
    missing: async (mode: Mode): Promise<string[]> => {
      const authority = authorityOf(mode);
      return await withoutAdmin(async () => {
        const denied = authority === 'legacy' ? legacy.organization.denied : await deniedHere();
        const names = clients.denylist.wrong(denied).map((name) => `denylist: ${name}`);
        return [...names, ...(await ofAll((client) => missingOf(client, authority)))];
      });
    },
    /**
     * The differences between the two services, player by player, each paused meanwhile. A difference must disappear
     * within some seconds: a change may still be on its way to the other side.
     */
    differing: async (): Promise<string[]> =>
      await withoutAdmin(async () => {
        const found = await ofAll(differingOf);
        const deadline = performance.now() + mostOnTheWayMs;
        for (;;) {
          const [there, here] = [legacy.organization.denied, await deniedHere()];
          const names = [...there, ...here].filter((name) => !there.has(name) || !here.has(name));
          if (names.length === 0 || performance.now() > deadline)
            return [...found, ...names.map((name) => `denylist: ${name}`)];
          await sleep(200);
        }
      }),
  };
}
