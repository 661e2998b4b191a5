import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { joinCutover, type Cutover } from '../../../../src/cutover/switch/instance.ts';
import {
  newRegistration,
  readCutover,
  cutoverHeartbeat,
  cutoverRemove,
} from '../../../../src/cutover/switch/registry.ts';
import { defaultSettings } from '../../../../src/domain/settings.ts';
import { replicationIdsOf } from '../../../../src/redis/connection/client.ts';
import { closeRedis } from '../../../../src/redis/connection/connect.ts';
import {
  cutoverKey,
  forwardedOrganizationsKey,
  organizationBase,
  organizationsKey,
  replayAsideKey,
  replayKey,
} from '../../../../src/redis/keys.ts';
import { saveSettings } from '../../../../src/redis/organizations.ts';
import { admitAtOnce, joinTestInstance } from '../../../support/legacy/instances.ts';
import { until } from '../../../support/until.ts';
import { runTool } from '../../../support/tools/admin.ts';
import { environmentFor, freshPrefix, startRedis } from '../../../support/redis.ts';
import { openTestStore } from '../../../support/store.ts';
import { useTestStore } from '../../../support/use-store.ts';

const store = await useTestStore();
let prefix: string;
let joined: Cutover[];
beforeEach(() => {
  prefix = freshPrefix();
  joined = [];
});
afterEach(async () => {
  for (const one of joined) await one.close();
});

const env = () => ({ ...environmentFor(prefix), LEGACY_BASE_URL: 'http://127.0.0.1:9' });
const run = (command: string) => runTool(env(), `cutover ${command}`);
/** A switch that is not withdrawn because the machine is slow. */
const set = (mode: string) => run(`set ${mode} --hold 60`);
const join = async (replay = false) => {
  const one = await joinTestInstance(store, prefix, true, replay);
  joined.push(one);
  return one;
};

/** The registration of a process that cannot be seen from here, and was last heard of `ago` ms ago. */
async function registerElsewhere(id: string, ago = 0, to = store, replay = false): Promise<void> {
  const { registration } = newRegistration({ kind: 'bridge', legacy: true, replay });
  const elsewhere = JSON.stringify({ ...registration, namespace: 'elsewhere' });
  await cutoverHeartbeat(to, `${prefix}cutover`, id, elsewhere, 0, 0, '-', 'none');
  const { now } = await readCutover(to, prefix);
  await to.hset(`${prefix}cutover`, `beat:${id}`, `${now - ago} 0 -`);
}

/** As if the mode were reverse, and the legacy service had refused a change. */
async function setAsideOne(): Promise<void> {
  await saveSettings(store, prefix, 'acme', defaultSettings);
  await store.hset(cutoverKey(prefix), { mode: 'reverse', since: Date.now(), by: 'test' });
  await store.hset(replayAsideKey(organizationBase(prefix, 'acme')), '1-0', '{}');
}

/** As if a change waited to be replayed; its key. */
async function queueOne(): Promise<string> {
  await saveSettings(store, prefix, 'acme', defaultSettings);
  const entry = { key: 'k', role: 'player', user: 'u', sealed: 's', kind: 'put', change: '{}', retry: '' };
  const waiting = replayKey(organizationBase(prefix, 'acme'));
  await store.xadd(waiting, '*', ...Object.entries(entry).flat());
  return waiting;
}

