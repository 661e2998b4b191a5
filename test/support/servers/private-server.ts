import { execFileSync, spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { chownSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { once } from 'node:events';
import { unusedPort } from '../redis.ts';

/** A database server that belongs to one test file. */
export interface PrivateServer {
  /** The URL of a database, as --source takes it. */
  url: (database: string) => string;
  stop: () => Promise<void>;
}

/** What a server process needs. */
export interface Place {
  /** Who it runs as, since database servers refuse to run as root: undefined is this process's own user. */
  account: { uid: number; gid: number } | undefined;
  /** A new one that the account owns. */
  folder: string;
  port: number;
}

/** A place for a server that root starts as this system user. */
export async function placeFor(user: string): Promise<Place> {
  const folder = mkdtempSync(join(tmpdir(), `${user}-`));
  const port = await unusedPort();
  if (process.getuid?.() !== 0) return { account: undefined, folder, port };
  const ask = (flag: string): number => Number(execFileSync('id', [flag, user], { encoding: 'utf8' }));
  const account = { uid: ask('-u'), gid: ask('-g') };
  chownSync(folder, account.uid, account.gid);
  return { account, folder, port };
}

/** Starts a server and resolves once its standard error says it is ready; its end removes the folder. */
export async function startServer(options: {
  command: string;
  args: readonly string[];
  account: Place['account'];
  folder: string;
  env?: NodeJS.ProcessEnv;
  ready: RegExp;
  signal: NodeJS.Signals;
}): Promise<() => Promise<void>> {
  const { command, args, account, folder, env = process.env, ready, signal } = options;
  const server = spawn(command, [...args], {
    ...account,
    cwd: folder,
    env,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const killWithUs = (): void => void server.kill('SIGKILL');
  process.once('exit', killWithUs);
  await untilReady(server, ready);
  return async () => {
    process.off('exit', killWithUs);
    if (server.exitCode === null && server.signalCode === null) {
      server.kill(signal);
      await once(server, 'exit');
    }
    rmSync(folder, { recursive: true, force: true });
  };
}

function untilReady(server: ChildProcess, ready: RegExp): Promise<void> {
  return new Promise((resolve, reject) => {
    let said = '';
    server.stderr?.on('data', (chunk: Buffer) => {
      said = (said + chunk.toString('utf8')).slice(-20_000);
      if (ready.test(said)) resolve();
    });
    server.once('error', reject);
    server.once('exit', (code) =>
      reject(new Error(`the server ended (${code}) before it was ready:\n${said}`)),
    );
  });
}
