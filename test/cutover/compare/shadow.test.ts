import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { readComparisons, type ComparisonSummary } from '../../../src/cutover/compare/summary.ts';
import { putProfile } from '../../../src/redis/profiles.ts';
import { readWriteSnapshot } from '../../../src/redis/changes.ts';
import { apiKeyKey, hashApiKey } from '../../../src/redis/keys.ts';
import { startLegacyBridge, type LegacyBridge } from '../../support/legacy/bridge.ts';
import { until } from '../../support/until.ts';

let here: LegacyBridge;
beforeAll(async () => {
  here = await startLegacyBridge();
});
afterAll(() => here.close());

let user = 0;
let player: string;
let userId: string;
beforeEach(async () => {
  userId = `user-${++user}`;
  player = await here.player(userId);
});

/** What is on record, once `holds` is true of it. */
async function summaryOnce(holds: (summary: ComparisonSummary) => boolean): Promise<ComparisonSummary> {
  const { store, config } = here.bridge;
  return await until(async () =>
    (await readComparisons(store, config.keyPrefix)).find(
      (summary) => summary.organizationId === here.organization.id && holds(summary),
    ),
  );
}

async function storeHere(username: string): Promise<void> {
  const { store } = here.bridge;
  const { base } = here.organization;
  await putProfile(store, base, userId, { username }, await readWriteSnapshot(store, base, userId));
}

const storeThere = (username: string): void =>
  here.legacy.organization(here.organization.id).save(userId, { username });

const get = async (apiKey = player) => {
  const response = await here.send(apiKey, 'GET', '/api/profile/', { headers: { 'user-agent': 'game/7' } });
  await response.text();
};

