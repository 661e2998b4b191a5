import { type ChildProcess, type ChildProcessByStdio, spawn } from 'node:child_process';
import { hash } from 'node:crypto';
import { once } from 'node:events';
import { lstatSync, mkdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join, resolve } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { makeDirectory } from '../../lib/files/make-directory.ts';
import { attemptWrite } from '../../lib/files/text-file.ts';
import type { Log } from '../../log.ts';
import { infoField } from './client.ts';

export interface Embedded {
  /** For connectRedis. */
  url: string;
  /** Stops the server if it was started here, and waits until its data is safe. May be called twice. */
  close: () => Promise<void>;
}

/**
 * Starts a redis-server (or valkey-server) from the PATH on `dataDir`/redis: no TCP port, a socket only this user can
 * open, every write on disk before it is answered. Should it die, it is started again. It ends with `close`, or with
 * this process, even one killed by SIGKILL; a lock keeps it the only one on its data. An operator's tool `joins` that
 * of a running bridge or tool; a tool that started it ends it once no other uses it. Rejects with an Error of one line
 * with the remedy.
 */
export async function openEmbedded({ dataDir, log, joins = false }: EmbeddedOptions): Promise<Embedded> {
  const place = preparePlace(dataDir);
  const closing = new AbortController();
  // A bridge that has just been killed needs a moment to end, one that is just starting may have much data to load.
  const deadline = performance.now() + (joins ? 30_000 : 4000);
  for (;;) {
    const joined = joins ? await joinServer(place.socket) : undefined;
    if (joined !== undefined) return { url: place.url, close: async () => void joined.close() };
    tryToWrite(place);
    const server = await startServer(place, closing.signal);
    if (server !== 'locked') {
      const supervised = supervise(place, server, closing, log);
      if (!joins) return supervised;
      const close = async () => {
        const notice = setTimeout(() => process.stderr.write(stillInUse), 1000);
        let last: Conversation | undefined;
        // Another tool may have joined.
        while ((last = await leaveLast(place.socket)) === undefined) await sleep(100);
        clearTimeout(notice);
        await supervised.close();
        last.close();
      };
      return { url: place.url, close };
    }
    if (performance.now() > deadline) throw new Error(inUse(place));
    await sleep(100);
  }
}

const stillInUse = 'waiting for another tool that uses the embedded Redis, which would end with this one\n';

interface EmbeddedOptions {
  dataDir: string;
  log?: Log | undefined;
  joins?: boolean | undefined;
}

/** Where the server has its data and its socket. */
type Place = ReturnType<typeof preparePlace>;

/** The script that runs the server, and its end. */
interface Server {
  wrapper: ChildProcessByStdio<Writable, Readable, null>;
  exited: Promise<unknown>;
}

function preparePlace(dataDir: string) {
  const given = resolve(dataDir);
  writing(given, () => makeDirectory(join(given, 'redis'), 0o700));
  // The same folder by any path, so that all find the same socket.
  const folder = realpathSync(join(given, 'redis'));
  const socket = socketPath(folder);
  const url = `unix://${socket.split('/').map(encodeURIComponent).join('/')}`;
  return { dataDir: given, folder, socket, url };
}

function writing(dataDir: string, work: () => void): void {
  const remedy = 'let this user write there, or set DATA_DIR to a folder that it may write to';
  attemptWrite(`DATA_DIR ${dataDir}`, remedy, work);
}

/** Without space, the server would start, and end with the first write. */
function tryToWrite({ dataDir, folder }: Place): void {
  const file = join(folder, `test-${process.pid}`);
  try {
    writing(dataDir, () => writeFileSync(file, Buffer.alloc(4096), { flush: true }));
  } finally {
    rmSync(file, { force: true });
  }
}

/** In the data folder, unless its path is longer than the system allows for sockets. */
function socketPath(folder: string): string {
  const socket = join(folder, 'redis.sock');
  if (Buffer.byteLength(socket) <= 100) return socket;
  const user = process.getuid?.() ?? 0;
  const short = `/tmp/profile-bridge-${user}-${hash('sha1', folder).slice(0, 16)}`;
  mkdirSync(short, { recursive: true, mode: 0o700 });
  const found = lstatSync(short);
  if (!found.isDirectory() || found.uid !== user || (found.mode & 0o077) !== 0) {
    throw new Error(
      `${short} is not this user's private folder: remove it, or set DATA_DIR to a shorter path`,
    );
  }
  return join(short, 'redis.sock');
}

