import { setTimeout as sleep } from 'node:timers/promises';
import type { Random } from '../drills/random.ts';
import { randomChange, seenIn, type ShownProfile } from './changes.ts';
import { createExpectedDenylist, createExpectedProfile, type ExpectedProfile } from './expected.ts';
import type { Instances } from './instances.ts';
import { adminKey, organizationId, type LegacyService, type Player } from './legacy-service.ts';

/** What clients saw while one mode was in force. */
export interface Phase {
  name: string;
  seconds: number;
  reads: number;
  /** Changes that were acknowledged, and those refused for a reason in the contract. */
  changes: number;
  refused: number;
  /** On a connection to an instance that was killed meanwhile. */
  cutOff: number;
  /** How often each instance was killed. */
  kills: number[];
  /** Times of responses, in ms. */
  readTimes: number[];
  changeTimes: number[];
}

/** A player as the clients know them. */
export interface Client extends Player {
  expected: ExpectedProfile;
}

export type Clients = ReturnType<typeof startClients>;

export interface ClientsOptions {
  legacy: LegacyService;
  instances: Instances;
  random: Random;
  /** Requests per second. */
  rate: number;
  /** Called with every failed request, and every response that contradicts what was acknowledged. */
  onViolation: (violation: string) => void;
}

type Outcome =
  { kind: 'answered'; status: number; body: unknown } | { kind: 'refused' } | { kind: 'unknown' };

/** How long an interrupted change may still take effect, in ms. */
const settling = 1000;
const tick = 10;
/**
 * A read that takes longer than this, in ms, shows that the machine cannot keep up with the rate, since no read waits
 * for a switch: no request is sent until it has ended.
 */
const slowReadMs = 500;

/**
 * Clients that call at a fixed rate, whether or not earlier requests were answered: six of ten requests read, most
 * others change the player's own profile, a few are an administrator's. A player has at most one request in progress.
 */
