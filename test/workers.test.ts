import cluster from 'node:cluster';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { startWorkers } from '../src/workers.ts';
import { until } from './support/until.ts';
import { useCleanup } from './support/use-store.ts';

const undo = useCleanup();

/** A worker that answers every request with its process ID. */
const program = `
  import { createServer } from 'node:http';
  createServer((request, response) => response.end(String(process.pid))).listen(0, '127.0.0.1');
  process.on('SIGTERM', () => process.exit());
`;

/** Lets this process start workers; they can be started as long as the folder `cwd` is there. */
function prepareWorkers(): { cwd: string } {
  const folder = mkdtempSync(join(tmpdir(), 'workers-'));
  undo.push(() => rmSync(folder, { recursive: true }));
  const exec = join(folder, 'worker.mjs');
  writeFileSync(exec, program);
  const cwd = mkdtempSync(join(folder, 'cwd-'));
  cluster.setupPrimary({ exec, execArgv: [], args: [], cwd });
  return { cwd };
}

/** Collects the messages of a log. */
function collectLog() {
  const logged: [string, Record<string, unknown>][] = [];
  const error = (message: string, details: Record<string, unknown>) => logged.push([message, details]);
  return { logged, log: { error } as never };
}

const workers = () => Object.values(cluster.workers ?? {}).flatMap((worker) => worker ?? []);

describe('a worker that the system refuses to start', () => {
  test('ends the start with the reason in one line, and the others with it', async () => {
    const { cwd } = prepareWorkers();
    rmSync(cwd, { recursive: true });
    await expect(startWorkers(2, {}, 0, collectLog().log)).rejects.toThrow(
      /^a worker could not be started \(spawn .* ENOENT\): [^\n]*$/,
    );
    expect(workers()).toEqual([]);
  });

  test('is tried again while the others serve', async () => {
    const { cwd } = prepareWorkers();
    const { logged, log } = collectLog();
    const { port, close } = await startWorkers(2, {}, 0, log);
    undo.push(close);
    rmSync(cwd, { recursive: true });
    workers()[0]?.process.kill('SIGKILL');
    const refused = () => logged.filter(([message]) => message === 'a worker could not be started');
    await until(() => refused().length > 1);
    expect(refused()[0]?.[1]).toEqual({ reason: expect.stringMatching(/ENOENT/) });
    expect((await fetch(`http://127.0.0.1:${port}`)).status).toBe(200);
  });
});

test('a worker that is killed while it hangs leaves no connection without an end', async () => {
  prepareWorkers();
  const { port, close } = await startWorkers(2, {}, 0, collectLog().log);
  undo.push(close);
  const [hanging, serving] = workers().map(({ process: child }) => child);
  hanging?.kill('SIGSTOP');
  const requests = Array.from({ length: 12 }, () => exchange(port));
  // All that the other worker gets: the hanging one is handed one connection, and no more until it accepts it.
  await until(() => requests.filter(({ ended }) => ended).length === 11);
  hanging?.kill('SIGKILL');
  const answers = await Promise.all(requests.map(({ answer }) => answer));
  const whole = answers.filter((answer) => answer.endsWith(String(serving?.pid)));
  expect([whole.length, answers.filter((answer) => answer === '').length]).toEqual([11, 1]);
});

/** A request on a connection of its own, and what came back until its end. */
function exchange(port: number) {
  const socket = connect(port, '127.0.0.1').setEncoding('utf8');
  socket.write('GET / HTTP/1.0\r\n\r\n');
  const state = { ended: false, answer: read() };
  return state;
  async function read(): Promise<string> {
    let answer = '';
    try {
      for await (const part of socket) answer += String(part);
    } catch {
      // A connection that is reset has ended, too.
    }
    state.ended = true;
    return answer;
  }
}
