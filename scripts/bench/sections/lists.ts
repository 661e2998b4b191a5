import { setTimeout as sleep } from 'node:timers/promises';
import type { Resources } from '../resources.ts';
import { users } from '../load/load.ts';
import { openProbe, percentile, type Probe } from '../load/probe.ts';
import { judged, ratioRow, type Row, type Section } from '../report/section.ts';
import { adminKey, baseOf, playerKeyOf, rename } from '../load/seed.ts';
import { median, ratio } from '../report/stats.ts';

const names = 200_000;
const title = names.toLocaleString('en');
const organization = { 'x-platform-organization-id': 'bridge' };

/** How long reads are watched before each list and after the last, in ms. */
const idleTime = 800;

interface Change {
  method: string;
  path: string;
  body: Buffer;
  status: number;
}

/** What reads saw during one change, how long it took, and the scripts meanwhile; all in ms. */
interface Measured {
  busy: number;
  longest: number;
  took: number;
  slowest: number;
  /** What 99 % of the recorded scripts did not exceed. */
  script99: number;
}

export const lists: Section = {
  name: 'lists',
  about: `what a ban, an overwrite and a delete of ${title} names do to reads meanwhile`,
  run: async (resources) => {
    const measured: Record<'ban' | 'overwrite' | 'delete', Measured[]> = {
      ban: [],
      overwrite: [],
      delete: [],
    };
    const idles: number[] = [];
    const probe = openProbe(`${resources.bridge.url}/api/profile/`, readers());
    await resources.store.config('SET', 'slowlog-log-slower-than', 200, 'slowlog-max-len', 10_000);
    try {
      // A process that has just started answers slowly, idle or not.
      await watch(probe, () => sleep(2000));
      for (let round = 0; round < resources.rounds; round++) {
        await rename(resources.store, baseOf('bridge'), (user) => held(round, user));
        // The overwrite replaces a list of the same length, which has to be removed.
        const changes = { ban: ban(round), overwrite: overwrite(round), delete: remove(round) };
        const idle: number[] = [];
        for (const what of ['ban', 'overwrite', 'delete'] as const) {
          idle.push(...(await watch(probe, () => sleep(idleTime))));
          measured[what].push(await measure(resources, probe, changes[what]));
        }
        idle.push(...(await watch(probe, () => sleep(idleTime))));
        idles.push(
          percentile(
            idle.toSorted((a, b) => a - b),
            0.99,
          ),
        );
      }
    } finally {
      await probe.close();
      await resources.store.config('SET', 'slowlog-log-slower-than', 1000, 'slowlog-max-len', 1000);
    }
    return Object.entries(measured).flatMap(([what, rounds]) =>
      rowsOf(`${what} of ${title} names`, rounds, idles),
    );
  },
};

/** The name of a user before a round's ban; after it he has the next round's. */
const held = (round: number, user: number): string => `held-${round}-${user}`;

/** Most names of a long list are unused: this many for each one in use. */
const others = names / users - 1;

/** The list of a round as JSON: what `write` makes of each name, and of the one that may replace it. */
function bodyOf(round: number, brackets: '[]' | '{}', write: (name: string, next: string) => string): Buffer {
  const parts: string[] = [];
  for (let user = 0; user < users; user++) {
    parts.push(write(held(round, user), held(round + 1, user)));
    for (let n = 0; n < others; n++) parts.push(write(`rude-name-${user}-${n}`, `better-name-${user}-${n}`));
  }
  return Buffer.from(brackets[0] + parts.join(',') + brackets[1]);
}

const ban = (round: number): Change => ({
  method: 'POST',
  path: 'deny',
  body: bodyOf(round, '{}', (name, next) => `"${name}":"${next}"`),
  status: 204,
});

const remove = (round: number): Change => ({
  method: 'DELETE',
  path: 'deny',
  body: bodyOf(round, '[]', (name) => `"${name}"`),
  status: 200,
});

const overwrite = (round: number): Change => ({
  method: 'PUT',
  path: 'denylist',
  body: bodyOf(round, '[]', (name) => `"${name}"`),
  status: 204,
});

async function measure(resources: Resources, probe: Probe, asked: Change): Promise<Measured> {
  await resources.store.slowlog('RESET');
  let took = 0;
  const busy = await watch(probe, async () => {
    const began = performance.now();
    await change(resources, asked);
    took = performance.now() - began;
  });
  const scripts = await notedScripts(resources);
  return {
    busy: percentile(busy, 0.99),
    longest: percentile(busy, 1),
    took,
    slowest: percentile(scripts, 1),
    script99: percentile(scripts, 0.99),
  };
}

/** What reads take while something is done, in ms, ascending. */
async function watch(probe: Probe, act: () => Promise<unknown>): Promise<number[]> {
  probe.start();
  await act();
  return await probe.stop();
}

function readers(): Record<string, string>[] {
  return Array.from({ length: users }, (_, user) => ({ ...organization, 'x-api-key': playerKeyOf(user) }));
}

async function change({ bridge }: Resources, { method, path, body, status }: Change): Promise<void> {
  const url = `${bridge.url}/api/profile/username/${path}/`;
  const headers = { ...organization, 'x-api-key': adminKey, 'content-type': 'application/json' };
  const answer = await fetch(url, { method, headers, body });
  await answer.arrayBuffer();
  if (answer.status !== status) throw new Error(`${method} ${path} was answered ${answer.status}`);
}

/** How long scripts blocked Redis, in ms by its own clock, ascending: of those that it records. */
async function notedScripts({ store }: Resources): Promise<number[]> {
  const entries = (await store.slowlog('GET', 10_000)) as [
    id: number,
    at: number,
    us: number,
    [command: string],
  ][];
  const scripts = entries.filter(([, , , [command]]) => /^eval/i.test(command));
  return scripts.map(([, , us]) => us / 1000).toSorted((a, b) => a - b);
}

/**
 * Other load on the machine adds to every time, also to those by Redis' own clock. In a ratio it is on both sides; for
 * absolute times the least disturbed round is the best measure, since the work is the same in all of them.
 */
function rowsOf(what: string, rounds: readonly Measured[], idles: readonly number[]): Row[] {
  const all = (name: keyof Measured) => rounds.map((round) => round[name]);
  const ms = (value: number) => `${value.toFixed(1)} ms`;
  const lowest = (label: string, name: keyof Measured, noise = ''): Row => ({
    what: `${what}: ${label}, lowest of ${rounds.length} rounds`,
    result: ms(Math.min(...all(name))),
    spread: `${Math.min(...all(name)).toFixed(1)}..${Math.max(...all(name)).toFixed(1)}`,
    noise: `median ${ms(median(all(name)))}${noise}`,
    figures: { leastMs: Math.min(...all(name)), medianMs: median(all(name)), rounds: all(name) },
  });
  const [idle, busy, took] = [ms(median(idles)), ms(median(all('busy'))), median(all('took'))];
  return [
    ratioRow(
      `${what}: p99 of reads, of idle`,
      ratio(all('busy'), idles),
      `${busy} : ${idle}; it took ${(took / 1000).toFixed(1)} s`,
      { atMost: 3 },
    ),
    lowest('longest read', 'longest'),
    judged(
      lowest('slowest script', 'slowest', `; 99 % within ${ms(median(all('script99')))}`),
      Math.min(...all('slowest')),
      { atMost: 5 },
    ),
  ];
}