describe('cutover set', () => {
  test('switches every instance, raises the epoch everywhere and leaves an audit entry', async () => {
    const [one, other] = [await join(), await join()];
    await saveSettings(store, prefix, 'acme', defaultSettings);
    expect(await set('mirror')).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^The mode is mirror. Changes were on hold for \d\.\d s.\n$/),
      err: expect.stringContaining('epoch 1 is in force in 1 organization\n'),
    });
    await until(() => one.mode() === 'mirror' && other.mode() === 'mirror');
    expect(await one.admitChange()).toMatchObject({ mode: 'mirror', epoch: 1 });
    const base = organizationBase(prefix, 'acme');
    expect(await store.hget(`${base}settings`, 'epoch')).toBe('1');
    const audit = await runTool(env(), 'audit --org acme');
    expect(audit.out).toMatch(/cutover .*shadow.*mirror/);
    expect((await run('show')).out).toMatch(/^Mode: mirror\nSince: .*, set by: cutover set mirror\n$/);
  });

  test('has nothing to do if the mode already holds', async () => {
    await join();
    await set('mirror');
    for (const command of ['set mirror', 'set mirror --dry-run']) {
      expect(await run(command)).toMatchObject({ code: 0, out: 'The mode is mirror already.\n' });
    }
    expect(await readCutover(store, prefix)).toMatchObject({ mode: 'mirror', epoch: 1 });
  });

  test('sets the stored mode again once Redis has lost a switch, and changes are admitted', async () => {
    const one = await join();
    await set('mirror');
    await until(() => one.mode() === 'mirror');
    await store.hset(cutoverKey(prefix), 'epoch', '0');
    await until(() => one.hasLostSwitch());
    expect((await run('status')).out).toContain('Redis has lost the last switch');
    expect(await set('mirror')).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^The mode is mirror\./),
    });
    await until(() => !one.hasLostSwitch());
    expect(await one.admitChange()).toMatchObject({ mode: 'mirror', epoch: 2 });
  });

  test('discards what waits in a Redis that has lost the switch from reverse only with --force, and not before the switch is made', async () => {
    const one = await join(true);
    await set('reverse --force');
    expect(await readCutover(store, prefix)).toMatchObject({ switchedOn: await replicationIdsOf(store) });
    const waiting = await queueOne();
    const epoch = Number(await store.hget(cutoverKey(prefix), 'epoch'));
    await store.hset(cutoverKey(prefix), 'epoch', epoch - 1);
    await until(() => one.hasLostSwitch());
    expect(await set('mirror')).toMatchObject({
      code: 1,
      err: expect.stringMatching(
        /1 change still waits to be replayed.*may have newer values: --force discards/,
      ),
    });
    // An instance that acknowledges nothing, and is not silent yet.
    await registerElsewhere('web-9', -600_000, store, true);
    expect(await run('set mirror --force --hold 1')).toMatchObject({
      code: 1,
      err: expect.stringContaining('withdrawn, the mode is reverse as before'),
    });
    await until(async () => (await one.readMode()) === 'reverse' && one.hasLostSwitch());
    expect(await store.xlen(waiting)).toBe(1);
    await cutoverRemove(store, cutoverKey(prefix), 'web-9', '');
    expect(await set('mirror --force')).toMatchObject({
      code: 0,
      err: expect.stringContaining('changes that had not reached the legacy service were discarded: 1 put'),
    });
    expect(await store.exists(waiting)).toBe(0);
  });

  test('discards what waits in a Redis that has lost the switch to reverse only with --force', async () => {
    await join(true);
    const waiting = await queueOne();
    await store.hset(cutoverKey(prefix), { mode: 'mirror', epoch: 1, lost: 2 });
    expect(await set('mirror')).toMatchObject({
      code: 1,
      err: expect.stringContaining('--force discards them; to replay them, set reverse'),
    });
    expect(await store.xlen(waiting)).toBe(1);
    expect(await set('mirror --force')).toMatchObject({
      code: 0,
      err: expect.stringContaining('changes that had not reached the legacy service were discarded: 1 put'),
    });
    expect(await store.exists(waiting)).toBe(0);
  });

  test('keeps what waits in a Redis that has lost the switch to reverse, and replays it only with --force', async () => {
    await join(true);
    const waiting = await queueOne();
    await store.hset(cutoverKey(prefix), { mode: 'mirror', epoch: 1, lost: 2 });
    expect(await set('reverse')).toMatchObject({
      code: 1,
      err: expect.stringContaining(
        'may have newer values: --force replays them; to discard them, set mirror',
      ),
    });
    expect(await set('reverse --force')).toMatchObject({ code: 0 });
    expect(await store.xlen(waiting)).toBe(1);
  });

  test('refuses what is unsafe with the reason, and switches with --force', async () => {
    await join();
    const refused = await run('set native');
    expect(refused).toMatchObject({
      code: 1,
      err: expect.stringMatching(/^error: not switched from shadow to native: .*skips mirror.*--force/),
    });
    // Each reason is printed once.
    expect(refused.out).not.toContain('skips mirror');
    expect(await readCutover(store, prefix)).toMatchObject({ mode: 'shadow', epoch: 0 });
    expect(await set('native --force')).toMatchObject({ code: 0 });
    expect(await readCutover(store, prefix)).toMatchObject({ mode: 'native', epoch: 1 });
    expect(await run('set mirror --force')).toMatchObject({
      code: 1,
      err: expect.stringContaining('the only way back from native is to shadow'),
    });
    expect(await run('set shadow')).toMatchObject({ code: 1 });
    expect(await set('shadow --force')).toMatchObject({ code: 0 });
  });

  test('prints what will be lost with the last step, with the remedy', async () => {
    await join();
    await setAsideOne();
    expect(await set('native')).toMatchObject({
      code: 0,
      err: expect.stringContaining(
        'warning: 1 change that the legacy service refused will never reach it: see profile-bridge admin cutover aside list\n',
      ),
    });
  });

  test('is refused while the registry lacks an organization, even with --force: what is set aside there would be undone', async () => {
    await join();
    await setAsideOne();
    await store.sadd(forwardedOrganizationsKey(prefix), 'acme', 'made up');
    await store.srem(organizationsKey(prefix), 'acme');
    const reason =
      'the registry of organizations has lost 1 organization (acme), as in a failover: run profile-bridge admin fsck --repair';
    for (const command of ['set mirror', 'set mirror --force']) {
      const err = `error: not switched from reverse to mirror: ${reason}`;
      expect(await run(command)).toMatchObject({ code: 1, err: expect.stringContaining(err) });
    }
    expect((await run('status')).out).toContain(`Next: native; ready: no\n  - ${reason}\n`);
    expect(await runTool(env(), 'fsck --repair')).toMatchObject({ code: 0 });
    expect(await run('set mirror')).toMatchObject({
      code: 1,
      err: expect.stringContaining('1 change that the legacy service refused would be undone here'),
    });
  });

  test('lists with --json what will be lost with the last step', async () => {
    await join();
    await setAsideOne();
    expect(JSON.parse((await set('native --json')).out)).toMatchObject({
      switched: true,
      warnings: [
        {
          code: 'set-aside',
          reason: expect.stringContaining('1 change'),
          remedy: expect.stringContaining('aside list'),
        },
      ],
    });
  });

  test('prints what --force passes over, with the remedy', async () => {
    await join();
    expect((await set('native --force')).err).toContain(
      'warning: a step from shadow to native skips mirror\n' +
        'warning: not everything has been verified since the mode became shadow: run profile-bridge migrate apply, then ',
    );
  });

  test('refuses reverse while an instance cannot replay changes, even with --force', async () => {
    const { id } = await join();
    expect(await run('set reverse --force')).toMatchObject({
      code: 1,
      err: expect.stringContaining(`instance ${id} cannot store credentials for the replay`),
    });
  });

  test('is interrupted while it waits until the step is safe', async () => {
    await join();
    await set('mirror');
    const interrupt = AbortSignal.timeout(500);
    expect(await runTool(env(), 'cutover set reverse --wait 60', interrupt)).toEqual({
      code: 130,
      out: '',
      err: 'error: interrupted: the mode is mirror as before\n',
    });
  });

  test('is wrong usage with an unknown mode, or without the legacy service', async () => {
    expect(await run('set sideways')).toMatchObject({ code: 2 });
    const bare = { ...env(), LEGACY_BASE_URL: '' };
    expect(await runTool(bare, 'cutover set mirror')).toMatchObject({
      code: 2,
      err: expect.stringContaining('set LEGACY_BASE_URL'),
    });
  });

  test('says how the first mode comes about', async () => {
    expect(await run('set shadow')).toMatchObject({
      code: 1,
      err: expect.stringContaining(
        'no mode was ever set: start the bridge with LEGACY_BASE_URL, and the mode is',
      ),
    });
  });

  test('changes nothing with --dry-run', async () => {
    const { id } = await join();
    const { code, out } = await run('set mirror --dry-run');
    expect(code).toBe(0);
    expect(out).toContain('Step: shadow -> mirror\nReady: yes\n');
    expect(out).toContain(id);
    expect(await readCutover(store, prefix)).toMatchObject({ mode: 'shadow', epoch: 0 });
  });

  test('exits with 1 with --dry-run if the step would be refused', async () => {
    await join();
    const refused = await run('set native --dry-run');
    expect(refused).toMatchObject({ code: 1, err: expect.stringContaining('not ready for native') });
    expect(refused.out).toContain('Step: shadow -> native\nReady: no\n');
    const forced = await run('set native --dry-run --force');
    expect(forced).toMatchObject({ code: 0, err: '' });
    expect(forced.out).toContain('\nReady: no, but the switch would be made anyway\n');
  });

  test('is withdrawn if the outcome of the last change before it is in doubt', async () => {
    const options = { keyPrefix: prefix, kind: 'bridge', legacy: true, replay: true } as const;
    const one = await joinCutover(store, options);
    joined.push(one);
    await set('mirror');
    await until(() => one.mode() === 'mirror');
    const key = `${prefix}cutover`;
    await store.hset(key, 'verified', (await readCutover(store, prefix)).since + 1);
    const admission = await one.admitChange();
    const switching = set('reverse');
    await until(async () => (await readCutover(store, prefix)).underWay !== undefined);
    await store.hset(key, 'gap', `${(await readCutover(store, prefix)).now} web-9 ended without stopping`);
    admission.release();
    expect(await switching).toMatchObject({
      code: 1,
      err: expect.stringContaining(
        'withdrawn, the mode is mirror as before: since the last verify, an instance may have left',
      ),
    });
    await until(() => one.mode() === 'mirror');
  });

  test('holds changes for a second at least, since instances need some time to respond', async () => {
    expect(await run('set mirror --hold 0')).toMatchObject({
      code: 2,
      err: expect.stringContaining('It must be a whole number from 1 to 300.'),
    });
    expect((await readCutover(store, prefix)).epoch).toBe(0);
  });

  test('is withdrawn if a change does not end in time, and names the instance', async () => {
    const [one, other] = [await join(), await join()];
    const admission = admitAtOnce(one);
    const { code, err } = await run('set mirror --hold 1');
    expect(code).toBe(1);
    const who = `${one.id} within 1 s: check why, or allow more time with --hold`;
    expect(err).toMatch(new RegExp(`withdrawn, the mode is shadow as before: .*${who}`));
    admission.release();
    const { mode, underWay, epoch } = await readCutover(store, prefix);
    expect({ mode, underWay, epoch }).toEqual({ mode: 'shadow', underWay: undefined, epoch: 1 });
    (await other.admitChange()).release();
    expect(await set('mirror')).toMatchObject({ code: 0 });
  });

  test('says that the outcome is unknown if Redis is lost meanwhile', async () => {
    const redis = await startRedis();
    const own = await openTestStore(redis.url);
    await registerElsewhere('web-9', 0, own);
    const command = 'cutover set mirror --hold 60';
    const running = runTool({ ...env(), REDIS_URL: redis.url, LOG_LEVEL: 'error' }, command);
    await until(async () => (await readCutover(own, prefix)).underWay);
    await redis.stop();
    await closeRedis(own);
    expect(await running).toMatchObject({
      code: 1,
      err: expect.stringContaining('the mode may be shadow or mirror: once Redis is back, see'),
    });
  });

  test('says why Redis refused it, and that the outcome is unknown', async () => {
    const redis = await startRedis();
    try {
      const own = await openTestStore(redis.url);
      await saveSettings(own, prefix, 'acme', defaultSettings);
      await own.hset(cutoverKey(prefix), { mode: 'shadow', epoch: 1, since: Date.now(), by: 'test' });
      await own.call('CONFIG', 'SET', 'min-replicas-to-write', '1');
      await closeRedis(own);
      const { code, err } = await runTool(
        { ...env(), REDIS_URL: redis.url },
        'cutover set mirror --force --hold 60',
      );
      expect({ code, err }).toEqual({
        code: 1,
        err: expect.stringMatching(
          /^error: Redis has too few replicas \(NOREPLICAS .*\) during .* the mode may be shadow or mirror: start them, .* cutover show, then run this again\n$/m,
        ),
      });
    } finally {
      await redis.stop();
    }
  });

  test('is refused while an instance is silent, until --assume-stopped names it', async () => {
    await join();
    await registerElsewhere('web-9', 60_000);
    expect(await run('set mirror --force')).toMatchObject({
      code: 1,
      err: expect.stringMatching(/instance web-9 has not been heard from for \d+ s/),
    });
    expect(await run('set mirror --assume-stopped web-9 --assume-stopped web-8')).toMatchObject({
      code: 1,
      err: expect.stringContaining('there is no instance web-8: see profile-bridge admin cutover status'),
    });
    expect((await readCutover(store, prefix)).instances).toHaveLength(2);
    expect(await set('mirror --assume-stopped web-9')).toMatchObject({ code: 0 });
    expect((await readCutover(store, prefix)).gap?.reason).toBe('web-9 was assumed to have stopped');
  });

  test('judges with --dry-run as if the instance that --assume-stopped names were gone', async () => {
    await join();
    await registerElsewhere('web-9', 60_000);
    const { code, out } = await run('set mirror --dry-run --assume-stopped web-9');
    expect({ code, ready: out.includes('Ready: yes') }).toEqual({ code: 0, ready: true });
    expect(out).not.toContain('web-9');
    expect((await readCutover(store, prefix)).instances).toHaveLength(2);
  });

  test('refuses --assume-stopped for an instance that responds', async () => {
    await registerElsewhere('web-9');
    expect(await run('set mirror --assume-stopped web-9')).toMatchObject({
      code: 1,
      err: expect.stringContaining('web-9 responded a moment ago'),
    });
  });
});

