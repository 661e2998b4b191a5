import type { Mode } from '../../../src/cutover/modes.ts';
import { createReleasers } from '../../../src/lib/releasers.ts';
import { runTool } from '../../../test/support/tools/admin.ts';
import { openClosedLoop, type ClosedLoop } from '../load/closed-loop.ts';
import type { Workload } from '../load/load.ts';
import { percentile } from '../load/probe.ts';
import { seedOrganization } from '../load/seed.ts';
import { changeUsername, getProfile } from '../load/workloads.ts';
import { compare, speed } from '../report/compare.ts';
import { judged, ratioRow, type Row, type Section } from '../report/section.ts';
import { median, ratio } from '../report/stats.ts';
import { openStore, type Resources } from '../resources.ts';
import { residentMiB } from '../../../test/support/run/process-usage.ts';
import { kept, serve, serveBridge, type Served } from '../servers/serve.ts';

const read = getProfile('bridge');
const change = changeUsername('bridge');

/** What clients call: the legacy service itself, or a bridge in front of one like it. */
type Way = 'direct' | 'shadow' | 'mirror';

/** About how many requests of one client make up a second of a round. */
const requestsPerSecond = 500;
/** More than are ever sent, so that the numbers of two runs never meet. */
const runSize = 1_000_000;
/** How many requests have been forwarded when memory is measured for the first and for the last time. */
const forwarded = { first: 10_000, last: 100_000 };
const connectionsForMemory = 8;

export const cutover: Section = {
  name: 'cutover',
  about:
    'what a bridge in front of the legacy service adds to a request, and its memory; native after a cut-over',
  run: async (resources) => {
    const releasers = createReleasers();
    try {
      const loop = openClosedLoop();
      releasers.onClose('load', loop.close);
      const legacy = (): Promise<Served> => kept(releasers, serve('legacy.ts', {}));
      /** A bridge in this mode, on a Redis of its own. */
      const openBridge = async (mode: 'shadow' | 'mirror'): Promise<Served> => {
        const { url, store, close } = await openStore();
        releasers.onClose('redis', close);
        await seedOrganization(store, 'bridge');
        const environment = { LEGACY_BASE_URL: (await legacy()).url };
        const bridge = await kept(releasers, serveBridge(url, environment));
        if (mode !== 'shadow') await setMode({ REDIS_URL: url, ...environment }, mode);
        return bridge;
      };
      const ways = {
        direct: await legacy(),
        shadow: await openBridge('shadow'),
        mirror: await openBridge('mirror'),
      };
      return [
        ...(await latencyRows(resources, loop, ways, 'GET', read)),
        ...(await latencyRows(resources, loop, ways, 'PUT of a username', change)),
        await memoryRow(resources, loop, ways.mirror),
        await nativeRow(resources, (await legacy()).url),
      ];
    } finally {
      await releasers.close();
    }
  },
};

async function setMode(env: Record<string, string>, mode: Mode): Promise<void> {
  const { code, err } = await runTool({ ALLOW_EVICTION: '1', ...env }, `cutover set ${mode}`);
  if (code !== 0) throw new Error(`the mode cannot be set to ${mode}: ${err}`);
}

/** One client at a time, so that nothing queues; the paths in turn, so that other load affects them alike. */
async function latencyRows(
  { rounds, seconds, say }: Resources,
  loop: ClosedLoop,
  ways: Record<Way, Served>,
  what: string,
  work: Workload,
): Promise<Row[]> {
  say(`  ${what}`);
  const names = Object.keys(ways) as Way[];
  const medians: Record<Way, number[]> = { direct: [], shadow: [], mirror: [] };
  for (let round = 0; round <= rounds; round++) {
    for (const way of names) {
      const turns = { connections: 1, requests: requestsPerSecond * seconds, first: round * runSize };
      const times = await loop.run(ways[way].url, work, turns);
      // The first round is to warm up.
      if (round > 0) medians[way].push(percentile(times, 0.5));
    }
  }
  return (['shadow', 'mirror'] as const).map((mode) => {
    const [through, direct] = [median(medians[mode]), median(medians.direct)];
    const added = through - direct;
    const noise = `adds ${added.toFixed(2)} ms: ${through.toFixed(2)} : ${direct.toFixed(2)} ms at the median`;
    const row = ratioRow(
      `${what} in ${mode}, time of calling legacy directly`,
      ratio(medians[mode], medians.direct),
      noise,
    );
    return {
      ...row,
      aim: 'adds < 1 ms',
      met: added < 1,
      figures: { ...row.figures, through, direct, added },
    };
  });
}

/** Whether a bridge's memory grows with forwarded requests: half of them reads, half changes. */
async function memoryRow({ say }: Resources, loop: ClosedLoop, bridge: Served): Promise<Row> {
  const what = `resident after ${forwarded.last.toLocaleString('en')} forwarded requests, of after ${forwarded.first.toLocaleString('en')}`;
  let sent = 0;
  const forward = async (upTo: number): Promise<number> => {
    const each = (upTo - sent) / 2;
    for (const work of [read, change]) {
      const first = 100 * runSize + sent;
      await loop.run(bridge.url, work, { connections: connectionsForMemory, requests: each, first });
      sent += each;
    }
    return residentMiB(bridge.pid) ?? Number.NaN;
  };
  say(`  forwarding ${forwarded.last.toLocaleString('en')} requests`);
  const [before, after] = [await forward(forwarded.first), await forward(forwarded.last)];
  if (Number.isNaN(before + after)) return { what, result: 'not available on this system', figures: {} };
  const row = {
    what,
    result: (after / before).toFixed(2),
    noise: `${after} : ${before} MiB, in mirror`,
    figures: { before, after },
  };
  return judged(row, after / before, { atMost: 1.25 });
}

/** Checking the mode must cost requests nothing. */
async function nativeRow(resources: Resources, legacyUrl: string): Promise<Row> {
  await setMode({ REDIS_URL: resources.redisUrl, LEGACY_BASE_URL: legacyUrl }, 'native');
  const after = await resources.openBridge({ LEGACY_BASE_URL: legacyUrl });
  const measured = await compare(resources, {
    after: { server: after, work: read },
    without: { server: resources.bridge, work: read },
  });
  return ratioRow(
    'GET profile, native with LEGACY_BASE_URL, of without',
    ...speed(measured.after, measured.without),
    { atLeast: 0.95 },
  );
}
