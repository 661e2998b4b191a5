import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { switchMode } from '../../../src/cutover/switch/coordinator.ts';
import type { Mode } from '../../../src/cutover/modes.ts';
import type { Admission, Cutover } from '../../../src/cutover/switch/instance.ts';
import { readLease } from '../../../src/cutover/switch/protocol.ts';
import {
  newRegistration,
  readCutover,
  cutoverAdvance,
  cutoverBegin,
  cutoverHeartbeat,
  cutoverRemove,
  cutoverWithdraw,
} from '../../../src/cutover/switch/registry.ts';
import { storeTime } from '../../../src/redis/connection/client.ts';
import { closeRedis } from '../../../src/redis/connection/connect.ts';
import { runTool } from '../../support/tools/admin.ts';
import { startBridge } from '../../support/bridge.ts';
import { environmentFor, freshPrefix, startRedis } from '../../support/redis.ts';
import { openTestStore } from '../../support/store.ts';
import { admitAtOnce, joinTestInstance } from '../../support/legacy/instances.ts';
import { until } from '../../support/until.ts';
import { useTestStore } from '../../support/use-store.ts';

const lease = 60_000;

const store = await useTestStore();
let prefix: string;
let key: string;
let joined: Cutover[];
beforeEach(() => {
  prefix = freshPrefix();
  key = `${prefix}cutover`;
  joined = [];
});
afterEach(async () => {
  for (const one of joined) await one.close();
});

const env = () => environmentFor(prefix);

async function join(legacy = true, replay = false): Promise<Cutover> {
  const one = await joinTestInstance(store, prefix, legacy, replay);
  joined.push(one);
  return one;
}

const read = () => readCutover(store, prefix);
const advance = (phase: string) => cutoverAdvance(store, key, 'token', phase, lease, 1, 'test');
const acknowledged = (phase: string | undefined) =>
  until(async () => (await read()).instances.every((one) => one.acknowledged === phase));
describe('the first mode', () => {
  test('is shadow if the legacy service is known: a fresh bridge takes no authority', async () => {
    expect((await join()).mode()).toBe('shadow');
    expect(await read()).toMatchObject({ mode: 'shadow', isStored: true, by: 'default' });
  });

  test('is native without it, and is not stored', async () => {
    expect((await join(false)).mode()).toBe('native');
    expect(await read()).toMatchObject({ mode: 'native', isStored: false });
  });

  test('is not changed by an instance that knows the legacy service while others serve without it', async () => {
    const { id } = await join(false);
    await expect(join()).rejects.toThrow(id);
    await expect(join()).rejects.toThrow('admin cutover set native');
    expect(await read()).toMatchObject({ mode: 'native', isStored: false });
  });
});

describe('a bridge without LEGACY_BASE_URL', () => {
  test('refuses to start in a mode that needs the legacy service, and says what to do', async () => {
    await join();
    await expect(startBridge({ keyPrefix: prefix })).rejects.toThrow(
      /is shadow.*set LEGACY_BASE_URL to its address, until the cut-over has reached native/,
    );
  });

  test('starts in native mode and ends its registration when it stops', async () => {
    const bridge = await startBridge({ keyPrefix: prefix });
    expect((await read()).instances).toMatchObject([{ kind: 'bridge', legacy: false, pid: process.pid }]);
    await bridge.close();
    expect(await read()).toMatchObject({ instances: [] });
    expect((await read()).gap).toBeUndefined();
  });
});