describe('in shadow mode', () => {
  test('a user differs until a later comparison finds no difference', async () => {
    storeThere('Ada');
    await storeHere('Eve');
    await get();
    const { examples, fields } = await summaryOnce(({ differingUsers }) => differingUsers === 1);
    expect(examples).toEqual([{ userId, fields: ['username'], at: expect.any(Number) }]);
    expect(fields.username).toBeGreaterThanOrEqual(1);
    storeThere('Eve');
    await get();
    await summaryOnce(({ differingUsers }) => differingUsers === 0);
  });

  test('records hold neither a name nor a key', async () => {
    storeThere('Secret-there');
    await storeHere('Secret-here');
    await get();
    await summaryOnce(({ differingUsers }) => differingUsers === 1);
    const { store } = here.bridge;
    const keys = await store.keys(`${here.organization.base.replace(/[[\]*?\\]/g, '\\$&')}cutover:*`);
    const held = await Promise.all(keys.map((key) => store.hgetall(key)));
    expect(JSON.stringify([keys, held])).not.toMatch(new RegExp(`Secret|${player}`));
    storeThere('Secret-here');
    await get();
    await summaryOnce(({ differingUsers }) => differingUsers === 0);
  });

  test('compressed responses are compared', async () => {
    storeThere('Zip');
    await storeHere('Other');
    await get();
    await summaryOnce(({ differingUsers }) => differingUsers === 1);
    storeThere('Other');
    here.legacy.behaviour.gzip = true;
    await get();
    here.legacy.behaviour.gzip = false;
    await summaryOnce(({ differingUsers }) => differingUsers === 0);
  });

  test('bodies that are not a profile are counted apart', async () => {
    here.legacy.behaviour.override = {
      headers: { 'content-type': 'text/html' },
      chunks: [Buffer.from('<p>maintenance</p>')],
    };
    await get();
    here.legacy.behaviour.override = undefined;
    await summaryOnce(({ unreadable }) => unreadable === 1);
  });

  test('a key that only the legacy service accepts is on record until it has been imported', async () => {
    here.legacy.addKey('unknown-here', { organization: here.organization.id, role: 'player', user: userId });
    await get('unknown-here');
    const { unmappedKeys } = await summaryOnce((summary) => summary.unmappedKeys.length === 1);
    expect(unmappedKeys).toEqual([
      {
        fingerprint: expect.stringMatching(/^[0-9a-f]{12}$/),
        userAgent: 'game/7',
        lastSeen: expect.any(Number),
      },
    ]);
  });

  test('a key that is bound to no user here, or has expired, is on record unless it is revoked here', async () => {
    const { organization, legacy } = here;
    const { base } = organization;
    const nobodys = await organization.newKey({ role: 'player' });
    const old = await organization.newKey({ role: 'player', userId });
    const revoked = await organization.newKey({ role: 'player', userId });
    for (const { apiKey } of [nobodys, old, revoked])
      legacy.addKey(apiKey, { organization: organization.id, role: 'player', user: userId });
    const { store } = here.bridge;
    await store.hset(apiKeyKey(base, hashApiKey(old.apiKey)), 'e', Date.now() - 1);
    await store.hset(apiKeyKey(base, hashApiKey(revoked.apiKey)), 'x', Date.now());
    const headers = { 'content-type': 'application/json' };
    await here.send(nobodys.apiKey, 'PUT', '/api/profile/', { body: '{}', headers });
    for (const { apiKey } of [revoked, old]) await get(apiKey);
    const { unusableKeys, unmappedKeys } = await summaryOnce((summary) => summary.unusableKeys.length === 2);
    expect(unusableKeys).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ keyId: nobodys.keyId, reason: 'no-user' }),
        expect.objectContaining({ keyId: old.keyId, reason: 'expired', userAgent: 'game/7' }),
      ]),
    );
    expect(unmappedKeys.map(({ fingerprint }) => fingerprint)).not.toContain(
      hashApiKey(old.apiKey).slice(0, 12),
    );
  });

  test('an admin key of no user here stays on record as such after it has changed the denylist', async () => {
    const { organization, legacy } = here;
    const { apiKey, keyId } = await organization.newKey({ role: 'admin' });
    legacy.addKey(apiKey, { organization: organization.id, role: 'admin', user: userId });
    storeThere('Ada');
    const isListed = ({ unusableKeys }: ComparisonSummary) => unusableKeys.some((key) => key.keyId === keyId);
    await get(apiKey);
    await summaryOnce(isListed);
    const headers = { 'content-type': 'application/json' };
    const path = '/api/profile/username/deny/';
    const { status } = await here.send(apiKey, 'DELETE', path, { body: '["nobody"]', headers });
    expect(status).toBe(200);
    // What is found later is saved later.
    const { apiKey: other, keyId: otherId } = await organization.newKey({ role: 'player' });
    legacy.addKey(other, { organization: organization.id, role: 'player', user: userId });
    await get(other);
    const later = await summaryOnce(({ unusableKeys }) => unusableKeys.some((key) => key.keyId === otherId));
    expect(isListed(later)).toBe(true);
  });

  test('a key that only Redis accepts is on record until the legacy service accepts it', async () => {
    const { apiKey, keyId } = await here.organization.newKey({ role: 'player', userId });
    await get(apiKey);
    const { refusedKeys: refused } = await summaryOnce(({ refusedKeys }) => refusedKeys.length === 1);
    expect(refused).toMatchObject([{ keyId, userAgent: 'game/7' }]);
    here.legacy.addKey(apiKey, { organization: here.organization.id, role: 'player', user: userId });
    await get(apiKey);
    await summaryOnce(({ refusedKeys }) => refusedKeys.length === 0);
  });

  test('a change that may still take effect once the mode is mirror is a gap until it no longer can', async () => {
    here.legacy.behaviour.reset = 'before';
    const headers = { 'content-type': 'application/json' };
    const { status } = await here.send(player, 'PUT', '/api/profile/', { body: '{}', headers });
    here.legacy.behaviour.reset = undefined;
    expect(status).toBe(502);
    const { gaps } = await summaryOnce((summary) => summary.gaps.length === 1);
    const [{ reason, first, last }] = gaps as [ComparisonSummary['gaps'][number]];
    expect({ reason, for: last - first >= 2 * here.bridge.config.legacyTimeout }).toEqual({
      reason: 'unmarked-change',
      for: true,
    });
  });

  test('an upload that may still take effect in mirror is on record as one: a copy of that picture may be older', async () => {
    here.legacy.behaviour.reset = 'before';
    const body = new FormData();
    body.append('profilePicture', new Blob(['new'], { type: 'image/png' }), 'new.png');
    const { status } = await here.send(player, 'PUT', '/api/profile/', { body });
    here.legacy.behaviour.reset = undefined;
    expect(status).toBe(502);
    const reasons = ({ gaps }: ComparisonSummary) => gaps.map(({ reason }) => reason);
    await summaryOnce((summary) => reasons(summary).includes('unmarked-upload'));
  });
});