export function startClients(options: ClientsOptions) {
  const { legacy, instances, random, rate, onViolation } = options;
  const all = legacy.players.map((player): Client => ({
    ...player,
    expected: createExpectedProfile(seenIn(legacy.organization.read(player.userId))),
  }));
  const denylist = createExpectedDenylist();
  const phases: Phase[] = [];
  let beganAt = performance.now();
  const underWay = new Set<Promise<unknown>>();
  /** When the reads in progress were sent, oldest first. */
  const readsSince = new Set<{ at: number }>();
  const busy = new Map<Client, Promise<unknown>>();
  let admin: Promise<void> | undefined;
  let isAdminQuiet = false;
  let names = 0;

  const current = (): Phase => {
    const phase = phases.at(-1);
    if (phase === undefined) throw new Error('no phase has begun');
    return phase;
  };
  const begin = (name: string): void => {
    const now = performance.now();
    const last = phases.at(-1);
    if (last !== undefined) last.seconds = (now - beganAt) / 1000;
    beganAt = now;
    phases.push({
      name,
      seconds: 0,
      reads: 0,
      changes: 0,
      refused: 0,
      cutOff: 0,
      kills: instances.all.map(() => 0),
      readTimes: [],
      changeTimes: [],
    });
  };

  /** Sends one request, and counts its outcome. */
  async function send(
    method: string,
    path: string,
    apiKey: string,
    body?: string | FormData,
  ): Promise<Outcome> {
    const phase = current();
    const instance = instances.pick(random);
    const { kills } = instance;
    const sentAt = performance.now();
    const isRead = method === 'GET';
    const mark = { at: sentAt };
    if (isRead) readsSince.add(mark);
    try {
      const response = await fetch(instance.server.url + path, {
        method,
        ...(body !== undefined && { body }),
        headers: {
          'x-api-key': apiKey,
          'x-platform-organization-id': organizationId,
          ...(typeof body === 'string' && { 'content-type': 'application/json' }),
        },
      });
      const text = await response.text();
      (isRead ? phase.readTimes : phase.changeTimes).push(performance.now() - sentAt);
      const { status } = response;
      if (status === 200 || status === 204) {
        if (isRead) phase.reads += 1;
        else phase.changes += 1;
        return { kind: 'answered', status, body: text === '' ? undefined : JSON.parse(text) };
      }
      // A name that is taken or denied; the legacy service refuses a denied one by 403.
      if (!isRead && [403, 409, 422].includes(status)) {
        phase.refused += 1;
        return { kind: 'refused' };
      }
      onViolation(`${method} ${path} through ${instance.name} got ${status}: ${text.slice(0, 300)}`);
    } catch (error) {
      if (instance.kills > kills) phase.cutOff += 1;
      else onViolation(`${method} ${path} through ${instance.name} failed: ${causeOf(error)}`);
    } finally {
      readsSince.delete(mark);
    }
    if (!isRead) await sleep(settling);
    return { kind: 'unknown' };
  }

  async function read({ apiKey, userId, expected }: Client): Promise<void> {
    const outcome = await send('GET', '/api/profile/', apiKey);
    if (outcome.kind !== 'answered') return;
    const seen = seenIn(outcome.body as ShownProfile);
    const wrong = expected.wrong(seen);
    if (wrong.length > 0)
      onViolation(
        `${userId} reads something else than was acknowledged (${wrong.join(', ')}): ${JSON.stringify(seen)}`,
      );
  }

  async function put({ apiKey, expected }: Client): Promise<void> {
    const other = random.pick(all).expected.username() ?? 'player';
    const { body, change } = randomChange(random, `name-${++names}`, other);
    const outcome = await send('PUT', '/api/profile/', apiKey, body);
    if (outcome.kind === 'answered') expected.acknowledged(change);
    if (outcome.kind === 'unknown') expected.doubtful(change);
  }

  /** Denies a player's name, so that the player is renamed. */
  async function ban({ expected }: Client): Promise<void> {
    const username = expected.username();
    if (username === undefined || username === '') return;
    const replacement = `renamed-${++names}`;
    const body = JSON.stringify({ [username]: replacement });
    const outcome = await send('POST', '/api/profile/username/deny/', adminKey, body);
    // With 200 the only name of the request was not added.
    if (outcome.kind === 'refused' || (outcome.kind === 'answered' && outcome.status === 200)) return;
    const note = outcome.kind === 'answered' ? 'acknowledged' : 'doubtful';
    expected[note]({ username: replacement });
    denylist[note](username, true);
  }

  async function undeny(): Promise<void> {
    const denied = denylist.denied();
    if (denied.length === 0) return;
    const username = random.pick(denied);
    const outcome = await send('DELETE', '/api/profile/username/deny/', adminKey, JSON.stringify([username]));
    if (outcome.kind === 'unknown') return denylist.doubtful(username, false);
    if (outcome.kind === 'refused') return;
    const { usernamesDeleted } = outcome.body as { usernamesDeleted: string[] };
    for (const name of usernamesDeleted) denylist.acknowledged(name, false);
  }

  async function overwrite(): Promise<void> {
    const denied = denylist.denied();
    const kept = new Set([...denied.filter(() => random.between(1, 4) > 1), `denied-${++names}`]);
    const body = JSON.stringify([...kept]);
    const outcome = await send('PUT', '/api/profile/username/denylist/', adminKey, body);
    if (outcome.kind === 'refused') return;
    const note = outcome.kind === 'answered' ? denylist.acknowledged : denylist.doubtful;
    for (const name of new Set([...denylist.known(), ...kept])) note(name, kept.has(name));
  }

  function idle(): Client | undefined {
    for (let attempt = 0; attempt < 20; attempt++) {
      const client = random.pick(all);
      if (!busy.has(client)) return client;
    }
    return undefined;
  }

  function occupy<Result>(client: Client, run: () => Promise<Result>): Promise<Result> {
    const running = run().finally(() => busy.delete(client));
    busy.set(client, running);
    return running;
  }

  /** One request of somebody who has none in progress. */
  function call(): Promise<unknown> | undefined {
    const client = idle();
    if (client === undefined) return undefined;
    const what = random.between(1, 100);
    if (what <= 60) return occupy(client, () => read(client));
    if (what <= 98 || isAdminQuiet || admin !== undefined) return occupy(client, () => put(client));
    const act = random.between(1, 10);
    const acting = act <= 6 ? occupy(client, () => ban(client)) : act <= 9 ? undeny() : overwrite();
    admin = acting.finally(() => {
      admin = undefined;
    });
    return admin;
  }

  const startedAt = performance.now();
  let sent = 0;
  const ticking = setInterval(() => {
    const now = performance.now();
    const due = ((now - startedAt) / 1000) * rate;
    for (; sent < due; sent++) {
      const [oldest] = readsSince;
      if (oldest !== undefined && now - oldest.at > slowReadMs) continue;
      const calling = call();
      if (calling === undefined) continue;
      underWay.add(calling);
      void calling.finally(() => underWay.delete(calling));
    }
  }, tick);

  return {
    all,
    denylist,
    phases,
    /** Begins a new phase; the one before ends. */
    begin,
    current,
    /** Runs while the player's own client sends nothing. */
    alone: async <Result>(client: Client, run: () => Promise<Result>): Promise<Result> => {
      while (busy.has(client)) await busy.get(client);
      return await occupy(client, run);
    },
    /** Reads the profile as the player. */
    read,
    /** Waits for requests in progress; from then on the administrator sends nothing. */
    quietAdmin: async (): Promise<void> => {
      isAdminQuiet = true;
      await admin;
    },
    resumeAdmin: (): void => {
      isAdminQuiet = false;
    },
    /** Ends the calls; resolves once the last response has arrived. */
    stop: async (): Promise<void> => {
      clearInterval(ticking);
      while (underWay.size > 0) await Promise.all(underWay);
      const last = phases.at(-1);
      if (last !== undefined) last.seconds = (performance.now() - beganAt) / 1000;
    },
  };
}

function causeOf(error: unknown): string {
  const { cause } = error as { cause?: unknown };
  return String(cause ?? error);
}