describe('an instance', () => {
  test('admits changes at once while no switch is under way', async () => {
    const one = await join();
    const admission = admitAtOnce(one);
    expect(admission).toMatchObject({ mode: 'shadow', epoch: 0 });
    admission.release();
  });

  test('follows a switch: changes wait, reads move first', async () => {
    const [one, other] = [await join(), await join()];
    expect(await cutoverBegin(store, key, 'token', 'shadow', 'mirror', lease)).toEqual(['begun', 1]);
    await acknowledged('stop');
    const waiting = one.admitChange();
    expect(waiting).toBeInstanceOf(Promise);
    expect(one.mode()).toBe('shadow');

    expect(await advance('stop')).toEqual(['ready']);
    await acknowledged('reads');
    expect([one.mode(), other.mode()]).toEqual(['mirror', 'mirror']);
    expect(mustWait(one)).toBe(true);

    expect(await advance('reads')).toEqual(['ready']);
    expect(await waiting).toMatchObject({ mode: 'mirror', epoch: 1 });
    expect(await read()).toMatchObject({ mode: 'mirror', epoch: 1, by: 'test' });
  });

  test('acknowledges only once every admitted change has ended', async () => {
    const [one, other] = [await join(), await join()];
    const admission = admitAtOnce(one);
    await cutoverBegin(store, key, 'token', 'shadow', 'mirror', lease);
    await until(async () =>
      (await read()).instances.some((known) => known.id === other.id && known.acknowledged === 'stop'),
    );
    await until(() => mustWait(one));
    expect(await advance('stop')).toEqual(['waiting', [one.id]]);
    admission.release();
    await acknowledged('stop');
    expect(await advance('stop')).toEqual(['ready']);
  });

  test('acknowledges only once the changes whose outcome is in doubt are on record', async () => {
    const one = await join();
    let isUnsaved = true;
    one.holdWhile(() => isUnsaved);
    await cutoverBegin(store, key, 'token', 'shadow', 'mirror', lease);
    await until(() => mustWait(one));
    expect(await advance('stop')).toEqual(['waiting', [one.id]]);
    isUnsaved = false;
    await acknowledged('stop');
    expect(await advance('stop')).toEqual(['ready']);
  });

  test('refuses a waiting change while Redis is unavailable', async () => {
    const redis = await startRedis();
    const away = await openTestStore(redis.url);
    const one = await joinTestInstance(away, prefix);
    await cutoverBegin(away, key, 'token', 'shadow', 'mirror', lease);
    await until(() => mustWait(one));
    process.kill(redis.pid, 'SIGSTOP');
    await expect(one.admitChange()).rejects.toMatchObject({
      status: 503,
      code: 'store-unavailable',
    });
    process.kill(redis.pid, 'SIGCONT');
    await one.close();
    await closeRedis(away);
    await redis.stop();
  });

  test.each([
    ['without a legacy service admits changes at once', false, false],
    ['with a legacy service asks for the mode before a change', true, true],
  ])('out of touch with Redis, one %s', async (_, legacy, waits) => {
    const redis = await startRedis();
    const away = await openTestStore(redis.url);
    const one = await joinTestInstance(away, prefix, legacy);
    const stoppedAt = performance.now();
    process.kill(redis.pid, 'SIGSTOP');
    await until(() => performance.now() - stoppedAt > readLease + 500);
    expect(mustWait(one)).toBe(waits);
    process.kill(redis.pid, 'SIGCONT');
    await one.close();
    await closeRedis(away);
    await redis.stop();
  });

  test.each([
    ['shadow', 'mirror'],
    ['mirror', 'reverse'],
  ])('that was paused while %s became %s trusts the old mode in nothing', async (before, after) => {
    await store.hset(key, { mode: before, epoch: 1 });
    const own = await openTestStore();
    const cutover = await joinTestInstance(own, prefix, true);
    const old = admitAtOnce(cutover);
    try {
      await store.hset(key, { mode: after, epoch: 2 });
      const end = performance.now() + readLease + 100;
      while (performance.now() < end);
      // As a late timer does; commands fail until the client is connected again.
      own.disconnect(true);
      const isLeftBehind = cutover.isLeftBehind(old);
      const admission = cutover.admitChange();
      const first = cutover.readMode();
      await sleep(10);
      expect(await Promise.all([first, cutover.readMode()])).toEqual([after, after]);
      expect(await admission).toMatchObject({ mode: after, epoch: 2 });
      expect(await isLeftBehind).toBe(true);
      (await admission).release();
    } finally {
      old.release();
      await cutover.close();
      await closeRedis(own);
    }
  });

  test('that starts during a switch starts with changes stopped, and acknowledged', async () => {
    await join();
    await cutoverBegin(store, key, 'token', 'shadow', 'mirror', lease);
    await acknowledged('stop');
    await advance('stop');
    const late = await join();
    expect(late.mode()).toBe('mirror');
    expect(mustWait(late)).toBe(true);
    expect((await read()).instances.find(({ id }) => id === late.id)?.acknowledged).toBe('reads');
  });

  test('replays nothing in reverse if Redis has lost a switch', async () => {
    await store.hset(key, { mode: 'reverse', epoch: 7, since: 1 });
    const one = await join(true, true);
    expect(one.mayReplay()).toBe(true);
    await store.hset(key, 'epoch', '6');
    await until(() => one.hasLostSwitch());
    expect([one.mode(), one.mayReplay()]).toEqual(['reverse', false]);
  });

  test('replays nothing, and admits no change, if it starts once another one has found that Redis has lost a switch', async () => {
    await store.hset(key, { mode: 'reverse', epoch: 7, since: 1 });
    const one = await join(true, true);
    await store.hset(key, 'epoch', '6');
    await until(() => one.hasLostSwitch());
    await one.close();
    const late = await join(true, true);
    expect([late.hasLostSwitch(), late.mayReplay(), mustWait(late)]).toEqual([true, false, true]);
    expect((await runTool(env(), 'cutover status')).out).toContain('Redis has lost the last switch');
  });

  test('refuses changes if Redis has lost a switch, until a mode is in force again', async () => {
    const one = await join();
    await store.hset(key, 'epoch', '7');
    await until(() => admitAtOnceOrUndefined(one)?.epoch === 7);
    await store.hset(key, 'epoch', '6');
    await until(() => mustWait(one));
    const begin = () => cutoverBegin(store, key, 'token', 'shadow', 'mirror', lease);
    expect(await begin()).toEqual(['begun', 8]);
    await acknowledged('stop');
    await cutoverWithdraw(store, key, 'token');
    await acknowledged(undefined);
    expect([one.hasLostSwitch(), mustWait(one)]).toEqual([true, true]);
    expect(await begin()).toEqual(['begun', 9]);
    for (const phase of ['stop', 'reads']) await until(async () => (await advance(phase))[0] === 'ready');
    await until(() => admitAtOnceOrUndefined(one)?.epoch === 9);
  });
});

