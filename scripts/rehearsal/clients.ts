import { createPhases } from './phases.ts';
import { createRequests, type Client, type RequestOptions } from './requests.ts';

export type Clients = ReturnType<typeof startClients>;

export interface ClientsOptions extends RequestOptions {
  /** Requests per second. */
  rate: number;
}

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
  const { instances, random, rate } = options;
  const phases = createPhases(instances);
  const { all, denylist, read, put, ban, undeny, overwrite, oldestReadMs } = createRequests(
    options,
    phases.current,
  );
  const underWay = new Set<Promise<unknown>>();
  const busy = new Map<Client, Promise<unknown>>();
  let admin: Promise<void> | undefined;
  let isAdminQuiet = false;

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
      if (oldestReadMs() > slowReadMs) continue;
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
      phases.end();
    },
  };
}
