import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import {
  appendFile,
  mkdir,
  mkdtemp,
  readFile,
  rename,
  rm,
  stat,
  symlink,
  utimes,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { RecordOf } from '../../../../src/migration/records/records.ts';
import { parseMapping } from '../../../../src/migration/sources/mapping.ts';
import { openSource } from '../../../../src/migration/sources/open.ts';
import type { ReadOptions } from '../../../../src/migration/sources/source.ts';
import { messageOf, readRecords, readRows } from '../reading.ts';
import type { Seen } from '../reading.ts';

let folder = '';
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'files-'));
});
afterEach(async () => {
  await rm(folder, { recursive: true, force: true });
});

async function put(name: string, content: string | Uint8Array): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, content);
  return path;
}

const line = (user: unknown, more: object = {}): string =>
  JSON.stringify({ organizationId: 'acme', userId: user, ...more });

/** The rows of profiles as `line userId` or `line! reason`. */
async function profiles(options?: Partial<ReadOptions>, location = folder): Promise<string[]> {
  return (await readRows(await openSource(location), 'profiles', options)).rows.map(describeRow);
}

function describeRow({ at, record, reason }: Seen): string {
  const number = at.replace(/^profiles\.(?:ndjson|ndjson\.gz|csv):/, '');
  return reason === undefined ? `${number} ${(record as { userId: string }).userId}` : `${number}! ${reason}`;
}

describe('a folder', () => {
  test('holds the entities its files are named after, in their order, and lists what it ignores', async () => {
    await put('profiles.ndjson', line('u1'));
    await put('denylist.csv', 'organizationId,username\nacme,bad\n');
    await put('organizations.ndjson.gz', gzipSync('{"organizationId":"acme"}\n'));
    await put('profile.ndjson', line('u2'));
    await put('.hidden', '');
    await mkdir(join(folder, 'pictures'));
    const source = await openSource(folder);
    expect(source.entities).toEqual(['organizations', 'profiles', 'denylist']);
    expect(source.ignored).toEqual(['pictures', 'profile.ndjson']);
    expect(await readRecords(source, 'organizations')).toEqual([{ organizationId: 'acme' }]);
    expect(await readRecords(source, 'denylist')).toEqual([{ organizationId: 'acme', username: 'bad' }]);
  });

  test('without a known file is refused, as are two files for one entity', async () => {
    await put('users.json', '');
    expect(await messageOf(() => openSource(folder))).toMatch(
      /holds no known file \(there is users\.json\): name files after the entities/,
    );
    await put('profiles.ndjson', '');
    await put('profiles.csv', 'organizationId,userId');
    expect(await messageOf(() => openSource(folder))).toBe(
      `SourceError: ${folder} holds both profiles.csv and profiles.ndjson: remove one of them`,
    );
  });

  test('with a manifest that cannot be read is refused, rather than read without checking', async () => {
    await put('profiles.ndjson', line('u1'));
    await symlink('manifest.json', join(folder, 'manifest.json'));
    expect(await messageOf(() => openSource(folder))).toBe(
      `SourceError: ${join(folder, 'manifest.json')} cannot be read (ELOOP): copy the export again, or delete this file`,
    );
  });

  test('with a manifest of another program is read without it', async () => {
    await put('profiles.ndjson', line('u1'));
    for (const other of ['null', '[]', '{"format":"x"}', '{"format":"profile-bridge-export","files":null}']) {
      await put('manifest.json', other);
      expect(await profiles()).toEqual(['1 u1']);
    }
  });

  test('may be a single file, named after what it holds', async () => {
    const path = await put('profiles.ndjson', line('u1'));
    expect(await profiles({}, path)).toEqual(['1 u1']);
    const other = await put('users.ndjson', line('u1'));
    expect(await messageOf(() => openSource(other))).toMatch(
      /users\.ndjson does not say what it holds: name it after an entity/,
    );
    expect(await messageOf(() => openSource(join(folder, 'gone')))).toMatch(
      /cannot read .*gone \(ENOENT\): check --source/,
    );
  });

  test('with a mapping: mistakes are named before anything is read', async () => {
    await put('profiles.csv', 'org,id\nacme,u1\n');
    const open = (yaml: string): Promise<string> =>
      messageOf(() => openSource(folder, parseMapping(`entities: {${yaml}}`, 'mapping.yaml')));
    expect(await open('profiles: {query: SELECT 1, key: [a]}')).toMatch(
      /query and key are for databases; a file takes fields/,
    );
    expect(await open('profiles: {}')).toMatch(/entities\.profiles maps nothing/);
    expect(await open('denylist: {fields: {organizationId: a, username: b}}')).toMatch(
      /the mapping names denylist, but .* holds no denylist file/,
    );
    expect(await open('profiles: {fields: {organizationId: org, userId: user}}')).toMatch(
      /entities\.profiles\.fields\.userId: the first line has no column "user"/,
    );
    await put('profiles.csv', 'org, id\nacme, u1\n');
    expect(await open('profiles: {fields: {organizationId: org, userId: id}}')).toMatch(
      /the first line has no column "id", but " id"/,
    );
    await put('profiles.csv', 'org,id,id\nacme,u1,u2\n');
    expect(await open('profiles: {fields: {organizationId: org, userId: id}}')).toMatch(
      /entities\.profiles\.fields\.userId: the first line has the column "id" twice/,
    );
    expect(await open('profiles: {fields: {organizationId: org, userId: org}}')).toMatch(
      /gives organizationId and userId the same column/,
    );
    await rm(join(folder, 'profiles.csv'));
    await put('profiles.ndjson', line('u1'));
    expect(await open('profiles: {fields: {organizationId: org, userId: /id}}')).toMatch(
      /fields\.organizationId must be a JSON pointer such as \/user\/id/,
    );
  });
});