describe('Redis that comes back in the middle of a switch', () => {
  test.each([
    ['the last one', 0],
    ['an earlier one', 1],
  ])(
    '%s: has changes refused until a mode is in force again, and the switch is withdrawn',
    async (_, later) => {
      const one = await join();
      const begin = () => cutoverBegin(store, key, 'token', 'shadow', 'mirror', lease);
      await begin();
      await until(async () => (await advance('stop'))[0] === 'ready');
      await acknowledged('reads');
      const earlier = await store.dumpBuffer(key);
      await advance('reads');
      await until(() => admitAtOnceOrUndefined(one)?.mode === 'mirror');

      await store.restore(key, 0, earlier, 'REPLACE');
      await store.hincrby(key, 'epoch', -later);
      await until(() => one.hasLostSwitch());
      await store.hset(key, 'until', '0');
      await until(async () => (await read()).underWay === undefined && one.mode() === 'shadow');
      expect([mustWait(one), (await read()).hasLostSwitch]).toEqual([true, true]);
      expect(await begin()).toMatchObject(['begun', expect.any(Number)]);
    },
  );

  test('does not let its tool take the switch for made', async () => {
    await store.hset(key, 'mode', 'shadow');
    await cutoverBegin(store, key, 'token', 'shadow', 'mirror', lease);
    const earlier = await store.dumpBuffer(key);
    expect(await advance('stop')).toEqual(['ready']);
    await store.restore(key, 0, earlier, 'REPLACE');
    expect(await advance('reads')).toEqual(['lost']);
  });
});

