import { setTimeout as sleep } from 'node:timers/promises';
import type { Ground } from '../ground.ts';
import { percentile, probe, send } from '../probe.ts';
import { judged, ratioRow, type Row, type Section } from '../section.ts';
import { adminKey, playerKey } from '../seed.ts';
import { median, ratio } from '../stats.ts';

const names = 200_000;
const organization = { 'x-platform-organization-id': 'bridge' };

export const lists: Section = {
  name: 'lists',
  about: `what a denylist overwrite of ${names.toLocaleString('en')} names does to reads meanwhile`,
  run: async (ground) => {
    const rounds: Round[] = [];
    const list = namesAsJson();
    await overwrite(ground, list);
    await ground.store.slowlog('RESET');
    for (let round = 0; round < ground.rounds; round++) rounds.push(await measure(ground, list));
    const scripts = await slowScripts(ground);
    await overwrite(ground, Buffer.from('[]'));
    return rowsOf(rounds, scripts);
  },
};

/** Times in ms. */
interface Round {
  idle: number;
  busy: number;
  pause: number;
  overwrite: number;
}

async function measure(ground: Ground, list: Buffer): Promise<Round> {
  const before = readers(ground);
  await sleep(500);
  const idle = await before.stop();
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

/** How long Redis was held by each script that took it more than 1 ms, in ms; its process may have had to wait too. */
async function slowScripts({ store }: Ground): Promise<number[]> {
  const entries = (await store.slowlog('GET', 1000)) as [
    id: number,
    at: number,
    us: number,
    [command: string],
  ][];
  return entries.filter(([, , , [command]]) => /^eval/i.test(command)).map(([, , us]) => us / 1000);
}

function rowsOf(rounds: readonly Round[], scripts: readonly number[]): Row[] {
  const ms = (value: number) => `${value.toFixed(1)} ms`;
  const all = (name: keyof Round) => rounds.map((round) => round[name]);
  const what = `overwrite of ${names.toLocaleString('en')} names`;
  const slowest = Math.max(0, ...scripts);
  const pause = median(all('pause'));
  return [
    ratioRow(
      `${what}: p99 of reads, of idle`,
      ratio(all('busy'), all('idle')),
      `${ms(median(all('busy')))} : ${ms(median(all('idle')))}; it took ${ms(median(all('overwrite')))}`,
      { atMost: 3 },
    ),
    {
      what: `${what}: longest read`,
      result: ms(pause),
      spread: `${Math.min(...all('pause')).toFixed(1)}..${Math.max(...all('pause')).toFixed(1)}`,
      figures: { medianMs: pause, rounds },
    },
    judged(
      {
        what: `${what}: slowest script`,
        result: slowest === 0 ? '< 1 ms' : ms(slowest),
        noise: `${scripts.length} above 1 ms`,
        figures: { slowestMs: slowest, above1ms: scripts.length },
      },
      slowest,
      { atMost: 5 },
    ),
  ];
}
