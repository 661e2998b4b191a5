import { readdir, readlink } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { defaultSettings } from '../../../src/domain/settings.ts';
import { createReleasers } from '../../../src/lib/releasers.ts';
import { closeRedis } from '../../../src/redis/connection/connect.ts';
import { createTestOrganization } from '../../../test/support/bridge.ts';
import { startRedis, unusedPort } from '../../../test/support/redis.ts';
import { openTestStore } from '../../../test/support/store.ts';
import { residentMiB } from '../../../test/support/run/process-usage.ts';
import { startBridgeProcess, type Server } from '../../../test/support/processes.ts';
import { carryOut, type Target } from './attack.ts';
import { knownAttacks, unfinished } from './known-attacks.ts';
import { randomAttack } from './random-attacks.ts';
import { encode, makeRequest, type Credentials } from './request.ts';

export interface FuzzOptions {
  attacks: number;
  /** The number of the first one. */
  first?: number;
  seed: number;
  say: (line: string) => void;
}

export interface FuzzResult {
  attacks: number;
  /** How many answers there were of each status. */
  answers: Map<number, number>;
  /** Attacks that were answered 503 and then, when repeated, otherwise. */
  repeated: number;
  /** Resident memory of the bridge, in MiB: after a tenth of the attacks, and at the end. */
  memory: { before: number; after: number };
  violations: string[];
}

const atOnce = 16;
/** More than this, in MiB, is not noise of the garbage collector. */
const tolerableGrowth = 96;

/**
 * Attacks a dedicated bridge over raw sockets, first with known attacks, then with random ones, and checks what they
 * left.
 */
export async function drillFuzz({ attacks, first = 0, seed, say }: FuzzOptions): Promise<FuzzResult> {
  const releasers = createReleasers();
  try {
    const redis = await startRedis();
    releasers.onClose('Redis', redis.stop);
    const adminPort = String(await unusedPort());
    const environment = { REDIS_URL: redis.url, ADMIN_PORT: adminPort };
    const bridge = await startBridgeProcess(environment);
    releasers.onClose('bridge', bridge.stop);
    const store = await openTestStore(redis.url);
    releasers.onClose('connection', async () => await closeRedis(store));

    const site = { keyPrefix: 'pb:', organizationHeader: 'x-platform-organization-id' };
    const organization = await createTestOrganization(bridge.url, site, store, 'fuzzed', defaultSettings);
    const credentials: Credentials = {
      organizationId: 'fuzzed',
      playerKey: (await organization.newKey({ role: 'player', userId: 'u1' })).apiKey,
      adminKey: (await organization.newKey({ role: 'admin' })).apiKey,
    };
    const target = { host: '127.0.0.1', port: Number(new URL(bridge.url).port) };
    const result: FuzzResult = {
      attacks: 0,
      answers: new Map(),
      repeated: 0,
      memory: { before: 0, after: 0 },
      violations: [],
    };
    const report = (violation: string): void => {
      result.violations.push(violation);
      say(`VIOLATION: ${violation}`);
    };
    const note = (statuses: readonly number[]): void => {
      result.attacks++;
      for (const status of statuses) result.answers.set(status, (result.answers.get(status) ?? 0) + 1);
    };
    const memory = (): number => residentMiB(bridge.pid()) ?? Number.NaN;
    const check = async (): Promise<void> => {
      for (const violation of await inspectBridge(bridge, target, credentials, adminPort)) report(violation);
    };

    // The profile that pipelined reads are of.
    await ask(target, credentials);
    for (const attack of knownAttacks(credentials)) {
      const statuses = await carryOut(attack, target, '127.0.0.1');
      note(statuses);
      const { name, expected } = attack;
      if (expected !== undefined && statuses.join() !== expected.join()) {
        report(`${name}: ${statuses.join() || 'no answer'} instead of ${[...new Set(expected)].join()}`);
      }
    }
    await check();
    for (const violation of await holdConnections(target, credentials)) report(violation);
    await check();

    let next = first;
    const end = first + attacks;
    const attacker = async (): Promise<void> => {
      while (next < end) {
        const number = next++;
        if (number === first + Math.floor(attacks / 10)) result.memory.before = memory();
        if (number > first && (number - first) % 10_000 === 0)
          say(`${number - first} attacks, ${memory()} MiB`);
        const attack = randomAttack(seed, number, credentials);
        let statuses = await carryOut(attack, target, addressOf(number));
        note(statuses);
        // On a busy machine Redis may answer later than the bridge waits for it, which has nothing to do with this
        // attack.
        if (statuses.includes(503) && attack.mayOverload !== true) {
          const again = await carryOut(attack, target, addressOf(number));
          if (!again.includes(503)) result.repeated++;
          statuses = [...statuses.filter((status) => status !== 503), ...again];
        }
        const bad = statuses.find((status) => status >= 500 && !(status === 503 && attack.mayOverload));
        if (bad !== undefined)
          report(`random attack ${number} was answered ${bad}: --attacks 1 --first ${number} --seed ${seed}`);
      }
    };
    await Promise.all(Array.from({ length: atOnce }, attacker));
    await check();
    result.memory.after = memory();
    if (attacks === 0) result.memory.before = result.memory.after;
    const growth = result.memory.after - result.memory.before;
    if (growth > tolerableGrowth) report(`the bridge's memory has grown by ${growth} MiB`);
    return result;
  } finally {
    await releasers.close();
  }
}