test('a switch is not lost where the clock of Redis has gone back since the one before', async () => {
  const one = await join();
  await store.hset(key, 'since', Date.now() + 3_600_000);
  await cutoverBegin(store, key, 'token', 'shadow', 'mirror', lease);
  for (const phase of ['stop', 'reads']) await until(async () => (await advance(phase))[0] === 'ready');
  await until(() => one.mode() === 'mirror' && one.since() < Date.now() + 1_800_000);
  expect([one.hasLostSwitch(), admitAtOnceOrUndefined(one)?.mode]).toEqual([false, 'mirror']);
});

describe('Redis that comes back without its data', () => {
  test.each<Mode>(['shadow', 'mirror'])(
    'leaves the authority to the legacy service where the mode was %s',
    async (mode) => {
      await store.hset(key, { mode, epoch: 3, since: 1 });
      const one = await join();
      await store.unlink(key);
      await until(async () => (await read()).isStored);
      expect(await read()).toMatchObject({ mode: 'shadow', epoch: 3, by: 'default', isLost: false });
      await until(() => one.mode() === 'shadow');
      expect(admitAtOnceOrUndefined(one)).toMatchObject({ mode: 'shadow', epoch: 3 });
    },
  );

  test('and then from a backup of the mode before goes on in that mode', async () => {
    await store.hset(key, { mode: 'mirror', epoch: 3, since: 1, 'history:3': '1 mirror test' });
    const one = await join();
    const backup = await store.dumpBuffer(key);
    await store.unlink(key);
    await until(() => one.mode() === 'shadow');
    await store.restore(key, 0, backup, 'REPLACE');
    await until(() => admitAtOnceOrUndefined(one)?.mode === 'mirror');
  });

  test('has requests refused where it was the authority, also by instances that start later', async () => {
    await store.hset(key, { mode: 'native', epoch: 3, since: 1 });
    const instances = [await join(), await join(false)];
    await store.unlink(key);
    await until(async () => (await read()).isLost);
    instances.push(await join(), await join(false));
    for (const one of instances) {
      await until(() => refusesReads(one));
      await expect(one.admitChange()).rejects.toMatchObject({ code: 'store-unavailable' });
    }
    expect((await runTool(env(), 'cutover show')).out).toMatch(/^Mode: unknown/);
  });

  test('is in a mode again only once the operator has chosen one, and that is in force', async () => {
    await store.hset(key, { mode: 'native', epoch: 3, since: 1 });
    const one = await join();
    await store.unlink(key);
    await until(async () => (await read()).isLost);
    const begin = () => cutoverBegin(store, key, 'token', 'native', 'shadow', lease);
    expect(await begin()).toEqual(['begun', 4]);
    await acknowledged('stop');
    await cutoverWithdraw(store, key, 'token');
    expect(await read()).toMatchObject({ isStored: false, isLost: true });
    expect(await refusesReads(one)).toBe(true);
    expect(await begin()).toEqual(['begun', 5]);
    for (const phase of ['stop', 'reads']) await until(async () => (await advance(phase))[0] === 'ready');
    await until(() => admitAtOnceOrUndefined(one)?.mode === 'shadow');
  });
});

async function refusesReads(one: Cutover): Promise<boolean> {
  try {
    await one.readMode();
    return false;
  } catch (error) {
    expect(error).toMatchObject({ code: 'store-unavailable' });
    return true;
  }
}

const mustWait = (one: Cutover): boolean => admitAtOnceOrUndefined(one) === undefined;

function admitAtOnceOrUndefined(one: Cutover): Admission | undefined {
  const admission = one.admitChange();
  if (admission instanceof Promise) {
    admission.then(({ release }) => release()).catch(() => {});
    return undefined;
  }
  admission.release();
  return admission;
}

