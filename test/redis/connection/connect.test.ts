import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer } from 'node:net';
import { Redis } from 'ioredis';
import { describe, expect, test } from '@jest/globals';
import type { RedisClient } from '../../../src/redis/connection/client.ts';
import { closeRedis, connectRedis, isStoreUnavailable } from '../../../src/redis/connection/connect.ts';
import { describeWithOpenssl, makeCertificate } from '../../support/servers/certificate.ts';
import { startSentinel } from '../../support/servers/sentinels.ts';
import { startCluster } from '../../support/servers/redis-cluster.ts';
import { startRedis, testRedisUrl, unusedPort, type RedisProcess } from '../../support/redis.ts';
import { startStopwatch } from '../../support/stopwatch.ts';
import { until } from '../../support/until.ts';
import { useCleanup } from '../../support/use-store.ts';

const opened = useCleanup();

async function redis(...args: string[]) {
  const server = await startRedis(args);
  opened.push(server.stop);
  return server;
}

async function sentinelOf(master: RedisProcess): Promise<RedisProcess> {
  const sentinel = await startSentinel(master);
  opened.push(sentinel.stop);
  return sentinel;
}

async function open(url: string, options: Parameters<typeof connectRedis>[1] = {}): Promise<RedisClient> {
  const client = await connectRedis(url, options);
  opened.push(() => client.disconnect());
  return client;
}

/** The error of a command, and how long it took. */
async function refusal(attempt: Promise<unknown>): Promise<{ error: unknown; milliseconds: number }> {
  const elapsed = startStopwatch();
  try {
    await attempt;
  } catch (error) {
    return { error, milliseconds: elapsed() };
  }
  throw new Error('the command was answered');
}

/** With these a start that waits for the store, in the hope that it will do, takes longer than a test may. */
const withoutEnd = { startTimeout: 3_600_000 };

/** Unlike node:events' once, indifferent to errors, which are part of every outage. */
function event(client: RedisClient, name: string): Promise<void> {
  return new Promise((resolve) => {
    client.once(name, resolve);
  });
}

const info = 'redis_version:7.0.0\r\nrole:master\r\nmaxmemory_policy:noeviction\r\n';
const infoReply = `$${info.length}\r\n${info}\r\n`;

describe('a store that serves', () => {
  test('answers the commands of one turn in order', async () => {
    const client = await open((await redis()).url);
    const replies = await Promise.all(Array.from({ length: 100 }, () => client.incr('n')));
    expect(replies).toEqual(Array.from({ length: 100 }, (_, index) => index + 1));
  });

  test('is reached through a unix socket', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'pb-'));
    opened.push(() => rmSync(dir, { recursive: true }));
    await redis('--unixsocket', join(dir, 'a b.sock'));
    const client = await open(`unix://${dir}/a%20b.sock`);
    expect(await client.ping()).toBe('PONG');
  });

  test('is reached with a password that holds an @ and a %', async () => {
    const server = await redis('--requirepass', 'p@ss%/word');
    const client = await open(`redis://:p%40ss%25%2Fword@127.0.0.1:${server.port}`);
    expect(await client.ping()).toBe('PONG');
  });

  test('is given up after the start timeout where no connection can be begun, such as with an unusable key', async () => {
    await expect(
      connectRedis('rediss://127.0.0.1:1', { tls: { key: 'no key' }, startTimeout: 300 }),
    ).rejects.toThrow(/^Redis at rediss:\/\/127\.0\.0\.1:1 cannot be used \(/);
  });

  test('is reached through its sentinels', async () => {
    const server = await redis();
    const sentinel = await sentinelOf(server);
    const client = await open(`redis+sentinel://127.0.0.1:${sentinel.port}/main`);
    await client.set('k', 'v');
    expect(await client.get('k')).toBe('v');
  });

  test('may be closed twice, and when it is already away', async () => {
    const server = await startRedis();
    const client = await open(server.url);
    await server.stop();
    await closeRedis(client);
    await closeRedis(client);
    expect(isStoreUnavailable((await refusal(client.ping())).error)).toBe(true);
  });

  test('is not reached by TLS if it does not speak it, and the message says so', async () => {
    const server = await redis();
    await expect(connectRedis(`rediss://127.0.0.1:${server.port}`, { startTimeout: 1700 })).rejects.toThrow(
      /write redis:\/\/ if it does not speak TLS/,
    );
  });
});

