import { setTimeout as sleep } from 'node:timers/promises';
import type { Authority } from '../../../src/cutover/modes.ts';

/** One request as its client saw it; times in ms since 1970. */
export interface Call {
  kind: 'change' | 'ban' | 'read';
  user: string;
  /** The username that was set or banned, or that the read showed. */
  name: string | undefined;
  /** Which bridge was called. */
  bridge: number;
  sentAt: number;
  endedAt: number;
  /** `broken`: the connection; `late`: there was no response within half a minute. */
  status: number | 'broken' | 'late';
  /** Who made the response. */
  by: Authority | undefined;
  /** The response's body unless it is a success. */
  detail?: string;
}

export interface Client {
  user: string;
  apiKey: string;
}

export type Traffic = ReturnType<typeof startTraffic>;

const requestTimeoutMs = 30_000;
/** Between two requests of a client, in ms. */
const pause = 20;

/** A new name. */
export function createNames(): (user: string) => string {
  let names = 0;
  return (user) => `${user}-${++names}`;
}

/**
 * Lets each client change its username through one bridge and read it through the other, again and again, and the
 * administrator ban names; the clients begin at different bridges.
 */
export function startTraffic(options: {
  bridges: readonly string[];
  organizationId: string;
  players: readonly Client[];
  admin: Client;
  newName: (user: string) => string;
}) {
  const { bridges, organizationId, players, admin, newName } = options;
  const over = new AbortController();
  const calls: Call[] = [];

  async function call(
    kind: Call['kind'],
    { user, apiKey }: Client,
    bridge: number,
    request: { method: string; path: string; json?: object },
    name?: string,
  ): Promise<void> {
    const sentAt = Date.now();
    const seen: Pick<Call, 'status' | 'by' | 'name' | 'detail'> = { status: 'broken', by: undefined, name };
    try {
      const response = await fetch(`${bridges[bridge]}${request.path}`, {
        method: request.method,
        headers: {
          'x-api-key': apiKey,
          'x-platform-organization-id': organizationId,
          'content-type': 'application/json',
        },
        ...(request.json !== undefined && { body: JSON.stringify(request.json) }),
        signal: AbortSignal.timeout(requestTimeoutMs),
      });
      const text = await response.text();
      seen.status = response.status;
      if (!response.ok) seen.detail = text.slice(0, 300);
      // The stand-in service signs its responses.
      else seen.by = response.headers.get('x-powered-by') === 'legacy' ? 'legacy' : 'redis';
      if (kind === 'read' && response.ok) seen.name = (JSON.parse(text) as { username?: string }).username;
    } catch (error) {
      if ((error as Error).name === 'TimeoutError') seen.status = 'late';
      seen.detail = String((error as Error).cause ?? error);
    }
    calls.push({ kind, user, bridge, sentAt, endedAt: Date.now(), ...seen });
  }

  const profile = '/api/profile/';
  const play = async (player: Client, first: number): Promise<void> => {
    for (let turn = first; !over.signal.aborted; turn++) {
      const [one, other] = [turn % bridges.length, (turn + 1) % bridges.length];
      const username = newName(player.user);
      await call('change', player, one, { method: 'PUT', path: profile, json: { username } }, username);
      await call('read', player, other, { method: 'GET', path: profile });
      await sleep(pause);
    }
  };
  const administrate = async (): Promise<void> => {
    for (let turn = 0; !over.signal.aborted; turn++) {
      const name = newName(admin.user);
      const ban = { method: 'POST', path: `${profile}username/deny/`, json: { [name]: 'Replaced' } };
      await call('ban', admin, turn % bridges.length, ban, name);
      await sleep(10 * pause);
    }
  };
  const running = [...players.map(play), administrate()];
  return {
    /** Calls that have ended, oldest first. */
    calls,
    stop: async (): Promise<void> => {
      over.abort();
      await Promise.all(running);
    },
  };
}