describe('a switch', () => {
  test('that its tool has abandoned is withdrawn, and changes go on in the old mode', async () => {
    const one = await join();
    await cutoverBegin(store, key, 'token', 'shadow', 'mirror', 1);
    await until(() => admitAtOnceOrUndefined(one)?.epoch === 1);
    expect(one.mode()).toBe('shadow');
    expect(await cutoverAdvance(store, key, 'token', 'stop', lease, 1, 'test')).toEqual(['lost']);
  });

  test('that is withdrawn after reads moved waits until they have moved back', async () => {
    const [one, other] = [await join(), await join()];
    await cutoverBegin(store, key, 'token', 'shadow', 'mirror', lease);
    await acknowledged('stop');
    await advance('stop');
    await acknowledged('reads');
    const waiting = one.admitChange();
    expect(await cutoverWithdraw(store, key, 'token')).toBe('waiting');
    await until(async () => (await read()).underWay === undefined);
    expect([one.mode(), other.mode()]).toEqual(['shadow', 'shadow']);
    expect(await waiting).toMatchObject({ mode: 'shadow', epoch: 1 });
  });

  test('is made although its last checks take longer than its lease', async () => {
    await join();
    const outcome = await switchMode(store, prefix, {
      from: 'shadow',
      to: 'mirror',
      holdMs: 10_000,
      by: 'test',
      signal: new AbortController().signal,
      onProgress: () => {},
      beingLoaded: () => Promise.resolve([]),
      obstacles: async () => {
        const { until: ends } = await store.hgetall(key);
        expect(Number(ends)).toBeGreaterThan(0);
        await until(async () => (await storeTime(store)) > Number(ends));
        return [];
      },
    });
    expect(outcome.kind).toBe('switched');
  });

  test('is on record with the command that made it, after the mode before', async () => {
    await join();
    await cutoverBegin(store, key, 'token', 'shadow', 'mirror', lease);
    for (const phase of ['stop', 'reads']) {
      await acknowledged(phase);
      await advance(phase);
    }
    expect((await read()).history).toMatchObject([
      { epoch: 0, mode: 'shadow', by: 'default' },
      { epoch: 1, mode: 'mirror', by: 'test' },
    ]);
  });

  test('that was made can no longer be withdrawn', async () => {
    await store.hset(key, 'mode', 'shadow');
    await cutoverBegin(store, key, 'token', 'shadow', 'mirror', lease);
    for (const phase of ['stop', 'reads']) expect(await advance(phase)).toEqual(['ready']);
    expect(await cutoverWithdraw(store, key, 'token')).toBe('done');
    expect(await cutoverWithdraw(store, key, 'other')).toBe('withdrawn');
    expect(await read()).toMatchObject({ mode: 'mirror' });
  });

  test('is refused while another one is under way', async () => {
    await join();
    await cutoverBegin(store, key, 'token', 'shadow', 'mirror', lease);
    expect(await cutoverBegin(store, key, 'other', 'shadow', 'native', lease)).toEqual(['busy', 'mirror']);
  });
});

describe('a registration', () => {
  test('that two tools remove leaves the gap of the first', async () => {
    const { registration } = newRegistration({ kind: 'bridge', legacy: true, replay: false });
    await cutoverHeartbeat(store, key, 'gone', JSON.stringify(registration), 0, 0, '-', 'none');
    for (const reason of ['the first', 'the second']) await cutoverRemove(store, key, 'gone', reason);
    expect((await read()).gap?.reason).toBe('the first');
  });

  test('of an instance that has stopped leaves nothing', async () => {
    const one = await joinTestInstance(store, prefix);
    await one.close();
    expect((await store.hkeys(key)).filter((field) => field.includes(one.id))).toEqual([]);
  });

  test('of a process that has certainly ended is removed by the next one, and leaves a gap', async () => {
    const { registration } = newRegistration({ kind: 'bridge', legacy: true, replay: false });
    const ended = JSON.stringify({ ...registration, started: '1' });
    await cutoverHeartbeat(store, key, 'gone', ended, 0, 0, '-', 'none');
    const elsewhere = JSON.stringify({ ...registration, namespace: 'another', started: '1' });
    await cutoverHeartbeat(store, key, 'elsewhere', elsewhere, 0, 0, '-', 'none');
    const { id } = await join();
    const { instances, gap } = await read();
    expect(instances.map((one) => one.id).sort()).toEqual(['elsewhere', id].sort());
    expect(gap?.reason).toBe('gone ended without stopping');
  });
});
