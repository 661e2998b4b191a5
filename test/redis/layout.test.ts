import { beforeEach, describe, expect, test } from '@jest/globals';
import { defaultSettings } from '../../src/domain/settings.ts';
import { organizationBase } from '../../src/redis/keys.ts';
import { layoutVersion, readLayout, upgradeLayout } from '../../src/redis/layout.ts';
import { saveSettings } from '../../src/redis/organizations.ts';
import { runTool } from '../support/tools/admin.ts';
import { startBridge } from '../support/bridge.ts';
import { createClient } from '../support/requests/client.ts';
import { environmentFor, freshPrefix, testRedisUrl } from '../support/redis.ts';
import { interceptCalls } from '../support/store.ts';
import { useTestStore } from '../support/use-store.ts';

const store = await useTestStore();
let prefix: string;
beforeEach(() => {
  prefix = freshPrefix();
});

const signal = new AbortController().signal;
const env = () => environmentFor(prefix);
const start = () => startBridge({ redisUrl: testRedisUrl(), keyPrefix: prefix });

/** What a version without layouts left of some organizations. */
async function storeOldData(organizations: number): Promise<string[]> {
  const bases: string[] = [];
  for (let n = 0; n < organizations; n++) {
    const base = organizationBase(prefix, `o${n}`);
    bases.push(base);
    await store.sadd(`${prefix}orgs`, `o${n}`);
    await store.hset(`${base}settings`, 'comparison', 'exact', 'frozen', '1');
    await store.sadd(`${base}here`, 'd\nroot', 'o\nhats\ntop');
  }
  return bases;
}

describe('the layout of the stored data', () => {
  test('is recorded once, with the first data', async () => {
    expect(await readLayout(store, prefix)).toEqual({ kind: 'empty' });
    await saveSettings(store, prefix, 'acme', defaultSettings);
    expect(await store.get(`${prefix}layout`)).toBe(String(layoutVersion));
    expect(await readLayout(store, prefix)).toEqual({ kind: 'current' });
  });

  test('that is older keeps the service and the tools from starting, and is upgraded', async () => {
    const [base = ''] = await storeOldData(3);
    await expect(start()).rejects.toThrow(
      /layout 1, this version .* needs 2: .* run profile-bridge admin upgrade/,
    );
    expect(await runTool(env(), 'org list')).toMatchObject({
      code: 1,
      err: expect.stringContaining('run profile-bridge admin upgrade'),
    });
    expect(await runTool(env(), 'upgrade')).toMatchObject({
      code: 0,
      out: 'Upgraded from layout 1 to 2: 3 organizations.\n',
    });
    expect(await runTool(env(), 'upgrade')).toMatchObject({
      code: 0,
      out: expect.stringContaining('already'),
    });
    expect((await store.smembers(`${base}local-writes`)).sort()).toEqual(['d\nroot', 'o\nhats\ntop']);
    expect(await store.exists(`${base}here`)).toBe(0);
    await (await start()).close();
  });

  test('is upgraded completely, whatever call the upgrade is killed at', async () => {
    for (let calls = 0; ; calls++) {
      prefix = freshPrefix();
      const bases = await storeOldData(2);
      let left = calls;
      const dying = interceptCalls(store, async (make) => {
        if (left-- <= 0) throw new Error('killed');
        return await make();
      });
      const outcome = await upgradeLayout(dying, prefix, { signal }).catch(() => undefined);
      if (outcome === undefined) expect((await readLayout(store, prefix)).kind).not.toBe('current');
      await upgradeLayout(store, prefix, { signal });
      expect(await readLayout(store, prefix)).toEqual({ kind: 'current' });
      for (const base of bases) expect(await store.scard(`${base}local-writes`)).toBe(2);
      if (outcome !== undefined) return;
    }
  });

  test('is not marked as being upgraded again by a second upgrade that was held up', async () => {
    await storeOldData(1);
    let isHeldUp = false;
    const slow = interceptCalls(store, async (make, command) => {
      if (['set', 'evalsha'].includes(command) && !isHeldUp) {
        isHeldUp = true;
        await upgradeLayout(store, prefix, { signal });
      }
      return await make();
    });
    expect(await upgradeLayout(slow, prefix, { signal })).toEqual({ kind: 'current' });
  });

  test('is recorded before the first organization, and so is never taken for an older one', async () => {
    const meanwhile = interceptCalls(store, async (make, command) => {
      if (command === 'scard') await saveSettings(store, prefix, 'acme', defaultSettings);
      return await make();
    });
    expect(await readLayout(meanwhile, prefix)).toEqual({ kind: 'current' });
  });

  test.each(['banana', '', '2->', '-1'])(
    'that no version has written, %j, is refused as it is',
    async (text) => {
      await store.set(`${prefix}layout`, text);
      const refused = `layout ${JSON.stringify(text)}, which this version of Profile Bridge does not know: `;
      await expect(start()).rejects.toThrow(refused);
      expect(await runTool(env(), 'upgrade')).toMatchObject({
        code: 1,
        err: expect.stringContaining(refused),
      });
      expect(await store.get(`${prefix}layout`)).toBe(text);
    },
  );

  test.each(['layout', 'orgs'])(
    'cannot be read from a key %s of the wrong type, which is named',
    async (key) => {
      await store.hset(`${prefix}${key}`, 'f', 'v');
      for (const command of ['fsck', 'upgrade']) {
        const line = new RegExp(`^error: .*remove the key ${prefix}${key}, which has the wrong type.*\n$`);
        expect(await runTool(env(), command)).toMatchObject({ code: 1, err: expect.stringMatching(line) });
      }
    },
  );

  test('that is newer, or being upgraded, is refused at start, and by a service that is running', async () => {
    const bridge = await start();
    try {
      const client = createClient(bridge.url);
      expect((await client.request('GET', '/readyz')).status).toBe(200);
      await store.set(`${prefix}layout`, `${layoutVersion}->${layoutVersion + 1}`);
      await expect(start()).rejects.toThrow(/newer than this version .*: start the newer version/);
      while ((await client.request('GET', '/readyz')).status === 200);
    } finally {
      await bridge.close();
    }
  });
});