describeWithOpenssl('a store behind TLS', () => {
  test('is reached with a private authority and a client certificate', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'pb-'));
    opened.push(() => rmSync(dir, { recursive: true }));
    const { cert, key } = makeCertificate(dir);
    const port = await unusedPort();
    const files = ['--tls-cert-file', cert, '--tls-key-file', key, '--tls-ca-cert-file', cert];
    await redis('--tls-port', String(port), ...files);
    const pem = readFileSync(cert, 'utf8');
    const client = await open(`rediss://127.0.0.1:${port}`, {
      tls: { ca: pem, cert: pem, key: readFileSync(key, 'utf8') },
    });
    expect(await client.ping()).toBe('PONG');
    await expect(connectRedis(`rediss://127.0.0.1:${port}`, { startTimeout: 300 })).rejects.toThrow(
      /self-signed certificate.*set REDIS_CA_FILE/,
    );
    await expect(connectRedis(`redis://127.0.0.1:${port}`, { startTimeout: 300 })).rejects.toThrow(
      /ECONNRESET.*write rediss:\/\/ if it speaks TLS/,
    );
    const stranger = makeCertificate(mkdtempSync(join(dir, 'stranger-')));
    const [foreign, foreignKey] = [stranger.cert, stranger.key].map((file) => readFileSync(file, 'utf8'));
    await expect(
      connectRedis(`rediss://127.0.0.1:${port}`, {
        tls: { ca: pem, cert: foreign, key: foreignKey },
        startTimeout: 300,
      }),
      // The connection may be reset before the reason has been read.
    ).rejects.toThrow(
      /(unknown ca|ECONNRESET).*set REDIS_CERT_FILE to a certificate that the server accepts/,
    );
  });
});