/** Attackers come from many addresses, so that a limit for one of them does not end the attack. */
function addressOf(number: number): string {
  return `127.0.${1 + (number % 100)}.${1 + (Math.floor(number / 100) % 250)}`;
}

/** Whether valid requests are answered while attackers hold as many connections as they like. */
async function holdConnections(target: Target, credentials: Credentials): Promise<string[]> {
  const violations: string[] = [];
  for (const [name, count, isUpload] of [
    ['unfinished uploads', 200, true],
    ['unfinished bodies without a key', 2500, false],
  ] as const) {
    const sockets: Socket[] = [];
    for (let opened = 0; opened < count; opened++) {
      const socket = connect({ ...target, localAddress: addressOf(opened) });
      socket.on('error', () => {});
      socket.write(unfinished(credentials, isUpload));
      sockets.push(socket);
      if (opened % 50 === 0) await sleep(10);
    }
    await sleep(300);
    const answer = await ask(target, credentials);
    if (answer !== '200') violations.push(`beside ${count} ${name}: ${answer} instead of 200`);
    for (const socket of sockets) socket.destroy();
  }
  return violations;
}

/** What attacks have left behind, once they are over. */
async function inspectBridge(
  bridge: Server,
  target: Target,
  credentials: Credentials,
  adminPort: string,
): Promise<string[]> {
  const violations: string[] = [];
  const answer = await ask(target, credentials);
  if (answer !== '200') violations.push(`a valid request is answered ${answer}`);
  const ready = await fetch(`${bridge.url}/readyz`).then(async (response) => await response.text(), String);
  if (!ready.includes('"status":"ok"')) violations.push(`/readyz says ${ready}`);
  const sockets = await settled(async () => await openSockets(bridge.pid()), 20);
  if (sockets > 20) violations.push(`${sockets} sockets are still open`);
  const slots = await settled(async () => await usedSlots(adminPort), 0);
  if (slots > 0) violations.push(`${slots} slots were not given back`);
  return violations;
}

/** A figure, once it is down to the limit or has been above it for 10 s. */
async function settled(read: () => Promise<number>, limit: number): Promise<number> {
  let value = await read();
  for (let attempt = 0; value > limit && attempt < 50; attempt++) {
    await sleep(200);
    value = await read();
  }
  return value;
}

/** The status of a valid PUT. */
async function ask(target: Target, { organizationId, playerKey }: Credentials): Promise<string> {
  const body = Buffer.from('{"avatarObjectDefinitionId":null}');
  const request = makeRequest('PUT', '/api/profile/', { organizationId, apiKey: playerKey }, body);
  const attack = { name: 'none', chunks: [encode(request)], end: 'wait', expected: [200] } as const;
  const statuses = await carryOut(attack, target, '127.0.0.1');
  return statuses.join() || 'not at all';
}

async function openSockets(pid: number): Promise<number> {
  const folder = `/proc/${pid}/fd`;
  const links = await Promise.all(
    (await readdir(folder)).map(async (name) => await readlink(`${folder}/${name}`).catch(() => '')),
  );
  return links.filter((link) => link.startsWith('socket:')).length;
}

/** Requests in progress, by the bridge's own metrics. */
async function usedSlots(adminPort: string): Promise<number> {
  const metrics = await (await fetch(`http://127.0.0.1:${adminPort}/metrics`)).text();
  const [, used] = /^profile_bridge_slots_in_use (\d+)$/m.exec(metrics) ?? [];
  if (used === undefined) throw new Error('the metrics do not say how many slots are in use');
  return Number(used);
}
