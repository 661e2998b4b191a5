import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { collectGarbage } from '../support/garbage.ts';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import sharp from 'sharp';
import { isPublicAddress } from '../../src/migration/pictures/addresses.ts';
import { fetchPicture, PictureError } from '../../src/migration/pictures/fetch.ts';
import { readPicture } from '../../src/migration/pictures/folder.ts';
import { settleChange } from '../../src/cutover/adopt/adoption.ts';
import { recordVerified } from '../../src/cutover/verdict/verified.ts';
import { storeTime } from '../../src/redis/connection/client.ts';
import { script } from '../../src/redis/connection/script-loader.ts';
import { cutoverKey, forwardedOrganizationsKey } from '../../src/redis/keys.ts';
import { describeWithPostgres } from '../support/servers/describe-with.ts';
import { runPostgres, startPostgres } from '../support/servers/postgres.ts';
import type { PrivateServer } from '../support/servers/private-server.ts';
import { createTool, newFolder, writeSource, type Tool } from '../support/tools/migrate.ts';
import { useTestStore } from '../support/use-store.ts';

const beginChange = script<(string | number)[], number>('cutover/adopt/begin_change');

const store = await useTestStore();

let png: Buffer;
let server: Server;
let base: string;
let requests = 0;
/** Sends the picture at /slow, byte by byte, without an end. */
let dripping: NodeJS.Timeout;
/** What happens while the picture at /late is on its way. */
let meanwhile = async (): Promise<unknown> => undefined;

