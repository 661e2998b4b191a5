import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Mode } from '../../../src/cutover/modes.ts';
import { readCutover, type CutoverState } from '../../../src/cutover/switch/registry.ts';
import { createReleasers } from '../../../src/lib/releasers.ts';
import { denylistKey, organizationBase, profileKey, settingsKey } from '../../../src/redis/keys.ts';
import type { RedisClient } from '../../../src/redis/connection/client.ts';
import { startLegacy, type Legacy } from '../../../test/support/legacy/legacy.ts';
import { runTool } from '../../../test/support/tools/admin.ts';
import { createTestOrganization } from '../../../test/support/bridge.ts';
import { keyPrefix, openDeployment } from '../history/deployment.ts';
import type { Client } from './clients.ts';

export const organizationId = 'acme';
const users = Array.from({ length: 6 }, (_, index) => `u${index}`);

/** When a change took effect in the legacy service, ms since 1970. */
export interface LegacyChange {
  name: string;
  at: number;
}

/** Two bridges in front of a legacy service, on one Redis. */
export type Site = Awaited<ReturnType<typeof openSite>>;

export interface Stored {
  usernames: Record<string, string>;
  denied: string[];
}

export async function openSite() {
  const releasers = createReleasers();
  try {
    const legacy = await startLegacy({ recording: false });
    releasers.onClose('legacy service', legacy.close);
    const environment = {
      LEGACY_BASE_URL: legacy.url,
      LEGACY_TIMEOUT: '4',
      REPLAY_SECRET: randomBytes(32).toString('hex'),
    };
    const deployment = await openDeployment({ store: 'single', environment });
    releasers.onClose('deployment', deployment.close);
    const { bridges, redis, env, store } = deployment;
    if (redis === undefined) throw new Error('the deployment has no single Redis');

    const legacyChanges = recordChanges(legacy);
    const organization = await createTestOrganization(
      bridges[0].url,
      { keyPrefix, organizationHeader: 'x-platform-organization-id' },
      store,
      organizationId,
    );
    const newClient = async (role: 'player' | 'admin', user: string): Promise<Client> => {
      const { apiKey } = await organization.newKey(role === 'player' ? { role, userId: user } : { role });
      legacy.addKey(apiKey, { organization: organizationId, role, ...(role === 'player' && { user }) });
      return { user, apiKey };
    };
    const players = await Promise.all(users.map(async (user) => await newClient('player', user)));
    return {
      bridges,
      redis,
      store,
      legacy,
      /** What took effect in the legacy service. */
      legacyChanges,
      players,
      admin: await newClient('admin', 'banned'),
      /** The environment of the operator's tool. */
      env: { ...env, ...environment },
      state: async (): Promise<CutoverState> => await whenBack(() => readCutover(store, keyPrefix)),
      /** The usernames and the denied names that Redis, and the legacy service, have now. */
      stored: async (): Promise<Stored> => await readStored(store),
      storedByLegacy: (): Stored => {
        const { profiles, denied } = legacy.organization(organizationId);
        const usernames = [...profiles].map(([user, { username = '' }]) => [user, username] as const);
        return { usernames: Object.fromEntries(usernames), denied: [...denied].sort() };
      },
      close: releasers.close,
    };
  } catch (error) {
    await releasers.close();
    throw error;
  }
}

/** The connection may have to be made again after Redis was killed. */
async function whenBack<Result>(read: () => Promise<Result>): Promise<Result> {
  const deadline = performance.now() + 10_000;
  for (;;) {
    try {
      return await read();
    } catch (error) {
      if (performance.now() > deadline) throw error;
      await sleep(100);
    }
  }
}

/** Has the legacy service note when a change takes effect. */
function recordChanges(legacy: Legacy): LegacyChange[] {
  const changes: LegacyChange[] = [];
  const organization = legacy.organization(organizationId);
  const [put, ban] = [organization.put.bind(organization), organization.ban.bind(organization)];
  organization.put = (user, change) => {
    changes.push({ name: String(change.username), at: Date.now() });
    return put(user, change);
  };
  organization.ban = (replacements) => {
    for (const name of Object.keys(replacements)) changes.push({ name, at: Date.now() });
    return ban(replacements);
  };
  return changes;
}

const base = organizationBase(keyPrefix, organizationId);

async function denylistNow(store: RedisClient): Promise<string> {
  return denylistKey(base, (await store.hget(settingsKey(base), 'index')) ?? '0');
}

async function readStored(store: RedisClient): Promise<Stored> {
  const usernames: Record<string, string> = {};
  for (const user of users) {
    const username = await store.hget(profileKey(base, user), 'u');
    if (username !== null) usernames[user] = username;
  }
  return { usernames, denied: (await store.hkeys(await denylistNow(store))).sort() };
}

/** Empties the denylists of both sides. */
export async function clearDenylists({ legacy, store }: Site): Promise<void> {
  legacy.organization(organizationId).denied.clear();
  await store.del(await denylistNow(store));
}

/** Gives the legacy service the data of Redis, as an import of `migrate export` does. */
export async function importIntoLegacy({ legacy, stored }: Site): Promise<void> {
  const { usernames, denied } = await stored();
  const organization = legacy.organization(organizationId);
  for (const [user, username] of Object.entries(usernames)) {
    organization.profiles.set(user, { ...organization.profiles.get(user), username });
  }
  for (const name of denied) organization.denied.add(name);
}

/** Switches to a mode without any fault, once the remains of a fault allow it. */
export async function switchTo(site: Site, mode: Mode): Promise<void> {
  const deadline = performance.now() + 60_000;
  for (;;) {
    const { code, err } = await runTool(site.env, `cutover set ${mode} --force`);
    if (code === 0) return;
    if (performance.now() > deadline) throw new Error(`the mode cannot be set to ${mode}: ${err}`);
    await sleep(500);
  }
}