describe('a store that is away', () => {
  test.each(['SIGKILL', 'SIGSTOP'] as const)(
    'after %s refuses what is in flight and what comes later within 3 s',
    async (signal) => {
      const server = await redis();
      const client = await open(server.url);
      process.kill(server.pid, signal);
      const first = client.incr('n');
      await new Promise((resolve) => {
        setImmediate(resolve);
      });
      // The second one is sent while the first has no answer.
      for (const refused of await Promise.all([refusal(first), refusal(client.incr('n'))])) {
        expect(isStoreUnavailable(refused.error)).toBe(true);
        expect(refused.milliseconds).toBeLessThan(2000);
      }
      const later = await refusal(client.get('n'));
      expect(isStoreUnavailable(later.error)).toBe(true);
      expect(later.milliseconds).toBeLessThan(1700);
    },
  );

  test('is used again as soon as it is back, and logged once', async () => {
    const server = await startRedis(['--appendonly', 'yes']);
    const messages: string[] = [];
    const note = (message: string) => messages.push(message);
    const client = await open(server.url, { log: { warn: note, info: note } as never });
    const closed = event(client, 'close');
    await server.stop();
    await closed;
    await event(client, 'reconnecting');
    await event(client, 'reconnecting');
    // Asked for before: the client may be back before the server is known to answer.
    const ready = event(client, 'ready');
    await redis('--port', String(server.port));
    await ready;
    expect(await client.set('k', 'v')).toBe('OK');
    expect(messages).toEqual(['store lost, reconnecting', 'store is back']);
  });

  test('that refuses the password from now on is reported with the remedy', async () => {
    const server = await startRedis(['--requirepass', 'old']);
    const notes: [string, object | undefined][] = [];
    const note = (message: string, more?: object) => notes.push([message, more]);
    const url = server.url.replace('//', '//:old@');
    const client = await open(url, { log: { warn: note, info: note } as never });
    const closed = event(client, 'close');
    await client.config('SET', 'requirepass', 'new');
    client.disconnect(true);
    await closed;
    const [, found] = await until(() => notes.find(([message]) => message === 'store cannot be used'));
    expect(found).toMatchObject({
      reason: expect.stringContaining('WRONGPASS'),
      remedy: 'correct the user or password in REDIS_URL',
    });
    await server.stop();
  });

  test('never gets a write that has failed', async () => {
    const server = await startRedis();
    const client = await open(server.url);
    const closed = event(client, 'close');
    await server.stop();
    await closed;
    expect(isStoreUnavailable((await refusal(client.incr('n'))).error)).toBe(true);
    // Asked for before: the client may be back before the server is known to answer.
    const ready = event(client, 'ready');
    await redis('--port', String(server.port));
    await ready;
    expect(await client.get('n')).toBe(null);
  });

  test('refuses a write whose answer was lost instead of sending it again', async () => {
    const received: string[] = [];
    const server = createServer((socket) => {
      socket.on('data', (data) => {
        const text = data.toString().toLowerCase();
        received.push(text);
        if (text.includes('incr')) socket.destroy();
        else socket.write(text.includes('info') ? infoReply : '+OK\r\n');
      });
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    opened.push(() => server.close());
    const client = await open(`redis://127.0.0.1:${(server.address() as { port: number }).port}`);
    const again = event(client, 'close').then(() => event(client, 'ready'));
    expect(isStoreUnavailable((await refusal(client.incr('n'))).error)).toBe(true);
    await again;
    await client.ping();
    expect(received.filter((text) => text.includes('incr'))).toHaveLength(1);
  });

  test('is waited for at start', async () => {
    const port = await unusedPort();
    const connecting = open(`redis://127.0.0.1:${port}`);
    await redis('--port', String(port));
    expect(await (await connecting).ping()).toBe('PONG');
  });

  test('is waited for while it loads its data, and used as soon as it has', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'loading-'));
    opened.push(() => rmSync(folder, { recursive: true, force: true }));
    const before = await startRedis([], folder);
    const writer = await open(before.url);
    for (let n = 0; n < 1000; n++) void writer.set(`k${n}`, 'x'.repeat(100));
    await writer.save();
    await closeRedis(writer);
    await before.stop();
    const slow = ['--key-load-delay', '3000', '--loading-process-events-interval-bytes', '1024'];
    const loading = await startRedis(slow, folder);
    opened.push(loading.stop);
    await expect(connectRedis(loading.url, { startTimeout: 200 })).rejects.toThrow(
      /cannot be used \(it is loading its data\): wait until that is done$/,
    );
    expect(await (await open(loading.url, { startTimeout: 60_000 })).dbsize()).toBe(1000);
  });

  test('is used if its answer arrives during the last check before the start timeout', async () => {
    const server = createServer((socket) => {
      const elapsed = startStopwatch();
      let answers = 0;
      socket.on('data', (data) => {
        const reply = data.toString().toLowerCase().includes('info') ? infoReply : '+OK\r\n';
        setTimeout(() => socket.write(reply), 500 + 50 * answers++ - elapsed());
      });
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    opened.push(() => server.close());
    const { port } = server.address() as { port: number };
    const client = await open(`redis://127.0.0.1:${port}`, { startTimeout: 300 });
    expect(client.status).toBe('ready');
  });

  test('for too long at the start is reported in one line, with the remedy and without the password', async () => {
    const port = await unusedPort();
    const connecting = connectRedis(`redis://u:secret@127.0.0.1:${port}`, { startTimeout: 200 });
    await expect(connecting).rejects.toThrow(
      `Redis at redis://127.0.0.1:${port} cannot be used (connect ECONNREFUSED 127.0.0.1:${port}): start it, or correct REDIS_URL`,
    );
  });
});

test('what answers as no Redis does is refused, with the remedy', async () => {
  const port = await unusedPort();
  const server = createServer((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'));
  await once(server.listen(port, '127.0.0.1'), 'listening');
  const connecting = connectRedis(`redis://127.0.0.1:${port}`, { startTimeout: 200 });
  await expect(connecting).rejects.toThrow(
    /^Redis at redis:\S+ cannot be used \([^.]*\): what answers there is not Redis: correct REDIS_URL$/,
  );
  server.close();
});

describe('a store without an append-only file', () => {
  test('is warned about', async () => {
    const warnings: string[] = [];
    const log = { warn: (message: string) => warnings.push(message) } as never;
    await open((await redis('--appendonly', 'yes')).url, { log });
    expect(warnings).toEqual([]);
    await open((await redis()).url, { log });
    expect(warnings).toEqual([expect.stringContaining('set appendonly yes')]);
  });
});

describe('a store that the bridge cannot use', () => {
  test('because it evicts is refused, unless that is allowed', async () => {
    const { url } = await redis('--maxmemory', '100mb', '--maxmemory-policy', 'allkeys-lru');
    await expect(connectRedis(url)).rejects.toThrow(
      /may throw profiles away \(maxmemory-policy is allkeys-lru\): set it to noeviction, or start with ALLOW_EVICTION=1/,
    );
    const client = await open(url, { allowEviction: true });
    expect(await client.ping()).toBe('PONG');
  });

  test('because the password is wrong is refused at once, with the remedy', async () => {
    const { port } = await redis('--requirepass', 'right');
    const attempt = await refusal(connectRedis(`redis://:wrong@127.0.0.1:${port}`, withoutEnd));
    expect(String(attempt.error)).toMatch(/WRONGPASS.*correct the user or password in REDIS_URL/);
    expect(String(attempt.error)).not.toContain(':wrong');
    await expect(connectRedis(`redis://127.0.0.1:${port}`)).rejects.toThrow(/NOAUTH.*user or password/);
  });

  test('because it is a replica is refused, naming its master', async () => {
    const master = await redis();
    const replica = await redis('--replicaof', '127.0.0.1', String(master.port));
    await expect(connectRedis(replica.url)).rejects.toThrow(`its master (127.0.0.1:${master.port})`);
  });

  test('because it has no connection to spare is refused, with the remedy', async () => {
    const { url } = await redis('--maxclients', '1');
    await open(url);
    await expect(connectRedis(url, { startTimeout: 300 })).rejects.toThrow(
      /max number of clients reached\): raise its maxclients/,
    );
  });

  test('because it is no cluster is refused, naming the right URL', async () => {
    const { port } = await redis();
    await expect(connectRedis(`redis+cluster://127.0.0.1:${port}`, { startTimeout: 300 })).rejects.toThrow(
      /not a node of a cluster: write redis:\/\//,
    );
  });

  test("because its sentinels do not know the master's name is refused, with the remedy", async () => {
    const { port } = await sentinelOf(await redis());
    await expect(
      connectRedis(`redis+sentinel://127.0.0.1:${port}/nobody`, { startTimeout: 300 }),
    ).rejects.toThrow(/cannot be used \(.*No such master.*\): end REDIS_URL with the master's name/);
  });

  test('because it is no sentinel is refused, naming the right URL', async () => {
    const { port } = await redis();
    await expect(
      connectRedis(`redis+sentinel://127.0.0.1:${port}/main`, { startTimeout: 300 }),
    ).rejects.toThrow(/unknown command.*it is not a sentinel: write redis:\/\//);
  });

  test('because it is a sentinel is refused, naming the right URL', async () => {
    const sentinel = await sentinelOf(await redis());
    await expect(connectRedis(sentinel.url)).rejects.toThrow(/write REDIS_URL as redis\+sentinel:/);
  });
});

describe('errors of a store that cannot serve just now', () => {
  test('include a full store, for writes alone', async () => {
    const client = await open((await redis('--maxmemory', '2mb')).url);
    await client.set('kept', 'v');
    let error: unknown;
    for (let n = 0; error === undefined && n < 1000; n++) {
      error = await client.set(`big${n}`, 'x'.repeat(100_000)).then(
        () => undefined,
        (refused: unknown) => refused,
      );
    }
    expect(String(error)).toContain('OOM');
    expect(isStoreUnavailable(error)).toBe(true);
    expect(await client.get('kept')).toBe('v');
  });

  test('include a script that does not end', async () => {
    const server = await redis('--busy-reply-threshold', '50');
    const client = await open(server.url, { commandTimeout: 10_000 });
    const other = await open(server.url);
    const endless = refusal(client.eval('while true do end', 0));
    let error: unknown;
    // Until the script has begun, the command is answered.
    while (!String(error).includes('BUSY')) error = await other.get('k').catch((busy: unknown) => busy);
    expect(isStoreUnavailable(error)).toBe(true);
    await other.script('KILL');
    expect(isStoreUnavailable((await endless).error)).toBe(false);
  });

  test('include permissions that its user has lost, for a command and within a script', async () => {
    const server = await redis();
    const operator = await open(server.url);
    await operator.call('ACL', 'SETUSER', 'bridge', 'on', '>secret', '~*', '+@all', '-get');
    const client = await open(`redis://bridge:secret@127.0.0.1:${server.port}`);
    for (const attempt of [client.get('k'), client.eval("return redis.call('GET', KEYS[1])", 1, 'k')]) {
      expect(isStoreUnavailable((await refusal(attempt)).error)).toBe(true);
    }
    await operator.call('ACL', 'SETUSER', 'bridge', '+get', 'resetkeys', '~other');
    for (const attempt of [client.get('k'), client.eval("return redis.call('GET', 'k')", 0)]) {
      expect(isStoreUnavailable((await refusal(attempt)).error)).toBe(true);
    }
  });

  test('do not include mistakes of the bridge', async () => {
    const client = await open(testRedisUrl());
    expect(isStoreUnavailable((await refusal(client.call('nonsense'))).error)).toBe(false);
    expect(isStoreUnavailable(new Error('BUSYGROUP Consumer Group name already exists'))).toBe(false);
    expect(isStoreUnavailable(new TypeError('x is undefined'))).toBe(false);
    expect(isStoreUnavailable('LOADING')).toBe(false);
  });
});

describe('a cluster', () => {
  test('serves, refuses within 3 s what a lost or silent master held, and serves its other slots', async () => {
    const cluster = await startCluster();
    opened.push(cluster.stop);
    const client = await open(cluster.url);
    const keys = Array.from({ length: 60 }, (_, n) => `k${n}`);
    await Promise.all(keys.map((key) => client.set(key, key)));
    await expect(connectRedis(cluster.masters[0]?.url ?? '')).rejects.toThrow(
      /write REDIS_URL as redis\+cluster:/,
    );
    process.kill(cluster.masters[0]?.pid ?? 0, 'SIGSTOP');
    const outcome = async (key: string) => {
      const elapsed = startStopwatch();
      const served = await client
        .get(key)
        .catch((error: unknown) => isStoreUnavailable(error) && 'unavailable');
      expect(elapsed()).toBeLessThan(3000);
      return served;
    };
    const first = await Promise.all(keys.map(outcome));
    expect(first).toContain('unavailable');
    expect(first).toContain('k1');
    expect(first.every((served, n) => served === 'unavailable' || served === keys[n])).toBe(true);
  });

  test('is waited for at start while a replica takes over', async () => {
    const cluster = await startCluster({ replicas: true });
    opened.push(cluster.stop);
    process.kill(cluster.masters[1]?.pid ?? 0, 'SIGKILL');
    const client = await open(cluster.url, { startTimeout: 60_000 });
    expect(await client.ping()).toBe('PONG');
  });

  test('is used without a master that stays silent, once a replica had time to take over', async () => {
    const cluster = await startCluster();
    opened.push(cluster.stop);
    process.kill(cluster.masters[0]?.pid ?? 0, 'SIGSTOP');
    const elapsed = startStopwatch();
    // As a tool connects: what it asks may take long, but not the start.
    const client = await open(cluster.url, { commandTimeout: 30_000, startTimeout: 8000 });
    expect(elapsed()).toBeLessThan(15_000);
    const keys = Array.from({ length: 30 }, (_, n) => `k${n}`);
    expect(await Promise.any(keys.map((key) => client.set(key, 'v')))).toBe('OK');
  });

  test('whose password is wrong is refused at once, with the remedy', async () => {
    const cluster = await startCluster();
    opened.push(cluster.stop);
    const direct = cluster.masters.map(({ url }) => new Redis(url));
    await Promise.all(direct.map((node) => node.config('SET', 'requirepass', 'right')));
    for (const node of direct) node.disconnect();
    const attempt = await refusal(connectRedis(cluster.url.replace('//', '//:wrong@'), withoutEnd));
    expect(String(attempt.error)).toMatch(/WRONGPASS.*correct the user or password in REDIS_URL/);
  });

  test('serves everything again once a replica has taken over', async () => {
    const cluster = await startCluster({ replicas: true });
    opened.push(cluster.stop);
    const client = await open(cluster.url);
    const keys = Array.from({ length: 30 }, (_, n) => `k${n}`);
    await Promise.all(keys.map((key) => client.set(key, '0')));
    process.kill(cluster.masters[1]?.pid ?? 0, 'SIGKILL');
    let refused = 1;
    while (refused > 0) {
      refused = 0;
      for (const key of keys) {
        try {
          await client.incr(key);
        } catch (error) {
          expect(isStoreUnavailable(error)).toBe(true);
          refused += 1;
        }
      }
    }
  });

  test('refuses everything within 3 s when all of it is away, and serves again when it is back', async () => {
    const cluster = await startCluster();
    opened.push(cluster.stop);
    const client = await open(cluster.url);
    await client.set('k', 'v');
    for (const { pid } of cluster.masters) process.kill(pid, 'SIGSTOP');
    for (let n = 0; n < 3; n++) {
      const attempts = Array.from({ length: 20 }, (_, key) => refusal(client.incr(`k${key}`)));
      for (const { error, milliseconds } of await Promise.all(attempts)) {
        expect({
          error: isStoreUnavailable(error) || error,
          slow: milliseconds > 3000 && milliseconds,
        }).toEqual({
          error: true,
          slow: false,
        });
      }
    }
    for (const { pid } of cluster.masters) process.kill(pid, 'SIGCONT');
    let served: unknown;
    while (served !== 'v') served = await client.get('k').catch(() => undefined);
  });

  test('with one master that evicts is refused, naming that master', async () => {
    const cluster = await startCluster();
    opened.push(cluster.stop);
    const evicting = cluster.masters[2];
    const direct = new Redis(evicting?.url ?? '');
    await direct.config('SET', 'maxmemory-policy', 'volatile-lru');
    direct.disconnect();
    await expect(connectRedis(cluster.url)).rejects.toThrow(`Redis at 127.0.0.1:${evicting?.port} may throw`);
  });
});