/** Resolves once the server answers; it ends on `closing`. Throws when it cannot run. */
async function startServer(place: Place, closing: AbortSignal): Promise<Server | 'locked'> {
  const script = fileURLToPath(new URL('embedded.sh', import.meta.url));
  const wrapper = spawn('sh', [script, place.folder, place.socket], {
    // Its own process group: a signal to the bridge's group must not stop it before its data is safe.
    detached: true,
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  const exited = once(wrapper, 'exit');
  // With no process or open file left, it has not started, and rejects.
  if (wrapper.pid === undefined) await exited;
  const end = () => {
    wrapper.ref();
    wrapper.stdin.destroy();
  };
  closing.addEventListener('abort', end);
  // Also if only the script was killed: what it left behind ends with its input.
  wrapper.once('exit', () => {
    closing.removeEventListener('abort', end);
    wrapper.stdin.destroy();
  });
  const hasEnded = (): boolean => wrapper.exitCode !== null || wrapper.signalCode !== null;
  // Its first line means that the lock is ours; before that, the server of another process might answer.
  await Promise.race([once(wrapper.stdout, 'data'), exited]);
  while (!hasEnded() && !(await answers(place.socket))) await sleep(10);
  if (wrapper.exitCode === 75) return 'locked';
  if (wrapper.exitCode === 127) {
    throw new Error(
      'no redis-server or valkey-server on the PATH: run `npm run redis:install`, or set REDIS_URL',
    );
  }
  if (wrapper.exitCode === 69) {
    throw new Error(
      'neither flock nor perl is on the PATH, and the embedded Redis needs one of them to lock its data: install one, or set REDIS_URL',
    );
  }
  if (hasEnded()) {
    throw new Error(`the embedded Redis ended at start (${lastWords(place)}): see ${place.folder}/redis.log`);
  }
  for (const handle of [wrapper, wrapper.stdin, wrapper.stdout]) (handle as unknown as ChildProcess).unref();
  return { wrapper, exited };
}

/** The status of a shell whose program was ended by SIGKILL. */
const killed = 128 + 9;

/** Starts the server again whenever it ends by itself, until closed. */
function supervise(place: Place, first: Server, closing: AbortController, log?: Log): Embedded {
  const { signal } = closing;
  const watch = async () => {
    let server: Server | 'locked' | undefined = first;
    for (let delay = 50; ; delay = Math.min(2 * delay, 2000)) {
      if (server !== undefined && server !== 'locked') {
        await server.exited;
        const status = server.wrapper.exitCode;
        if (!signal.aborted)
          log?.warn('the embedded Redis ended', { status, reason: whyEnded(place, status) });
        delay = 50;
      }
      await sleep(delay, undefined, { ref: false, signal }).catch(() => {});
      if (signal.aborted) return;
      server = await startServer(place, signal).catch((error: unknown) => {
        if (!signal.aborted)
          log?.error('the embedded Redis does not start', { reason: (error as Error).message });
        return undefined;
      });
    }
  };
  const ended = watch();
  return {
    url: place.url,
    close: async () => {
      closing.abort();
      await ended;
    },
  };
}

/** Whether a server answers PING here; one that is still loading its data does not. */
async function answers(socket: string): Promise<boolean> {
  const conversation = converse(socket);
  const reply = await conversation.ask('PING');
  conversation.close();
  return reply.startsWith('+PONG');
}

/** The name of the connection by which a tool says that it ends the server. */
const ending = 'ending';

/** A connection that keeps the server here running until it is closed; undefined if none answers, or it is ending. */
async function joinServer(socket: string): Promise<Conversation | undefined> {
  const conversation = converse(socket);
  const isReady = (await conversation.ask('PING')).startsWith('+PONG');
  const clients = isReady ? await conversation.ask('CLIENT LIST') : '';
  if (clients !== '' && !clients.includes(` name=${ending} `)) return conversation;
  conversation.close();
  return undefined;
}

/** A connection that nobody joins beside, until it is closed; undefined if somebody else is connected. */
async function leaveLast(socket: string): Promise<Conversation | undefined> {
  // A server whose disk is busy may take long to answer, and still be in use.
  const conversation = converse(socket, 10_000);
  await conversation.ask(`CLIENT SETNAME ${ending}`);
  const clients = infoField(await conversation.ask('INFO clients'), 'connected_clients') ?? 0;
  // This very connection is one of them.
  if (Number(clients) <= 1) return conversation;
  conversation.close();
  return undefined;
}

/** A connection to the server here, and the replies to its commands: empty where there is none within `maxMs`. */
type Conversation = ReturnType<typeof converse>;

function converse(socket: string, maxMs = 1000) {
  const connection = connect(socket).unref();
  connection.on('error', () => {});
  const replies = connection[Symbol.asyncIterator]() as AsyncIterator<Buffer, undefined>;
  return {
    ask: async (command: string): Promise<string> => {
      connection.ref().setTimeout(maxMs, () => connection.destroy());
      connection.write(`${command}\r\n`);
      const reply = await replies.next().catch(() => undefined);
      connection.unref().setTimeout(0);
      return String(reply?.value ?? '');
    },
    close: () => connection.destroy(),
  };
}

function inUse({ dataDir, folder }: Place): string {
  const owner = readFileSync(join(folder, 'lock'), 'utf8').trim();
  return `DATA_DIR ${dataDir} is in use by process ${owner}: stop that bridge or tool, or set DATA_DIR to another folder`;
}

function whyEnded(place: Place, status: number | null): string {
  if (status === killed) return 'it was killed, as by the system when memory is short';
  try {
    tryToWrite(place);
    return lastWords(place);
  } catch (error) {
    return (error as Error).message;
  }
}

/** Why the server ended, according to its log. */
function lastWords(place: Place): string {
  const lines = readFileSync(join(place.folder, 'redis.log'), 'utf8').trim().split('\n').slice(-10);
  if (lines.some((line) => line.includes("Can't handle RDB format"))) {
    return 'its data was written by a newer Redis, or by Valkey: put that server on the PATH, and no other before it';
  }
  const complaint = lines.findLast((line) => / # (?!WARNING)/.test(line)) ?? lines.at(-1) ?? '';
  return complaint.replace(/^.* # /, '');
}
