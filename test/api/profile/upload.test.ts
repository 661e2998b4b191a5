import { readdir } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import sharp from 'sharp';
import { unreferencedPicturesKey } from '../../../src/redis/keys.ts';
import { startBridge, type TestBridge } from '../../support/bridge.ts';
import type { Client } from '../../support/requests/client.ts';
import { gifOfFrames } from '../../support/requests/pictures.ts';
import { redPng } from '../../support/requests/pictures.ts';

let bridge: TestBridge;
let png: Buffer;
beforeAll(async () => {
  bridge = await startBridge();
  png = await redPng();
});
afterAll(async () => {
  await bridge.close();
});

function form(parts: Record<string, Buffer | string>): FormData {
  const data = new FormData();
  for (const [name, value] of Object.entries(parts)) {
    if (typeof value === 'string') data.append(name, value);
    else data.append(name, new Blob([new Uint8Array(value)], { type: 'image/png' }), 'picture.png');
  }
  return data;
}

async function upload(client: Client, parts: Record<string, Buffer | string>) {
  return await client.request('PUT', '/api/profile/', { form: form(parts) });
}

const disposition = 'Content-Disposition: form-data; name="username"';
const file = 'Content-Disposition: form-data; name="a"; filename="a.png"\r\n\r\n';

/** Sends a part, and a picture after it. */
async function send(
  player: Client,
  part: string,
  content: Buffer | string,
  end = '--x--\r\n',
  parameters = 'boundary=x',
) {
  const body = Buffer.concat([
    Buffer.from(`--x\r\n${part}\r\n\r\n`),
    Buffer.from(content),
    Buffer.from(`\r\n--x\r\n${file}`),
    png,
    Buffer.from(`\r\n${end}`),
  ]);
  const headers = { 'content-type': `multipart/form-data; ${parameters}` };
  return await player.request('PUT', '/api/profile/', { body, headers });
}

/** The files on disk, and those listed as pending or orphaned. */
async function leftovers(base: string) {
  return {
    files: await readdir(bridge.mediaFolder),
    loose: await bridge.store.zcard(unreferencedPicturesKey(base)),
  };
}

function pictureUrl(body: unknown): URL {
  return new URL((body as { profilePictureUrl: string }).profilePictureUrl);
}

test('a picture is saved as the profile picture and served under an absolute, immutable URL', async () => {
  const player = await (await bridge.newOrganization()).player('u1');
  const put = await upload(player, { anyName: png });
  expect(put.status).toBe(200);
  const url = pictureUrl(put.body);
  expect(url.origin).toBe(bridge.url);
  const served = await player.request('GET', url.pathname);
  expect([served.status, served.headers['content-type']]).toEqual([200, 'image/png']);
  expect(served.headers['cache-control']).toContain('immutable');
  expect((await sharp(served.bytes).metadata()).width).toBe(8);
});

test('the file, and parts that are ignored, may have names of any length', async () => {
  const player = await (await bridge.newOrganization()).player('u1');
  const answer = await upload(player, { ['f'.repeat(5000)]: png, ['t'.repeat(5000)]: 'ignored' });
  expect(answer.status).toBe(200);
});

test('a file input that was left empty does not count, whatever its name and type', async () => {
  const player = await (await bridge.newOrganization()).player('u1');
  for (const type of ['application/octet-stream', 'text/plain']) {
    const empty = 'Content-Disposition: form-data; name="username"; filename=""';
    expect((await send(player, `${empty}\r\nContent-Type: ${type}`, '')).body).not.toHaveProperty('username');
  }
});

test('a part whose name stands for a huge array is refused at once', async () => {
  const player = await (await bridge.newOrganization()).player('u1');
  for (const parts of [{ 'x[4294967294]': '1', 'x[a][b]': '2' }, { [`x${'[a]'.repeat(1000)}`]: '1' }]) {
    const answer = await upload(player, { ...parts, picture: png });
    expect([answer.status, answer.body]).toMatchObject([400, { code: 'invalid-multipart' }]);
  }
  expect((await upload(player, { 'x[5]': '1', 'tags[]': '2', picture: png })).status).toBe(200);
});

test('text parts take effect together with the file', async () => {
  const organization = await bridge.newOrganization({ objectImageUrlTemplate: 'https://i.example/x' });
  const player = await organization.player('u1');
  const answer = await upload(player, {
    username: 'ada',
    avatarObjectDefinitionId: '{"datasourceId":"d","objectDefinitionId":"o"}',
    profilePicture: png,
    somethingElse: 'ignored',
  });
  expect(answer.body).toMatchObject({
    username: 'ada',
    avatarObjectDefinitionId: { datasourceId: 'd', objectDefinitionId: 'o' },
  });
});

