import { setTimeout as sleep } from 'node:timers/promises';
import type { Random } from '../drills/random.ts';
import { randomChange, seenIn, type ShownProfile } from './changes.ts';
import { createExpectedDenylist, createExpectedProfile, type ExpectedProfile } from './expected.ts';
import type { Instances } from './instances.ts';
import { adminKey, organizationId, type LegacyService, type Player } from './legacy-service.ts';
import type { Phase } from './phases.ts';

/** A player as the clients know them. */
export interface Client extends Player {
  expected: ExpectedProfile;
}

export interface RequestOptions {
  legacy: LegacyService;
  instances: Instances;
  random: Random;
  /** Called with every failed request, and every response that contradicts what was acknowledged. */
  onViolation: (violation: string) => void;
}

type Outcome =
  { kind: 'answered'; status: number; body: unknown } | { kind: 'refused' } | { kind: 'unknown' };

/** How long an interrupted change may still take effect, in ms. */
const settling = 1000;

/** Requests of players and of an administrator, whose responses are checked against what was acknowledged before. */
export function createRequests(options: RequestOptions, currentPhase: () => Phase) {
  const { legacy, instances, random, onViolation } = options;
  const all = legacy.players.map((player): Client => ({
    ...player,
    expected: createExpectedProfile(seenIn(legacy.organization.read(player.userId))),
  }));
  const denylist = createExpectedDenylist();
  /** When the reads in progress were sent, oldest first. */
  const readsSince = new Set<{ at: number }>();
  let names = 0;

  /** Sends one request, and counts its outcome. */
  async function send(
    method: string,
    path: string,
    apiKey: string,
    body?: string | FormData,
  ): Promise<Outcome> {
    const phase = currentPhase();
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

  return {
    /** The players. */
    all,
    denylist,
    read,
    put,
    ban,
    undeny,
    overwrite,
    /** How long the oldest read in progress has taken so far, in ms; 0 if there is none. */
    oldestReadMs: (): number => {
      const [oldest] = readsSince;
      return oldest === undefined ? 0 : performance.now() - oldest.at;
    },
  };
}

function causeOf(error: unknown): string {
  const { cause } = error as { cause?: unknown };
  return String(cause ?? error);
}
