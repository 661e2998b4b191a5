import type { TestBridge, TestOrganization } from '../support/bridge.ts';
import type { Answer, Client } from '../support/requests/client.ts';
import { until } from '../support/until.ts';
import { startStopwatch } from '../support/stopwatch.ts';

/** One player of an organization, who changes and reads the same profile over and over. */
export interface Caller {
  organization: TestOrganization;
  player: Client;
  /** Answers by status, since the last `reset`. */
  statuses: Map<number, number>;
  /** Answers no client may get: a status other than 200 and 503, or a name that is not the one last set. */
  wrong: string[];
  /** The longest wait for an answer since the last `reset`, in ms. */
  slowest: number;
  /** The names that the profile may have: the last one acknowledged, and those whose fate a 503 left open. */
  possible: Set<string>;
}

export interface Traffic {
  callers: Caller[];
  /** Resolves once every caller has had another whole turn, begun after now. */
  turn: () => Promise<void>;
  /** Begins no call until `resume`; resolves once those under way are answered. */
  pause: () => Promise<void>;
  resume: () => void;
  /** Forgets the statuses counted so far. */
  reset: () => void;
  stop: () => Promise<void>;
}

/** Lets one player of each of so many new organizations call without a pause until `stop`. */
export async function startTraffic(bridge: TestBridge, organizations: number): Promise<Traffic> {
  const callers = await Promise.all(
    Array.from({ length: organizations }, async (_, index): Promise<Caller> => {
      const organization = await bridge.newOrganization({}, `city-${index}`);
      const player = await organization.player('u1');
      const caller = {
        organization,
        player,
        statuses: new Map(),
        wrong: [],
        slowest: 0,
        possible: new Set<string>(),
      };
      await setName(caller, 'name-0');
      return caller;
    }),
  );
  const order = { stopped: false, paused: false };
  const turns = callers.map(() => 0);
  const idle = new Set<number>();
  const loops = callers.map(async (caller, index) => {
    for (let n = 1; !order.stopped; n++) {
      idle.add(index);
      await until(() => !order.paused || order.stopped);
      idle.delete(index);
      await setName(caller, `name-${n}`);
      await checkName(caller);
      turns[index] = n;
    }
  });
  return {
    callers,
    turn: async () => {
      const enough = turns.map((done) => done + 2);
      await until(() => turns.every((done, index) => done >= (enough[index] ?? 0)));
    },
    pause: async () => {
      order.paused = true;
      await until(() => idle.size === callers.length);
    },
    resume: () => {
      order.paused = false;
    },
    reset: () => {
      for (const caller of callers) {
        caller.statuses.clear();
        caller.slowest = 0;
      }
    },
    stop: async () => {
      order.stopped = true;
      await Promise.all(loops);
    },
  };
}

async function setName(caller: Caller, username: string): Promise<void> {
  const { status } = await call(caller, 'PUT', { json: { username } });
  if (status === 200) caller.possible = new Set([username]);
  else caller.possible.add(username);
}

async function checkName(caller: Caller): Promise<void> {
  const { status, body } = await call(caller, 'GET');
  if (status !== 200) return;
  const { username = '' } = body as { username?: string };
  if (!caller.possible.has(username)) {
    caller.wrong.push(`${username} instead of ${[...caller.possible].join(' or ')}`);
  }
  caller.possible = new Set([username]);
}

async function call(caller: Caller, method: string, options?: { json: unknown }): Promise<Answer> {
  const elapsed = startStopwatch();
  const answer = await caller.player.request(method, '/api/profile/', options);
  const { status, text } = answer;
  caller.slowest = Math.max(caller.slowest, elapsed());
  caller.statuses.set(status, (caller.statuses.get(status) ?? 0) + 1);
  if (status !== 200 && status !== 503) caller.wrong.push(`${status} ${text}`);
  return answer;
}