test('a replaced or unset picture leaves no file behind', async () => {
  const organization = await bridge.newOrganization();
  const player = await organization.player('u1');
  const before = await leftovers(organization.base);
  await upload(player, { profilePicture: png });
  await upload(player, { profilePicture: png });
  expect((await leftovers(organization.base)).files).toHaveLength(before.files.length + 1);
  await player.request('PUT', '/api/profile/', { json: { profilePictureObjectDefinitionId: null } });
  expect(await leftovers(organization.base)).toEqual(before);
});

test('slow pictures of one player are refused beyond a few, and do not hold up those of another', async () => {
  const organization = await bridge.newOrganization();
  const [one, other] = [await organization.player('u1'), await organization.player('u2')];
  const slow = gifOfFrames(400, 400, 100);
  const many = Array.from({ length: 12 }, async () => await upload(one, { picture: slow }));
  const refused = await Promise.race(many);
  expect(refused).toMatchObject({
    status: 503,
    body: {
      code: 'overloaded',
      detail: 'Too many pictures are being sent at the same time with this API key.',
    },
  });
  expect((await upload(other, { picture: png })).status).toBe(200);
  await Promise.all(many);
});

describe('a refused upload changes nothing and leaves no file behind', () => {
  const bomb = Buffer.from(
    '89504e470d0a1a0a0000000d4948445200009c4000009c400802000000', // 40,000 x 40,000 pixels, and no data
    'hex',
  );
  const svg = Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>');
  const cases: [string, (picture: Buffer) => Record<string, Buffer | string>, number, string][] = [
    ['no file', () => ({ username: 'ada' }), 400, 'invalid-multipart'],
    ['two files', (p) => ({ a: p, b: p }), 400, 'invalid-multipart'],
    [
      'seventeen files',
      (p) => Object.fromEntries(Array.from({ length: 17 }, (_, n) => [`file${n}`, p])),
      400,
      'invalid-multipart',
    ],
    [
      'a file and a reference',
      (p) => ({ a: p, profilePictureObjectDefinitionId: '{"datasourceId":"d","objectDefinitionId":"o"}' }),
      400,
      'invalid-multipart',
    ],
    [
      'a file and null',
      (p) => ({ a: p, profilePictureObjectDefinitionId: 'null' }),
      400,
      'invalid-multipart',
    ],
    [
      'a reference that is no JSON',
      (p) => ({ a: p, avatarObjectDefinitionId: '{' }),
      400,
      'invalid-multipart',
    ],
    ['a bad name', (p) => ({ a: p, username: '' }), 400, 'invalid-body'],
    ['profilePicture as text', (p) => ({ a: p, profilePicture: 'x' }), 400, 'invalid-body'],
    ['a denied name', (p) => ({ a: p, username: 'rude' }), 422, 'username-denied'],
    ['SVG called PNG', () => ({ a: svg }), 415, 'unsupported-media-type'],
    ['nothing at all', () => ({ a: Buffer.alloc(0) }), 415, 'unsupported-media-type'],
    ['half a picture', (p) => ({ a: p.subarray(0, p.length / 2) }), 422, 'invalid-image'],
    ['a decompression bomb', () => ({ a: bomb }), 422, 'invalid-image'],
    ['5 MiB and a byte', () => ({ a: Buffer.alloc(5 * 1024 * 1024 + 1) }), 413, 'payload-too-large'],
    ['5 MiB of nothing', () => ({ a: Buffer.alloc(5 * 1024 * 1024) }), 415, 'unsupported-media-type'],
  ];
  test.each(cases)('%s', async (_name, parts, status, code) => {
    const organization = await bridge.newOrganization();
    const player = await organization.player('u1');
    await bridge.store.hset(`${organization.base}d0`, 'rude', '');
    const before = await leftovers(organization.base);
    const answer = await upload(player, parts(png));
    expect([answer.status, answer.body]).toMatchObject([status, { code }]);
    expect(await leftovers(organization.base)).toEqual(before);
    expect((await player.request('GET', '/api/profile/')).status).toBe(404);
  });

  test('a boundary that is longer than RFC 2046 allows', async () => {
    const player = await (await bridge.newOrganization()).player('u1');
    const boundary = 'a'.repeat(71);
    const body = `--${boundary}\r\nContent-Disposition: form-data; name="a"\r\n\r\nx\r\n--${boundary}--\r\n`;
    const headers = { 'content-type': `multipart/form-data; boundary=${boundary}` };
    const answer = await player.request('PUT', '/api/profile/', { body, headers });
    expect([answer.status, answer.body]).toMatchObject([
      400,
      { code: 'invalid-multipart', detail: 'The boundary in the Content-Type has more than 70 characters.' },
    ]);
  });

  test('a body that is too large, though the picture in it is not', async () => {
    const player = await (await bridge.newOrganization()).player('u1');
    const answer = await upload(player, { a: png, b: 'x'.repeat(7 * 1024 * 1024) });
    expect([answer.status, (answer.body as { detail: string }).detail]).toEqual([
      413,
      'The body is larger than 7340032 bytes; the picture in it may have at most 5242880.',
    ]);
  });

  test('a file in a transfer encoding, and the answer says so', async () => {
    const player = await (await bridge.newOrganization()).player('u1');
    const part = `--x\r\nContent-Disposition: form-data; name="a"; filename="a.png"\r\nContent-Transfer-Encoding: base64\r\n\r\n`;
    const body = `${part}${png.toString('base64')}\r\n--x--\r\n`;
    const headers = { 'content-type': 'multipart/form-data; boundary=x' };
    const answer = await player.request('PUT', '/api/profile/', { body, headers });
    expect([answer.status, (answer.body as { detail: string }).detail]).toEqual([
      400,
      'A part has the Content-Transfer-Encoding base64; send the part unencoded.',
    ]);
  });

  test('a switch of the authority in the meantime', async () => {
    const { base, player } = await bridge.newOrganization();
    const before = await leftovers(base);
    const own = await player('u1');
    await bridge.store.hset(`${base}settings`, 'epoch', '99');
    const answer = await upload(own, { a: png });
    expect([answer.status, answer.body]).toMatchObject([503, { code: 'store-unavailable' }]);
    expect(await leftovers(base)).toEqual(before);
  });

  test('a multipart body that breaks off, or has no boundary', async () => {
    const player = await (await bridge.newOrganization()).player('u1');
    const broken = '--x\r\nContent-Disposition: form-data; name="a"; filename="a.png"\r\n\r\nabc';
    for (const type of ['multipart/form-data; boundary=x', 'multipart/form-data']) {
      const answer = await player.request('PUT', '/api/profile/', {
        body: broken,
        headers: { 'content-type': type },
      });
      expect([answer.status, answer.body]).toMatchObject([400, { code: 'invalid-multipart' }]);
    }
  });
});

