import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { startBridgeProcess } from '../../support/processes.ts';
import { startBridge, type TestBridge } from '../../support/bridge.ts';
import { createClient, type Client } from '../../support/requests/client.ts';
import { until } from '../../support/until.ts';
import { script } from '../../../src/redis/connection/script-loader.ts';
import { environmentFor } from '../../support/redis.ts';

const reindexOpen = script<(string | number)[], unknown[]>('reindex/open');

const deny = '/api/profile/username/deny/';
const denylist = '/api/profile/username/denylist/';

let bridge: TestBridge;
beforeAll(async () => {
  bridge = await startBridge();
});
afterAll(async () => {
  await bridge.close();
});

const numbered = (word: string, count: number): string[] =>
  Array.from({ length: count }, (_, n) => `${word}-${n}`);

/** Aborted once this has come to its end. */
function signalOf(ending: Promise<unknown>): AbortSignal {
  const controller = new AbortController();
  const abort = (): void => controller.abort();
  ending.then(abort, abort);
  return controller.signal;
}

/** The outcome of a claim, and when it was in progress. */
interface Claim {
  name: string;
  status: number;
  from: number;
  to: number;
}

async function claim(player: Client, name: string): Promise<Claim> {
  const from = performance.now();
  const { status } = await player.request('PUT', '/api/profile/', { json: { username: name } });
  return { name, status, from, to: performance.now() };
}

describe('200,000 names in one overwrite', () => {
  test('take effect at one instant for every client, and none of them can be claimed while they arrive', async () => {
    const { base, admin, player } = await bridge.newOrganization();
    const operator = await admin();
    await operator.request('PUT', denylist, { json: numbered('old', 1000) });
    const changing = operator.request('PUT', denylist, { json: numbered('new', 200_000) });
    const over = signalOf(changing);
    await until(() => bridge.store.hexists(`${base}stage`, 'new-500'));

    const claims: Claim[] = [];
    const keepClaiming = async (user: string, word: string, first: number): Promise<void> => {
      const own = await player(user);
      for (let n = first; !over.aborted && n < first + 500; n++)
        claims.push(await claim(own, `${word}-${n}`));
    };
    await Promise.all([
      keepClaiming('u1', 'old', 0),
      keepClaiming('u2', 'old', 500),
      keepClaiming('u3', 'new', 0),
      keepClaiming('u4', 'new', 100),
    ]);
    expect((await changing).status).toBe(204);
    claims.push(await claim(await player('u5'), 'old-999'), await claim(await player('u6'), 'new-199999'));

    // A denied name is 422; 503 means that it is not yet known whether this one will be denied.
    const seen = (word: string, status: number) =>
      claims.filter((one) => one.name.startsWith(word) && one.status === status);
    expect(seen('new', 200)).toEqual([]);
    expect(seen('old', 503)).toEqual([]);
    expect(seen('old', 422).length).toBeGreaterThan(0);
    // A client that has seen anything of the new list never sees anything of the old one again.
    const swapped = Math.min(...[...seen('new', 422), ...seen('old', 200)].map(({ to }) => to));
    expect(seen('old', 422).filter(({ from }) => from > swapped)).toEqual([]);
    expect(swapped).toBeLessThan(Infinity);
  });

  test('leave the old list in force if the process is killed half-way, and can soon be claimed again', async () => {
    const { id, base, newKey, player } = await bridge.newOrganization();
    const { apiKey } = await newKey({ role: 'admin' });
    const victim = await startBridgeProcess(environmentFor(bridge.config.keyPrefix));
    const operator = createClient(victim.url, { organization: id, apiKey });
    await operator.request('PUT', denylist, { json: ['old'] });
    const sent = operator.request('PUT', denylist, { json: numbered('new', 200_000) }).then(
      ({ status }) => status,
      () => 'cut',
    );
    await until(async () => (await bridge.store.hlen(`${base}stage`)) >= 20_000);
    await victim.stop();

    expect(await sent).toBe('cut');
    expect(await bridge.store.hkeys(`${base}d0`)).toEqual(['old']);
    expect((await claim(await player('u1'), 'old')).status).toBe(422);
    const other = await player('u2');
    let last = await claim(other, 'new-0');
    while (last.status === 503) last = await claim(other, 'new-0');
    expect(last.status).toBe(200);
  });
});