describe('an NDJSON file', () => {
  test('may have a byte order mark, CRLF, empty lines, blanks, and no line feed at its end', async () => {
    await put('profiles.ndjson', `\uFEFF${line('u1')}\r\n\r\n   \n  ${line('ü2')}  \n\n${line('u3')}`);
    expect(await profiles()).toEqual(['1 u1', '4 ü2', '6 u3']);
    await put('profiles.ndjson', '');
    expect(await profiles()).toEqual([]);
    await put('profiles.ndjson', '\uFEFF\n');
    expect(await profiles()).toEqual([]);
  });

  test('that is one JSON value over several lines is refused as such', async () => {
    const begun = '1! begins a value of several lines: write one object per line, such as with jq -c .[]';
    await put('profiles.ndjson', JSON.stringify([{ organizationId: 'acme', userId: 'u1' }], null, 2));
    expect((await profiles())[0]).toBe(begun);
    await put('profiles.ndjson', `[${line('u1')},\n${line('u2')}]\n`);
    expect((await profiles())[0]).toBe(begun);
  });

  test('with lines that are not JSON objects reports them by position, and reads the others', async () => {
    const good = line('u');
    await put(
      'profiles.ndjson',
      Buffer.concat([
        Buffer.from(`${good}\n[1]\nnull\n7\n{"organizationId":\n${good}${good}\n`),
        Buffer.from([0x22, 0xff, 0x22, 0x0a]),
        Buffer.from(`${good}\n\0\0\0\n{"a":"\0"}\nü${good}\n${good}\n{"organizationId":"acme","us`),
      ]),
    );
    expect(await profiles()).toEqual([
      '1 u',
      '2! is a JSON array: write one object per line, such as with jq -c .[]',
      '3! is not a JSON object',
      '4! is not a JSON object',
      expect.stringMatching(/^5! is not valid JSON/),
      expect.stringMatching(/^6! is not valid JSON \(at character 39\)/),
      '7! is not valid UTF-8',
      '8 u',
      '9! is not valid JSON: it holds NUL bytes',
      '10! is not valid JSON: it holds NUL bytes',
      expect.stringMatching(/^11! is not valid JSON/),
      '12 u',
      '13! is cut short: the file ends in the middle of this line',
    ]);
  });

  test('cut in the middle of a character, or in a surrogate pair, says so', async () => {
    const bytes = Buffer.from(`${line('u')}\n{"userId":"😀`);
    await put('profiles.ndjson', bytes.subarray(0, -2));
    expect(await profiles()).toEqual(['1 u', '2! is cut short: the file ends in the middle of this line']);
  });

  test('never shows the content of an invalid line of API keys', async () => {
    await put(
      'api-keys.ndjson',
      '{"organizationId":"acme","apiKey":"very-private" oops}\n"very-private"\nvery-private\n',
    );
    const { rows } = await readRows(await openSource(folder), 'api-keys');
    expect(rows.map(({ reason }) => reason === undefined)).toEqual([false, false, false]);
    expect(JSON.stringify(rows)).not.toContain('very');
  });

  test('skips a line longer than 1 MiB, wherever it is, without keeping it in memory', async () => {
    const exact = line('u', { profilePictureUrl: 'x' });
    const most = exact.replace('"x"', `"${'x'.repeat(1024 * 1024 - exact.length + 1)}"`);
    const huge = `{"x":"${'x'.repeat(3 * 1024 * 1024)}"}`;
    await put(
      'profiles.ndjson',
      `${huge}\n${line('u2')}\n${most}\n${most} \n${line('u5')}\n${huge}\n${huge}\n${line('u8')}\n${huge}`,
    );
    expect(await profiles()).toEqual([
      '1! is longer than 1 MiB',
      '2 u2',
      '3 u',
      '4! is longer than 1 MiB',
      '5 u5',
      '6! is longer than 1 MiB',
      '7! is longer than 1 MiB',
      '8 u8',
      '9! is longer than 1 MiB',
    ]);
  });

  test('of any bytes has the same rows whatever the batch size', async () => {
    const piece = fc.oneof(
      fc.constantFrom(line('u'), line('ü😀'), '', ' ', '\r', '{', '\uFEFF', '\0', 'null'),
      fc.uint8Array({ maxLength: 5 }),
      fc.constant(`{"x":"${'y'.repeat(1024 * 1024)}"}`),
    );
    await fc.assert(
      fc.asyncProperty(
        fc.array(piece, { maxLength: 30 }),
        fc.boolean(),
        fc.integer({ min: 1, max: 5 }),
        async (pieces, zipped, size) => {
          // It begins with text, for a zero in every other byte would mean UTF-16.
          const bytes = Buffer.concat(
            ['null', ...pieces].map((part) =>
              Buffer.concat([Buffer.from(part as string), Buffer.from('\n')]),
            ),
          );
          await rm(join(folder, 'profiles.ndjson.gz'), { force: true });
          await rm(join(folder, 'profiles.ndjson'), { force: true });
          await (zipped ? put('profiles.ndjson.gz', gzipSync(bytes)) : put('profiles.ndjson', bytes));
          const source = await openSource(folder);
          const whole = await readRows(source, 'profiles', { size });
          expect(whole.rows).toEqual((await readRows(source, 'profiles')).rows);
        },
      ),
      { numRuns: 60 },
    );
  });

  test('beyond 256 KiB is read in one piece, gzipped or not, with progress', async () => {
    const lines = Array.from({ length: 20_000 }, (_, index) => line(`u${index}${'é'.repeat(index % 3)}`));
    for (const zipped of [false, true]) {
      await rm(join(folder, 'profiles.ndjson'), { force: true });
      await (zipped
        ? put('profiles.ndjson.gz', gzipSync(lines.join('\n')))
        : put('profiles.ndjson', lines.join('\n')));
      const { rows, progress } = await readRows(await openSource(folder), 'profiles', { size: 999 });
      expect(rows.map(({ record }) => JSON.stringify(record))).toEqual(lines);
      expect(rows.at(-1)?.at).toMatch(/^profiles\.ndjson(?:\.gz)?:20000$/);
      expect(progress).toEqual(progress.toSorted((a, b) => a - b));
      expect(progress.at(-1)).toBe(1);
    }
  });

  test.each([
    ['profiles.ndjson', (text: string) => text],
    ['profiles.ndjson.gz', (text: string) => gzipSync(text)],
    ['profiles.csv', (text: string) => text.replaceAll(/"\w+":|[{}]/g, '')],
  ])('as %s is not said to be read whole before it is, though it was read ahead', async (name, write) => {
    const lines = ['1', '2', '3', '4'].map((user) => `${line(user)}\n`);
    await put(name, write(`${name.endsWith('csv') ? 'organizationId,userId\n' : ''}${lines.join('')}`));
    const { counts, progress } = await readRows(await openSource(folder), 'profiles', { size: 1 });
    expect(counts).toEqual([1, 2, 3, 4, 4]);
    expect(progress.filter((share) => share < 1)).toHaveLength(4);
  });

  test.each([
    ['grows', (path: string) => appendFile(path, `${line('u9')}\n`)],
    ['is touched', (path: string) => utimes(path, 1, 1)],
    [
      'is replaced by one of the same size and time',
      async (path: string) => {
        const { atime, mtime } = await stat(path);
        await writeFile(`${path}.new`, `${line('u1')}\n${line('u9')}\n`);
        await utimes(`${path}.new`, atime, mtime);
        await rename(`${path}.new`, path);
      },
    ],
  ])('that %s while or after it is read is reported', async (_, change) => {
    const path = await put('profiles.ndjson', `${line('u1')}\n${line('u2')}\n`);
    const changed =
      /^SourceError: profiles\.ndjson has changed since it was opened: wait until nothing writes to it/;
    const source = await openSource(folder);
    expect(
      await messageOf(async () => {
        for await (const { rows } of source.read('profiles', { size: 1 }))
          if (rows.length > 0) await change(path);
      }),
    ).toMatch(changed);
    expect(await messageOf(() => readRows(source, 'profiles'))).toMatch(changed);
    expect(await messageOf(() => readRows(source, 'profiles'))).toMatch(changed);
  });

  test('of wide rows comes in batches bounded by bytes', async () => {
    const wide = line('u', { profilePictureUrl: 'x'.repeat(128 * 1024) });
    await put('profiles.ndjson', `${wide}\n`.repeat(20));
    const { counts } = await readRows(await openSource(folder), 'profiles');
    expect(counts.slice(0, 10)).toEqual(Array.from({ length: 10 }, (_, batch) => 2 * (batch + 1)));
  });

  test('in UTF-16 is refused as such, with or without a byte order mark', async () => {
    for (const text of [line('u1'), `\uFEFF${line('u1')}`]) {
      const little = Buffer.from(text, 'utf16le');
      for (const bytes of [little, Buffer.from(little).swap16()]) {
        await put('profiles.ndjson', bytes);
        expect(await messageOf(() => profiles())).toBe(
          'SourceError: profiles.ndjson is UTF-16: convert it to UTF-8 first, such as with iconv -f UTF-16 -t UTF-8',
        );
      }
    }
  });

  test('can be read for one organization; lines that may be of it are reported all the same', async () => {
    await put('profiles.ndjson', `${line('u1')}\n{"organizationId":7,"userId":"u2"}\n{\n{"userId":"u4"}\n`);
    const unclear = [expect.stringMatching(/^3!/), '4! organizationId is missing'];
    expect(await profiles({ organizationId: '7' })).toEqual(['2 u2', ...unclear]);
    expect(await profiles({ organizationId: 'acme' })).toEqual(['1 u1', ...unclear]);
  });

  test('that is not one whole gzip file, or cannot be read, is reported in one line with the remedy', async () => {
    const zipped = gzipSync(Array.from({ length: 1000 }, (_, index) => line(index)).join('\n'));
    await put('profiles.ndjson.gz', zipped.subarray(0, -10));
    expect(await messageOf(() => profiles())).toBe(
      'SourceError: profiles.ndjson.gz is not a whole gzip file (Z_BUF_ERROR): copy or compress it again',
    );
    // zlib ends at a zero byte between two members, and would leave out the second.
    await put('profiles.ndjson.gz', Buffer.concat([zipped, Buffer.alloc(1), zipped]));
    expect(await messageOf(() => profiles())).toBe(
      'SourceError: profiles.ndjson.gz has bytes after the end of its compressed data: copy or compress it again',
    );
    await put('profiles.ndjson.gz', line('u1'));
    expect(await messageOf(() => profiles())).toMatch(
      /profiles\.ndjson\.gz is not a whole gzip file \(Z_DATA_ERROR\)/,
    );
    await rm(join(folder, 'profiles.ndjson.gz'));
    await put('profiles.ndjson', zipped);
    expect(await messageOf(() => profiles())).toBe(
      'SourceError: profiles.ndjson is compressed by gzip: decompress it, or end its name in .ndjson.gz',
    );
  });

  test.each([
    ['a folder', mkdirSync],
    // Reading a pipe would wait until somebody writes to it, and nobody can stop that.
    ['a pipe', (path: string) => execFileSync('mkfifo', [path])],
  ])('that is %s is refused at once', async (_, make) => {
    make(join(folder, 'profiles.ndjson'));
    expect(await messageOf(() => openSource(folder))).toBe(
      'SourceError: profiles.ndjson is not a regular file: put the records into one',
    );
  });

  test("of mongoexport is read by the worked example's mapping", async () => {
    await put(
      'profiles.ndjson',
      `{"_id":{"$oid":"65a1b2c3d4e5f60718293a4b"},"tenant":"acme","profile":{"displayName":"Zoë","picture":"https://cdn.example.com/1.png","avatar":{"source":"ds","definition":"hat"}},"wallets":[{"address":"0x${'a'.repeat(40)}","verified":true}],"updatedAt":{"$date":"2026-01-02T03:04:05.678Z"},"loginCount":{"$numberLong":"12"}}\n` +
        '{"_id":{"$oid":"65a1b2c3d4e5f60718293a4c"},"tenant":"acme","profile":{},"wallets":[]}\n',
    );
    const yaml = await readFile('src/migration/sources/examples/mongoexport.yaml', 'utf8');
    const source = await openSource(folder, parseMapping(yaml, 'mongoexport.yaml'));
    expect(await readRecords(source, 'profiles')).toEqual([
      {
        organizationId: 'acme',
        userId: '65a1b2c3d4e5f60718293a4b',
        username: 'Zoë',
        profilePictureUrl: 'https://cdn.example.com/1.png',
        avatar: { datasourceId: 'ds', objectDefinitionId: 'hat' },
        evmWalletAddress: `0x${'a'.repeat(40)}`,
        evmWalletVerified: true,
        updatedAt: Date.UTC(2026, 0, 2, 3, 4, 5, 678),
      },
      { organizationId: 'acme', userId: '65a1b2c3d4e5f60718293a4c' },
    ]);
  });

  test('is mapped by JSON pointers, which find own properties and array elements only', async () => {
    await put(
      'profiles.ndjson',
      '{"a/b":{"~":["x","u1"]},"o":"acme"}\n{"o":"acme"}\n[]\n{"a/b":"text","o":{}}\n',
    );
    const yaml =
      'entities: {profiles: {fields: {organizationId: /o, userId: /a~1b/~0/1, username: /constructor/name}}}';
    expect(
      await readRecords(await openSource(folder, parseMapping(yaml, 'mapping.yaml')), 'profiles'),
    ).toEqual([
      { organizationId: 'acme', userId: 'u1' },
      'userId is missing',
      'is a JSON array: write one object per line, such as with jq -c .[]',
      'organizationId must be text',
    ]);
  });
});

