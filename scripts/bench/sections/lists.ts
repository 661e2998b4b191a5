import { setTimeout as sleep } from 'node:timers/promises';
import type { Ground } from '../ground.ts';
import { users } from '../load.ts';
import { percentile, probe, send } from '../probe.ts';
import { judged, ratioRow, type Row, type Section } from '../section.ts';
import { adminKey, baseOf, playerKey, rename } from '../seed.ts';
import { median, ratio } from '../stats.ts';

const names = 200_000;
const title = names.toLocaleString('en');
const organization = { 'x-platform-organization-id': 'bridge' };

/** How long reads are watched before each list, in ms. */
const idleTime = 1000;

interface Change {
  method: string;
  path: string;
  body: Buffer;
  status: number;
}

/** What reads saw before and during one change, the change itself, and the slowest script meanwhile; all in ms. */
interface Measured {
  idle: number;
  busy: number;
  longest: number;
  took: number;
  script: number;
}

export const lists: Section = {
  name: 'lists',
  about: `what a ban, a delete and an overwrite of ${title} names do to reads meanwhile`,
  run: async (ground) => {
    // Most names of a long list are nobody's; of those who have one, the ban renames each.
    const unused = Array.from({ length: names - users }, (_, n) => `rude-name-${n}`);
    const held = (round: number, user: number): string => `held-${round}-${user}`;
    const measured: Record<'ban' | 'delete' | 'overwrite', Measured[]> = {
      ban: [],
      delete: [],
      overwrite: [],
    };
    await ground.store.config('SET', 'slowlog-log-slower-than', 200, 'slowlog-max-len', 10_000);
    try {
      // What has just started answers slowly, idle or not.
      const warming = reads(ground);
      await sleep(2000);
      await warming.stop();
      for (let round = 0; round < ground.rounds; round++) {
        await rename(ground.store, baseOf('bridge'), (user) => held(round, user));
        const inUse = Array.from({ length: users }, (_, user) => held(round, user));
        const list = inUse.flatMap((name, user) => [name, ...unused.slice(user * 199, user * 199 + 199)]);
        const replacements = list.map((name, n) => [
          name,
          n % 200 === 0 ? held(round + 1, n / 200) : `better-name-${n}`,
        ]);
        measured.ban.push(await measure(ground, ban(Object.fromEntries(replacements))));
        measured.delete.push(await measure(ground, remove(list)));
        // Of a list as long, which has to go.
        await change(ground, overwrite(list));
        measured.overwrite.push(await measure(ground, overwrite(list.toReversed())));
        await change(ground, overwrite([]));
      }
    } finally {
      await ground.store.config('SET', 'slowlog-log-slower-than', 1000, 'slowlog-max-len', 1000);
    }
    return Object.entries(measured).flatMap(([what, rounds]) => rowsOf(`${what} of ${title} names`, rounds));
  },
};

const ban = (replacements: Record<string, string>): Change => ({
  method: 'POST',
  path: 'deny',
  body: Buffer.from(JSON.stringify(replacements)),
  status: 204,
});

const remove = (list: string[]): Change => ({
  method: 'DELETE',
  path: 'deny',
  body: Buffer.from(JSON.stringify(list)),
  status: 200,
});

const overwrite = (list: string[]): Change => ({
  method: 'PUT',
  path: 'denylist',
  body: Buffer.from(JSON.stringify(list)),
  status: 204,
});

async function measure(ground: Ground, asked: Change): Promise<Measured> {
  const before = reads(ground);
  await sleep(idleTime);
  const idle = await before.stop();
  await ground.store.slowlog('RESET');
  const meanwhile = reads(ground);
  const began = performance.now();
  const changed = change(ground, asked);
  await changed.catch(() => {});
  const took = performance.now() - began;
  const busy = await meanwhile.stop();
  await changed;
  return {
    idle: percentile(idle, 0.99),
    busy: percentile(busy, 0.99),
    longest: percentile(busy, 1),
    took,
    script: await slowestScript(ground),
  };
}

function reads({ bridge }: Ground) {
  return probe(`${bridge.url}/api/profile/`, (user) => ({
    ...organization,
    'x-api-key': playerKey.replace('{user}', String(user)),
  }));
}

async function change({ bridge }: Ground, { method, path, body, status }: Change): Promise<void> {
  const url = `${bridge.url}/api/profile/username/${path}/`;
  const headers = { ...organization, 'x-api-key': adminKey, 'content-type': 'application/json' };
  const answered = await send(method, url, headers, body);
  if (answered !== status) throw new Error(`${method} ${path} was answered ${answered}`);
}

/** The longest that one script held Redis, in ms by its own clock; 0 where none took long enough to be noted. */
async function slowestScript({ store }: Ground): Promise<number> {
  const entries = (await store.slowlog('GET', 10_000)) as [
    id: number,
    at: number,
    us: number,
    [command: string],
  ][];
  const scripts = entries.filter(([, , , [command]]) => /^eval/i.test(command));
  return scripts.reduce((slowest, [, , us]) => Math.max(slowest, us / 1000), 0);
}

/**
 * In every round something may have held up the process that was measured, by the clock of Redis too: the median of
 * the rounds tells what the work takes, and the spread beside it what else there was.
 */
function rowsOf(what: string, rounds: readonly Measured[]): Row[] {
  const all = (name: keyof Measured) => rounds.map((round) => round[name]);
  const ms = (value: number) => `${value.toFixed(1)} ms`;
  const time = (label: string, name: keyof Measured): Row => ({
    what: `${what}: ${label}`,
    result: ms(median(all(name))),
    spread: `${Math.min(...all(name)).toFixed(1)}..${Math.max(...all(name)).toFixed(1)}`,
    figures: { medianMs: median(all(name)), rounds: all(name) },
  });
  const [idle, busy, took] = [ms(median(all('idle'))), ms(median(all('busy'))), median(all('took'))];
  return [
    ratioRow(
      `${what}: p99 of reads, of idle`,
      ratio(all('busy'), all('idle')),
      `${busy} : ${idle}; it took ${(took / 1000).toFixed(1)} s`,
      { atMost: 3 },
    ),
    time('longest read', 'longest'),
    judged(time('slowest script', 'script'), median(all('script')), { atMost: 5 }),
  ];
}