describe('the text parts of an upload', () => {
  test.each([
    ['no declared charset', disposition],
    ['UTF-8 declared', `${disposition}\r\nContent-Type: text/plain; charset="utf-8"`],
    ['the type of any bytes', `${disposition}\r\nContent-Type: application/octet-stream`],
    ['an empty filename', `${disposition}; filename=""\r\nContent-Type: application/octet-stream`],
    ['a filename that names a folder', `${disposition}; filename="/"`],
  ])('are UTF-8, with %s', async (_name, headers) => {
    const player = await (await bridge.newOrganization()).player('u1');
    const answer = await send(player, headers, 'Zoë \uFFFD');
    expect([answer.status, answer.body]).toMatchObject([200, { username: 'Zoë \uFFFD' }]);
  });

  test.each([
    [
      'another charset',
      `${disposition}\r\nContent-Type: text/plain; charset=x-unknown`,
      'Zoe',
      /charset x-unknown/,
    ],
    [
      'Latin-1',
      `${disposition}\r\nContent-Type: text/plain; charset=iso-8859-1`,
      'Zoe',
      /charset iso-8859-1/,
    ],
    ['bytes that are not UTF-8', disposition, Buffer.from('Zo\xeb', 'latin1'), /not well-formed UTF-8/],
    [
      'bytes that are not UTF-8, and a parameter that looks like a file name',
      `${disposition}; x="filename="`,
      Buffer.from('Zo\xeb', 'latin1'),
      /not well-formed UTF-8/,
    ],
    [
      'another charset before a parameter that looks like UTF-8',
      `${disposition}\r\nContent-Type: text/plain; charset=iso-8859-1; x="; charset=utf-8"`,
      'Zoë',
      /not readable as UTF-8/,
    ],
    [
      'a transfer encoding',
      `${disposition}\r\nContent-Transfer-Encoding: base64`,
      'Wm9l',
      /Content-Transfer-Encoding base64/,
    ],
    ['no name', 'Content-Disposition: form-data', 'Zoe', /name missing/],
    ['no disposition', 'Content-Type: text/plain', 'Zoe', /needs a Content-Disposition/],
    ['another disposition', 'Content-Disposition: attachment; name="username"', 'Zoe', /of form-data/],
    ['an unfinished disposition', disposition.slice(0, -1), 'Zoe', /needs a Content-Disposition/],
    ['malformed headers', 'Content-Disposition form-data', 'Zoe', /Malformed part header/],
  ])('are refused with %s, and the answer says so', async (_name, headers, name, detail) => {
    const player = await (await bridge.newOrganization()).player('u1');
    const answer = await send(player, headers, name);
    expect([answer.status, answer.body]).toMatchObject([400, { code: 'invalid-multipart' }]);
    expect((answer.body as { detail: string }).detail).toMatch(detail);
    expect((await player.request('GET', '/api/profile/')).status).toBe(404);
  });

  test('count once if they are repeated, by the last value', async () => {
    const player = await (await bridge.newOrganization()).player('u1');
    const data = form({ a: png, username: 'first' });
    data.append('username', 'last');
    const answer = await player.request('PUT', '/api/profile/', { form: data });
    expect([answer.status, answer.body]).toMatchObject([200, { username: 'last' }]);
  });

  test('of the type of any bytes are checked like all others', async () => {
    const player = await (await bridge.newOrganization()).player('u1');
    const bytes = 'Content-Type: application/octet-stream';
    for (const [name, content, code] of [
      ['username', '', 'invalid-body'],
      ['profilePictureObjectDefinitionId', 'null', 'invalid-multipart'],
      ['avatarObjectDefinitionId', '{', 'invalid-multipart'],
      ['more', 'x'.repeat(64 * 1024 + 1), 'invalid-multipart'],
    ] as const) {
      const part = `Content-Disposition: form-data; name="${name}"\r\n${bytes}`;
      const answer = await send(player, part, content);
      expect([answer.status, answer.body]).toMatchObject([400, { code }]);
    }
    expect((await player.request('GET', '/api/profile/')).status).toBe(404);
  });

  test.each([
    ['', 'image/png'],
    ['', 'application/octet-stream'],
    ['; filename=""', 'image/png'],
    ['; filename=""', 'application/octet-stream'],
  ])('are not confused with a file that has no name: name="a"%s of the type %s', async (parameter, type) => {
    const player = await (await bridge.newOrganization()).player('u1');
    const part = `Content-Disposition: form-data; name="a"${parameter}\r\nContent-Type: ${type}`;
    const answer = await send(player, part, png);
    expect([answer.status, answer.body]).toMatchObject([400, { code: 'invalid-multipart' }]);
    expect((answer.body as { detail: string }).detail).toMatch(/a file needs a filename/);
  });

  test('are found by the boundary that the parser uses', async () => {
    const player = await (await bridge.newOrganization()).player('u1');
    const name = Buffer.from('Zo\xeb', 'latin1');
    const answer = await send(player, disposition, name, '--x--\r\n', 'y="; boundary=z"; boundary=x');
    expect([answer.status, answer.body]).toMatchObject([400, { code: 'invalid-multipart' }]);
  });

  test.each(['boundary=x;', ' boundary=x ; ', '; boundary=x'])(
    'are read by a Content-Type with an empty parameter (RFC 9110 §5.6.6): %s',
    async (parameters) => {
      const player = await (await bridge.newOrganization()).player('u1');
      const answer = await send(player, disposition, 'Zoe', '--x--\r\n', parameters);
      expect([answer.status, answer.body]).toMatchObject([200, { username: 'Zoe' }]);
    },
  );

  test.each(['boundary=x; charset', 'boundary=x; a=b=c'])(
    'are not blamed for a malformed Content-Type: %s',
    async (parameters) => {
      const player = await (await bridge.newOrganization()).player('u1');
      const answer = await send(player, disposition, 'Zoe', '--x--\r\n', parameters);
      expect([answer.status, answer.body]).toMatchObject([
        400,
        { code: 'invalid-multipart', detail: 'The Content-Type is malformed.' },
      ]);
    },
  );

  test('need a final boundary after them', async () => {
    const player = await (await bridge.newOrganization()).player('u1');
    const answer = await send(player, disposition, 'Zoe', '');
    expect((answer.body as { detail: string }).detail).toMatch(/Unexpected end of form/);
  });
});