describe('a CSV file', () => {
  const header = 'organizationId,userId,username,avatar.datasourceId,avatar.objectDefinitionId';

  test('names its columns in the first line; empty cells are absent fields, dotted columns nest', async () => {
    await put(
      'profiles.csv',
      `\uFEFF${header}\r\nacme,1,"Zoë, ""the Cat""",ds,hat\r\n\r\nacme,2,,,\r\nacme,3,"a\nb",,`,
    );
    const source = await openSource(folder);
    expect(await readRecords(source, 'profiles')).toEqual([
      {
        organizationId: 'acme',
        userId: '1',
        username: 'Zoë, "the Cat"',
        avatar: { datasourceId: 'ds', objectDefinitionId: 'hat' },
      },
      { organizationId: 'acme', userId: '2' },
      'username must not contain control characters',
    ]);
    expect((await readRows(source, 'profiles')).rows.map(({ at }) => at)).toEqual([
      'profiles.csv:2',
      'profiles.csv:4',
      'profiles.csv:6',
    ]);
  });

  test.each([
    ['', /profiles\.csv is empty: its first line must name the columns/],
    ['acme,very-private\n', /the first line must name the columns, such as organizationId,userId/],
    ['organizationId,userId,nick\n', /the first line has an unknown field "nick"/],
    ['organizationId,userid\n', /the first line has an unknown field "userid" \(is userId meant\?\)$/],
    ['organizationId,userId,userId\n', /the first line has the column "userId" twice/],
    ['organizationId\n', /the first line has no column userId/],
    // The blanks are part of the cells, too: " u1" would be another user.
    [
      'organizationId, userId\nacme, u1\n',
      /the first line has an unknown field " userId" \(is userId meant\?\)/,
    ],
    [' organizationId , userId \n', /the first line has an unknown field " organizationId "/],
    [
      'organization"Id,userId\nacme,u1\n',
      /profiles\.csv: the first line has a quote inside an unquoted cell/,
    ],
  ])('that begins with %j is refused', async (content, message) => {
    await put('profiles.csv', content);
    const said = await messageOf(() => openSource(folder));
    expect(said).toMatch(message);
    expect(said).not.toContain('very-private');
  });

  test.each([
    ['semicolons', 'organizationId;userId;profilePictureUrl\nacme;u1;a,b\nacme;u2;"a;b"\n', ['a,b', 'a;b']],
    ['tabs', 'organizationId\tuserId\tprofilePictureUrl\nacme\tu1\ta,b\nacme\tu2\t"c\td"\n', ['a,b', 'c\td']],
    [
      'CRLF and LF mixed',
      'organizationId,userId,profilePictureUrl\r\nacme,u1,a\nacme,u2,"b\nc"\r\n',
      ['a', 'b\nc'],
    ],
    ['LF and CRLF mixed', 'organizationId,userId,profilePictureUrl\nacme,u1,a\r\nacme,u2,b\n', ['a', 'b']],
    ['CR', 'organizationId,userId,profilePictureUrl\racme,u1,a\racme,u2,b\r', ['a', 'b']],
  ])('with %s is read like any other', async (_, content, names) => {
    await put('profiles.csv', content);
    const { rows } = await readRows(await openSource(folder), 'profiles');
    expect(rows.map(({ at, record }) => [at, (record as RecordOf['profiles']).profilePictureUrl])).toEqual([
      ['profiles.csv:2', names[0]],
      [expect.stringMatching(/^profiles\.csv:[34]$/), names[1]],
    ]);
  });

  test('with empty lines before the names of the columns is read with its own separator', async () => {
    await put('profiles.csv', '\r\n\norganizationId;userId\nacme;u1\n');
    const { rows } = await readRows(await openSource(folder), 'profiles');
    expect(rows).toMatchObject([{ record: { organizationId: 'acme', userId: 'u1' } }]);
  });

  test("with a database's mark for NULL, or in UTF-16, is refused by name", async () => {
    await put('profiles.csv', 'organizationId,userId,username\nacme,u1,\\N\nacme,u2,a\\N\n');
    expect(await profiles()).toEqual([
      String.raw`2! has \N, a database's mark for NULL, as username: leave such a cell empty`.replace(
        '\\\\',
        '\\',
      ),
      '3 u2',
    ]);
    await put('profiles.csv', Buffer.from('\uFEFForganizationId,userId\n', 'utf16le'));
    expect(await messageOf(() => profiles())).toMatch(/^SourceError: profiles\.csv is UTF-16/);
  });

  test.each([
    ['u1,bob\n', 0],
    ['u1,bob\r', 0],
    ['u1,"bob"', 0],
    ['u1,bo', 1],
  ])('that ends in %j has %d warnings that it may have been cut short', async (end, count) => {
    await put('profiles.csv', `organizationId,userId,username\nacme,${end}`);
    const warnings: string[] = [];
    for await (const batch of (await openSource(folder)).read('profiles', { size: 500 }))
      warnings.push(...(batch.warnings ?? []));
    const expected =
      'profiles.csv does not end with a line break: check that its last cell was not cut short';
    expect(warnings).toEqual(Array.from({ length: count }, () => expected));
  });

  test('with fields, reads the columns they name and ignores the others', async () => {
    await put('profiles.csv', 'id,x,tenant,display name,x,"a;b;c;d;e;f"\n1,,acme,Zoë,,\n');
    const yaml =
      'entities: {profiles: {fields: {organizationId: tenant, userId: id, username: display name}}}';
    expect(
      await readRecords(await openSource(folder, parseMapping(yaml, 'mapping.yaml')), 'profiles'),
    ).toEqual([{ organizationId: 'acme', userId: '1', username: 'Zoë' }]);
  });

  test('with faulty rows reports them by line, and reads the others', async () => {
    await put(
      'profiles.csv',
      Buffer.concat([
        Buffer.from('organizationId,userId\nacme,1\nacme\nacme,3,x\nacme,4"4"\nacme,'),
        Buffer.from([0xff, 0x0a]),
        Buffer.from('acme,\uFFFD\nacme,7\n'),
      ]),
    );
    expect(await profiles()).toEqual([
      '2 1',
      '3! has 1 cell where the first line has 2',
      '4! has 3 cells where the first line has 2',
      '5! has a quote inside an unquoted cell',
      '6! is not valid UTF-8',
      '7 \uFFFD',
      '8 7',
    ]);
  });

  test.each([
    [
      'acme,1\nacme,"2\nacme,3\n',
      /profiles\.csv:\d+: a quote is opened and never closed; nothing after this line can be read: correct the quoting/,
    ],
    [
      'acme,1\nacme,"2"x\nacme,3\n',
      /profiles\.csv:3: there is text after a closing quote; nothing after this line can be read: correct the quoting/,
    ],
    [`acme,1\nacme,"${'2'.repeat(1 << 21)}"\n`, /profiles\.csv:3: a row is longer than 1 MiB/],
  ])('is not read beyond a fault after which rows cannot be separated', async (content, message) => {
    await put('profiles.csv', `organizationId,userId\n${content}`);
    expect(await messageOf(() => profiles())).toMatch(message);
  });

  test('of any content is read back as it was, in batches of any size', async () => {
    const cell = fc.string({
      unit: fc.oneof(fc.constantFrom('"', ',', '\n', ' ', "'"), fc.constantFrom('é', '😀', 'a')),
      minLength: 1,
    });
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(cell, cell), { maxLength: 12 }),
        fc.integer({ min: 1, max: 4 }),
        async (pairs, size) => {
          const quoted = pairs.map(
            (pair) => `acme,u,ds,hat,${pair.map((value) => `"${value.replaceAll('"', '""')}"`).join(',')}`,
          );
          const texts = 'profilePictureUrl,avatar.url';
          const names = `organizationId,userId,avatar.datasourceId,avatar.objectDefinitionId,${texts}`;
          await put('profiles.csv', [names, ...quoted].join('\n'));
          const source = await openSource(folder);
          const whole = await readRows(source, 'profiles', { size });
          const read = whole.rows.map(({ record }) => record as RecordOf['profiles']);
          expect(read.map(({ profilePictureUrl, avatar }) => [profilePictureUrl, avatar?.url])).toEqual(
            pairs,
          );
        },
      ),
      { numRuns: 50 },
    );
  });
});