beforeAll(async () => {
  png = await sharp({ create: { width: 8, height: 8, channels: 3, background: '#123456' } })
    .png()
    .toBuffer();
  server = createServer((request, response) => {
    requests += 1;
    if (request.url === '/good.png') response.end(png);
    else if (request.url === '/late') void meanwhile().then(() => response.end(png));
    else if (request.url === '/moved') response.writeHead(302, { location: '/good.png' }).end();
    else if (request.url === '/inside') response.writeHead(302, { location: 'http://10.0.0.1/' }).end();
    else if (request.url === '/loop') response.writeHead(302, { location: '/loop' }).end();
    else if (request.url === '/file') response.writeHead(302, { location: 'file:///etc/passwd' }).end();
    else if (request.url === '/text') response.end('<svg/>');
    else if (request.url === '/huge') response.end(Buffer.alloc(6 * 1024 * 1024));
    else if (request.url === '/slow') dripping = setInterval(() => response.write('x'), 100);
    else response.writeHead(404).end();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

afterAll(async () => {
  server.closeAllConnections();
  server.close();
  await once(server, 'close');
});

const names = ['good.png', 'moved', 'loop', 'file', 'text', 'huge', 'gone'];

const nothingShared = new Set<string>();

/** Profiles with the pictures of `names`, by user. */
function source(prefix: string): string {
  return writeSource({
    organizations: [{ organizationId: 'acme' }],
    profiles: names.map((name) => ({
      organizationId: 'acme',
      userId: name,
      profilePictureUrl: `${prefix}/${name}`,
    })),
  });
}

/** Each user's picture URL in Redis. */
async function pictures(tool: Tool): Promise<Record<string, string>> {
  const lines = ((await tool.contents())['profiles.ndjson'] ?? '').trim().split('\n');
  return Object.fromEntries(
    lines.map((line) => {
      const { userId, profilePictureUrl } = JSON.parse(line) as Record<string, string>;
      return [userId, profilePictureUrl];
    }),
  );
}

describe('apply --copy-pictures', () => {
  test('copies what can be copied, reports the rest and keeps its URL; a second run copies nothing again', async () => {
    const tool = createTool();
    const folder = source(base);
    const args = ['apply', '--source', folder, '--copy-pictures', '--allow-private-addresses'];
    const first = await tool.json(...args);
    expect(first).toMatchObject({ exitCode: 0, json: { pictures: { copied: 2, failed: 5 } } });
    expect(first.json['issues']).toMatchObject({ profiles: { 'picture-not-copied': 5 } });
    const held = await pictures(tool);
    expect(held['good.png']).toMatch(/^https:\/\/bridge\.example\.com\/media\/[\w-]{22}\.png$/);
    expect(held['text']).toBe(`${base}/text`);
    expect(readdirSync(join(tool.env['DATA_DIR'] ?? '', 'media'))).toHaveLength(2);

    const before = requests;
    expect((await tool.json('apply', '--source', folder)).json).toMatchObject({ written: 0, unchanged: 8 });
    expect(requests).toBe(before);
    expect((await tool.json(...args)).json).toMatchObject({ written: 0, pictures: { copied: 0, failed: 5 } });
    expect(await pictures(tool)).toEqual(held);
    expect((await tool.json('verify', '--source', folder)).json).toMatchObject({ ok: true });
  });

  test('leaves a picture that its user has chosen meanwhile, and no file', async () => {
    const tool = createTool();
    const url = `${base}/late`;
    const profile = { organizationId: 'acme', userId: 'u1', profilePictureUrl: url };
    meanwhile = async () =>
      await store.hset(`${tool.prefix}{acme}:p:u1`, { pu: 'https://x.example/own', b: 0 });
    const args = ['--copy-pictures', '--allow-private-addresses'];
    expect(await tool.json('apply', '--source', writeSource({ profiles: [profile] }), ...args)).toMatchObject(
      { exitCode: 0, json: { pictures: { copied: 0, failed: 0 } } },
    );
    expect(await pictures(tool)).toEqual({ u1: 'https://x.example/own' });
    expect(readdirSync(join(tool.env['DATA_DIR'] ?? '', 'media'))).toEqual([]);
    expect(await store.exists(`${tool.prefix}{acme}:media`)).toBe(0);
  });

  test.each([
    [
      'a change in progress',
      async (own: string) => await store.hset(`${own}cutover:unsettled`, 'u1', `1:${Date.now() + 60_000}:3`),
    ],
    ['been adopted meanwhile', async (own: string) => await store.hset(`${own}p:u1`, 'as', 1)],
    [
      'a change that was not adopted, and settled by a read meanwhile',
      async (own: string) => {
        await beginChange(store, own, 0, '', 'u1', 0, '1');
        await settleChange(store, own, 'u1', '', (await storeTime(store)) + 1);
      },
    ],
    [
      'a change that was not adopted, and settled by a verify meanwhile',
      async (own: string, prefix: string) => {
        await store.hset(cutoverKey(prefix), 'mode', 'mirror');
        await store.sadd(forwardedOrganizationsKey(prefix), 'acme');
        await beginChange(store, own, 0, '', 'u1', 0, '1');
        const snapshotAt = (await storeTime(store)) + 1;
        await recordVerified(store, prefix, { snapshotAt, replicationIds: '', hasConflicts: false });
        await store.del(cutoverKey(prefix));
      },
    ],
  ])('keeps the URL of a user who has %s: the picture there may be another one by now', async (_, change) => {
    const tool = createTool();
    const own = `${tool.prefix}{acme}:`;
    meanwhile = async () => await change(own, tool.prefix);
    const profile = { organizationId: 'acme', userId: 'u1', profilePictureUrl: `${base}/late` };
    const folder = writeSource({ profiles: [profile] });
    const args = ['apply', '--source', folder, '--copy-pictures', '--allow-private-addresses'];
    expect(await tool.json(...args)).toMatchObject({
      exitCode: 0,
      json: { pictures: { copied: 0, failed: 1 }, issues: { profiles: { 'picture-not-copied': 1 } } },
    });
    expect(await store.hget(`${own}p:u1`, 'pu')).toBe(profile.profilePictureUrl);

    meanwhile = async () => undefined;
    await store.del(`${own}cutover:unsettled`);
    expect(await tool.json(...args)).toMatchObject({ exitCode: 0, json: { pictures: { copied: 1 } } });
  });

  test('gives up after 15 seconds, also if bytes keep coming, and whatever is collected as garbage meanwhile', async () => {
    const stop = new AbortController();
    const collecting = setInterval(collectGarbage, 1000);
    try {
      const fetching = fetchPicture(`${base}/slow`, { allowPrivate: true, signal: stop.signal });
      const late = setTimeout(20_000, 'still fetching', { ref: false });
      await expect(Promise.race([fetching, late])).rejects.toThrow('is not answered in time');
    } finally {
      stop.abort();
      clearInterval(collecting);
      clearInterval(dripping);
    }
  });

  test('does not repeat a password in a URL', async () => {
    const { signal } = new AbortController();
    const url = base.replace('//', '//user:s3cret@');
    await expect(fetchPicture(url, { allowPrivate: true, signal })).rejects.toThrow(
      /^has a user or a password in its URL$/,
    );
  });

  test('connects to no private or loopback address unless allowed', async () => {
    const tool = createTool();
    const before = requests;
    const call = await tool.json('apply', '--source', source(base), '--copy-pictures');
    expect(call).toMatchObject({ exitCode: 0, json: { pictures: { copied: 0, failed: names.length } } });
    expect(requests).toBe(before);
    const options = { allowPrivate: false, signal: new AbortController().signal };
    const { port } = new URL(base);
    for (const host of ['localhost', '127.1', '[::1]', '[::ffff:127.0.0.1]', '2130706433', '0']) {
      await expect(fetchPicture(`http://${host}:${port}/good.png`, options)).rejects.toThrow('private');
    }
    expect(requests).toBe(before);
  });

  test('takes pictures from a folder, by path or by name, and from nowhere outside it', async () => {
    const tool = createTool();
    const folder = newFolder();
    mkdirSync(join(folder, 'in', 'deep'), { recursive: true });
    writeFileSync(join(folder, 'in', 'deep', 'good.png'), png);
    writeFileSync(join(folder, 'in', 'moved'), png);
    writeFileSync(join(folder, 'outside'), png);
    const place = join(folder, 'in');
    const call = await tool.json(
      'apply',
      '--source',
      source('https://old.example.com/deep'),
      '--copy-pictures',
      place,
    );
    expect(call).toMatchObject({ exitCode: 0, json: { pictures: { copied: 2, failed: 5 } } });
    for (const url of ['../outside', 'https://x.example/..%2foutside', '/', '%']) {
      await expect(readPicture(url, place, nothingShared)).rejects.toThrow(PictureError);
    }
  });

  test('takes a file of a folder to be as old as the source, and leaves it where its user has changed since', async () => {
    const tool = createTool();
    const place = newFolder();
    for (const user of ['u1', 'u2', 'u3']) writeFileSync(join(place, user), png);
    const folder = writeSource({
      profiles: ['u1', 'u2', 'u3'].map((userId) => ({
        organizationId: 'acme',
        userId,
        profilePictureUrl: `https://old.example.com/${userId}`,
      })),
    });
    const own = `${tool.prefix}{acme}:`;
    const written = await storeTime(store);
    const apply = ['apply', '--source', folder, '--as-of', new Date(written).toISOString()];
    await tool.json(...apply);
    await store.hset(`${own}p:u1`, 'as', 1, 'at', written + 1);
    await store.hset(`${own}p:u2`, 'as', 1, 'at', written - 1);
    const copied = await tool.json(...apply, '--copy-pictures', place);
    expect(copied.json).toMatchObject({ pictures: { copied: 2, failed: 1 } });
    expect(copied.out + JSON.stringify(copied.json)).toContain(
      'may have changed since the files were written',
    );
    expect(await store.hget(`${own}p:u1`, 'pu')).toBe('https://old.example.com/u1');
    await store.hset(`${own}cutover:adoptions`, 'unmarked-upload', written + 1);
    expect((await tool.json('verify', ...apply.slice(1))).json).toMatchObject({ differences: 2 });
    expect((await tool.json(...apply, '--copy-pictures', place)).json).toMatchObject({
      pictures: { copied: 0 },
    });
  });

  test('takes a folder of unknown age to be older than every change of a user', async () => {
    const tool = createTool();
    const place = newFolder();
    for (const user of ['u1', 'u2']) writeFileSync(join(place, user), png);
    const rows = ['u1', 'u2'].map((userId) => ({
      organizationId: 'acme',
      userId,
      profilePictureUrl: `https://old.example.com/${userId}`,
    }));
    const apply = ['apply', '--source', writeSource({ profiles: rows })];
    await tool.json(...apply);
    const own = `${tool.prefix}{acme}:p:u1`;
    await store.hset(own, 'as', 1, 'at', await storeTime(store));
    const copied = await tool.json(...apply, '--copy-pictures', place);
    expect(copied.json).toMatchObject({ pictures: { copied: 1, failed: 1 } });
    expect(await store.hget(own, 'pu')).toBe('https://old.example.com/u1');
  });

  test('leaves a file in the folder to which several URLs lead, since it is the picture of only one user', async () => {
    const tool = createTool();
    const place = newFolder();
    mkdirSync(join(place, 'u', '1'), { recursive: true });
    for (const file of ['show', 'avatar.png', join('u', '1', 'avatar.png'), 'shared.png', 'both.png'])
      writeFileSync(join(place, file), png);
    const paths = ['show?id=1', 'show?id=2', 'u/1/avatar.png', 'u/2/avatar.png', 'shared.png', 'shared.png'];
    const absolute = [...paths, 'both.png'].map((path) => `https://old.example.com/${path}`);
    const folder = writeSource({
      organizations: [{ organizationId: 'acme' }],
      profiles: [...absolute, 'both.png'].map((profilePictureUrl, user) => ({
        organizationId: 'acme',
        userId: `u${user}`,
        profilePictureUrl,
      })),
    });
    const call = await tool.json('apply', '--source', folder, '--copy-pictures', place);
    expect(call.json).toMatchObject({ pictures: { copied: 3, failed: 5 } });
    const kept = Object.entries(await pictures(tool)).filter(([, url]) => !url.includes('/media/'));
    expect(kept.map(([user]) => user)).toEqual(['u0', 'u1', 'u3', 'u6', 'u7']);
  });

  test('takes pictures from the root folder, too', async () => {
    const file = join(newFolder(), 'good.png');
    writeFileSync(file, png);
    expect(await readPicture(`https://old.example.com${file}`, '/', nothingShared)).toEqual(png);
  });

  test.each([
    ['8.8.8.8', true],
    ['2606:4700::1111', true],
    ['172.31.0.1', false],
    ['100.64.0.1', false],
    ['169.254.169.254', false],
    ['fe80::1', false],
    ['fd00::1', false],
    ['::ffff:10.0.0.1', false],
    ['64:ff9b::a00:1', false],
    ['2002:a00:1::', false],
    ['no address', false],
  ])('treats %s as public: %p', (address, isPublic) => {
    expect(isPublicAddress(address)).toBe(isPublic);
  });
});

describeWithPostgres('apply --copy-pictures FOLDER of a database', () => {
  let database: PrivateServer;
  beforeAll(async () => {
    database = await startPostgres();
  });
  afterAll(async () => {
    await database.stop();
  });

  test('takes the files to be as old as --as-of says, whenever the database was read', async () => {
    const tool = createTool();
    const url = database.url('postgres');
    await runPostgres(
      url,
      'CREATE TABLE players (id text PRIMARY KEY)',
      "INSERT INTO players VALUES ('u1'), ('u2')",
    );
    const mapping = join(newFolder(), 'map.yaml');
    writeFileSync(
      mapping,
      `entities:
  profiles:
    query: SELECT 'acme' AS "organizationId", id AS "userId", 'https://old.example.com/' || id AS "profilePictureUrl" FROM players
    key: [userId]
`,
    );
    const apply = ['apply', '--source', url, '--mapping', mapping];
    await tool.json(...apply);
    const place = newFolder();
    for (const user of ['u1', 'u2']) writeFileSync(join(place, user), png);
    const ofUser = (user: string): string => `${tool.prefix}{acme}:p:${user}`;
    const adoptedAt = await storeTime(store);
    await store.hset(ofUser('u1'), 'as', 1, 'at', adoptedAt);
    const copy = [...apply, '--copy-pictures', place];
    expect((await tool.json(...copy)).json).toMatchObject({ pictures: { copied: 1, failed: 1 } });
    expect(await store.hget(ofUser('u1'), 'pu')).toBe('https://old.example.com/u1');
    expect(await tool.json(...copy, '--as-of', '2999-01-01T00:00:00Z')).toMatchObject({
      exitCode: 2,
      err: expect.stringContaining('--as-of must not be in the future'),
    });
    expect(await store.hget(ofUser('u1'), 'pu')).toBe('https://old.example.com/u1');
    const asOf = new Date(adoptedAt + 1).toISOString();
    expect((await tool.json(...copy, '--as-of', asOf)).json).toMatchObject({ pictures: { copied: 1 } });
    expect(await store.hget(ofUser('u1'), 'po')).toBe('https://old.example.com/u1');
  });
});
