import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runMigrate } from '../../../src/cli/migrate/run.ts';
import { programOf } from '../run/program.ts';
import { environmentFor, freshPrefix, testRedisUrl } from '../redis.ts';

/** What one call of the tool came to. */
export interface Call {
  exitCode: number;
  /** Standard output, parsed if it is JSON. */
  json: Record<string, unknown>;
  out: string;
  err: string;
}

/** The migration tool on a part of a Redis that nobody else uses. */
export interface Tool {
  env: Record<string, string>;
  prefix: string;
  /** Runs it in this process, with --json. */
  json: (...args: string[]) => Promise<Call>;
  /** Runs it in this process, as people do. */
  text: (...args: string[]) => Promise<Call>;
  /** Runs it in this process at a terminal, where the person gives this answer. */
  answering: (answer: string, ...args: string[]) => Promise<Call & { question: string }>;
  /** Starts it as a process of its own, with --json. */
  start: (...args: string[]) => ChildProcess;
  /** All that Redis holds, by file name. */
  contents: () => Promise<Record<string, string>>;
}

export function createTool(redisUrl = testRedisUrl(), prefix = freshPrefix()): Tool {
  const env = {
    ...environmentFor(prefix, redisUrl),
    PUBLIC_BASE_URL: 'https://bridge.example.com',
    DATA_DIR: newFolder(),
  };
  const run = async (args: readonly string[], ask?: (question: string) => Promise<string>): Promise<Call> => {
    let out = '';
    let err = '';
    const exitCode = await runMigrate(args, {
      env,
      out: (more) => {
        out += more;
      },
      err: {
        write: (more) => {
          err += more;
        },
      },
      signal: new AbortController().signal,
      ask,
    });
    return { exitCode, out, err, json: {} };
  };
  const text: Tool['text'] = async (...args) => await run(args);
  const json: Tool['json'] = async (...args) => {
    const call = await text(...args, '--json');
    return { ...call, json: call.out === '' ? {} : (JSON.parse(call.out) as Record<string, unknown>) };
  };
  return {
    env,
    prefix,
    text,
    json,
    answering: async (answer, ...args) => {
      let question = '';
      const call = await run(args, async (asked) => {
        question = asked;
        return answer;
      });
      return { ...call, question };
    },
    start: (...args) =>
      spawn(process.execPath, [...programOf('scripts/migrate'), ...args, '--json'], {
        env: { ...process.env, NODE_OPTIONS: '', ...env },
        stdio: ['ignore', 'pipe', 'pipe'],
      }),
    contents: async () => {
      const folder = join(newFolder(), 'export');
      const { exitCode, err } = await json('export', '--to', folder);
      if (err.includes('there is nothing to export')) return {};
      if (exitCode !== 0) throw new Error(err);
      return Object.fromEntries(
        readdirSync(folder).map((name) => [name, readFileSync(join(folder, name), 'utf8')]),
      );
    },
  };
}

/** A new folder for temporary files. */
export function newFolder(): string {
  return mkdtempSync(join(tmpdir(), 'migration-test-'));
}

/** Writes records as NDJSON files of a new folder. */
export function writeSource(files: Record<string, readonly object[]>, folder = newFolder()): string {
  for (const [entity, records] of Object.entries(files)) {
    writeFileSync(
      join(folder, `${entity}.ndjson`),
      records.map((record) => `${JSON.stringify(record)}\n`).join(''),
    );
  }
  return folder;
}

/** Waits for a process's end; its exit code, and what it printed. */
export async function ended(
  child: ChildProcess,
): Promise<{ code: number | null; signal: NodeJS.Signals | null; out: string; err: string }> {
  let out = '';
  let err = '';
  child.stdout?.on('data', (chunk: Buffer) => {
    out += chunk.toString();
  });
  child.stderr?.on('data', (chunk: Buffer) => {
    err += chunk.toString();
  });
  const [code, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null];
  return { code, signal, out, err };
}