describe('a long list', () => {
  const count = 50_000;

  test('of bans holds up no other request while it is checked and while it takes effect', async () => {
    const { base, admin, player } = await bridge.newOrganization();
    const reader = await player('u1');
    await reader.request('PUT', '/api/profile/', { json: { username: 'ada' } });
    const json = Object.fromEntries(numbered('rude', count).map((name, n) => [name, `better-${n}`]));
    const operator = await admin();
    const banning = operator.request('POST', deny, { json });
    const over = signalOf(banning);
    let before = 0;
    let meanwhile = 0;
    while (!over.aborted) {
      expect((await reader.request('GET', '/api/profile/')).status).toBe(200);
      if ((await bridge.store.hlen(`${base}d0`)) === 0) before++;
      else meanwhile++;
    }
    expect((await banning).status).toBe(204);
    expect(await bridge.store.hlen(`${base}d0`)).toBe(count);
    expect(before).toBeGreaterThan(5);
    expect(meanwhile).toBeGreaterThan(20);
  });

  test('gets the same response as a short one: every name once, in order', async () => {
    const { admin, player } = await bridge.newOrganization();
    const operator = await admin();
    const names = numbered('name', count);
    await operator.request('PUT', denylist, { json: names });
    await (await player('u1')).request('PUT', '/api/profile/', { json: { username: 'mine' } });
    const json = [...names, 'mine', ...names.slice(0, 1000), 'nobody', 'mine'];
    const { status, body } = await operator.request('DELETE', deny, { json });
    expect(status).toBe(200);
    expect(body).toEqual({ usernamesDeleted: names, usernamesInUse: ['mine'] });
  });

  test.each([
    ['POST', /A part of this one may have taken effect; sending the same request again is safe/],
    ['DELETE', /A part of this one may have taken effect; sending the same request again is safe/],
    ['PUT', /This one changed nothing; sending the same request again is safe/],
  ])('that has to wait for too long says what became of it (%s)', async (method, detail) => {
    const { base, admin } = await bridge.newOrganization();
    const operator = await admin();
    const names = numbered('rude', count);
    await bridge.store.hset(`${base}d0`, Object.fromEntries(names.map((name) => [name, ''])));
    const [path, json] = {
      POST: [deny, Object.fromEntries(names.map((name) => [`${name}!`, 'x']))] as const,
      DELETE: [deny, names] as const,
      PUT: [denylist, names] as const,
    }[method] ?? [deny, {}];
    const answer = operator.request(method, path, { json });
    const hasBegun = async () =>
      (await bridge.store.hlen(`${base}d0`)) !== names.length ||
      (await bridge.store.exists(`${base}stage`)) > 0;
    const openRebuild = () => reindexOpen(bridge.store, base, 'rebuild', 60_000, 'case-insensitive');
    await until(async () => (await hasBegun()) && (await openRebuild()).includes('opened'));
    const { status, body } = await answer;
    expect([status, body]).toMatchObject([
      503,
      { code: 'overloaded', detail: expect.stringMatching(detail) },
    ]);
  });

  test('of bans is checked as a whole, and lists each name that could not be added', async () => {
    const { base, admin, player } = await bridge.newOrganization();
    for (const user of [0, 1, 2]) {
      await (
        await player(`u${user}`)
      ).request('PUT', '/api/profile/', { json: { username: `mine-${user}` } });
    }
    const spare = numbered('rude', count).map((name) => `"${name}":"x"`);
    // Both replacements are denied by later properties.
    const asked = [
      '"mine-0":"last"',
      '"mine-1":"mine-2"',
      ...spare,
      '"last":"y"',
      '"mine-2":"z"',
      '"last":"y"',
    ];
    const { status, body } = await (await admin()).request('POST', deny, { body: `{${asked.join(',')}}` });
    expect([status, body]).toEqual([
      200,
      {
        usernamesNotAdded: ['mine-0', 'mine-1'],
        failures: [
          { username: 'mine-0', replacement: 'last', reason: 'replacement-denied' },
          { username: 'mine-1', replacement: 'mine-2', reason: 'replacement-denied' },
        ],
      },
    ]);
    expect(await bridge.store.hlen(`${base}d0`)).toBe(count + 2);
  });

  test.each([
    ['PUT', denylist, (names: string[]) => `["${names.join('","')}",""]`, `/${count}`],
    ['POST', deny, (names: string[]) => `{"${names.join('":"x","')}":""}`, `/rude-${count - 1}`],
  ] as const)(
    'with one invalid name at its end changes nothing, and the response says which: %s',
    async (method, path, write, where) => {
      const { base, admin } = await bridge.newOrganization();
      const answer = await (await admin()).request(method, path, { body: write(numbered('rude', count)) });
      expect([answer.status, answer.body]).toMatchObject([
        400,
        { code: 'invalid-body', errors: [{ path: where }] },
      ]);
      expect(await bridge.store.exists(`${base}d0`)).toBe(0);
    },
  );
});

test('a list may be as large as MAX_LIST_BYTES, and not a byte larger', async () => {
  const strict = await startBridge({ maxListBytes: 2000 });
  try {
    const { base, admin } = await strict.newOrganization();
    const operator = await admin();
    const list = JSON.stringify(numbered('n', 100)).padEnd(2000);
    expect((await operator.request('PUT', denylist, { body: list })).status).toBe(204);
    for (const [method, path] of [
      ['PUT', denylist],
      ['DELETE', deny],
      ['POST', deny],
    ] as const) {
      const answer = await operator.request(method, path, { body: `${list} ` });
      expect([answer.status, answer.body]).toMatchObject([413, { code: 'payload-too-large' }]);
    }
    expect(await strict.store.hlen(`${base}d0`)).toBe(100);
  } finally {
    await strict.close();
  }
});