describe('cutover status', () => {
  test('says how to go on once Redis has lost the switch from native', async () => {
    await store.hset(cutoverKey(prefix), { mode: 'native', epoch: 2, since: 1, by: 'test', lost: 3 });
    expect((await run('status')).out).toMatch(
      /\nNext: native; ready: yes\n  - warning: Redis has lost the last switch.* choose the mode again/,
    );
    expect(await set('native')).toMatchObject({ code: 0 });
    expect((await run('status')).out).not.toContain('lost');
  });

  test('says what prevents the next step, with exit code 1', async () => {
    await join();
    await registerElsewhere('web-9', 60_000);
    const { code, out } = await run('status');
    expect(code).toBe(1);
    expect(out).toMatch(/^Mode: shadow\nSince: .*\nInstances: 2\n/);
    expect(out).toContain('Next: mirror; ready: no');
    expect(out).toContain('add --assume-stopped web-9');
  });

  test('says that the next step is safe, as text and as JSON', async () => {
    await join();
    expect(await run('status')).toMatchObject({ code: 0, out: expect.stringContaining('ready: yes') });
    const { out } = await run('status --json');
    expect(JSON.parse(out)).toMatchObject({
      mode: 'shadow',
      number: 0,
      instances: [{ kind: 'bridge', legacy: true }],
      history: [{ mode: 'shadow', by: 'default' }],
      next: { to: 'mirror', ready: true, warnings: [{ code: 'few-comparisons' }] },
    });
  });
});
