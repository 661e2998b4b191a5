import { setTimeout as sleep } from 'node:timers/promises';
import type { Ground } from '../ground.ts';
import { percentile, probe, send } from '../probe.ts';
import { judged, ratioRow, type Row, type Section } from '../section.ts';
import { adminKey, playerKey } from '../seed.ts';
import { median, ratio } from '../stats.ts';

const names = 200_000;
const what = `overwrite of ${names.toLocaleString('en')} names`;
const organization = { 'x-platform-organization-id': 'bridge' };

export const lists: Section = {
  name: 'lists',
  about: `what a denylist overwrite of ${names.toLocaleString('en')} names does to reads meanwhile`,
  run: async (ground) => {
    const rounds: Round[] = [];
    const list = namesAsJson();
    await overwrite(ground, list);
    for (let round = 0; round < ground.rounds; round++) rounds.push(await measure(ground, list));
    await overwrite(ground, Buffer.from('[]'));
    return rowsOf(rounds);
  },
};

/** Times in ms. */
interface Round {
  idle: number;
  busy: number;
  pause: number;
  overwrite: number;
  slowest: number;
}

async function measure(ground: Ground, list: Buffer): Promise<Round> {
  const { store } = ground;
  const before = readers(ground);
  await sleep(500);
  const idle = await before.stop();
  await store.slowlog('RESET');
  const meanwhile = readers(ground);
  const began = performance.now();
  await overwrite(ground, list);
  const took = performance.now() - began;
  const busy = await meanwhile.stop();
  return {
    idle: percentile(idle, 0.99),
    busy: percentile(busy, 0.99),
    pause: percentile(busy, 1),
    overwrite: took,
    slowest: await slowestScript(ground),
  };
}

function readers({ bridge }: Ground) {
  return probe(`${bridge.url}/api/profile/`, (user) => ({
    ...organization,
    'x-api-key': playerKey.replace('{user}', String(user)),
  }));
}

async function overwrite({ bridge }: Ground, list: Buffer): Promise<void> {
  const url = `${bridge.url}/api/profile/username/denylist/`;
  const headers = { ...organization, 'x-api-key': adminKey, 'content-type': 'application/json' };
  const status = await send('PUT', url, headers, list);
  if (status !== 204) throw new Error(`the overwrite was answered ${status}`);
}

function namesAsJson(): Buffer {
  const list = Array.from({ length: names }, (_, i) => `denied-name-${String(i).padStart(6, '0')}`);
  return Buffer.from(JSON.stringify(list));
}

/** The longest that one script held Redis, in ms, of those that SLOWLOG notes; 0 where it notes none. */
async function slowestScript({ store }: Ground): Promise<number> {
  const entries = (await store.slowlog('GET', 1000)) as [
    id: number,
    at: number,
    us: number,
    [command: string],
  ][];
  const scripts = entries.filter(([, , , [command]]) => /^eval/i.test(command));
  return Math.max(0, ...scripts.map(([, , us]) => us / 1000));
}

function rowsOf(rounds: readonly Round[]): Row[] {
  const ms = (value: number) => `${value.toFixed(1)} ms`;
  const all = (name: keyof Round) => rounds.map((round) => round[name]);
  /** In every round something may have held up the process itself: the median tells what the work takes. */
  const time = (label: string, name: keyof Round): Row => ({
    what: `${what}: ${label}`,
    result: ms(median(all(name))),
    spread: `${Math.min(...all(name)).toFixed(1)}..${Math.max(...all(name)).toFixed(1)}`,
    figures: { medianMs: median(all(name)), rounds: all(name) },
  });
  const [idle, busy, took] = [ms(median(all('idle'))), ms(median(all('busy'))), median(all('overwrite'))];
  return [
    ratioRow(
      `${what}: p99 of reads, of idle`,
      ratio(all('busy'), all('idle')),
      `${busy} : ${idle}; the overwrite took ${(took / 1000).toFixed(1)} s`,
      { atMost: 3 },
    ),
    time('longest read', 'pause'),
    judged(time('slowest script', 'slowest'), median(all('slowest')), { atMost: 5 }),
  ];
}
