import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { expect, test } from '@jest/globals';

const execute = promisify(execFile);

/** A tool that needs some time, its argument in ms, to stop at its next safe point. */
const tool = `
  import { setTimeout } from 'node:timers/promises';
  import { runFromShell } from './src/cli/shell.ts';
  await runFromShell(async ({ out, signal }) => {
    await new Promise((resolve) => {
      signal.addEventListener('abort', resolve);
      setTimeout(60_000);
      out('ready\\n');
    });
    out('stopping\\n');
    await setTimeout(Number(process.argv[1]));
    out('stopped\\n');
    return 130;
  });
  process.exit();
`;

/** What the tool prints, and its exit code, if it gets SIGINT after each of these times, in ms. */
async function interrupted(stopsAfter: number, after: number[]): Promise<{ code: number; out: string }> {
  const args = ['--import', 'tsx', '--input-type=module', '--eval', tool, String(stopsAfter)];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  let out = '';
  child.stdout.on('data', (chunk) => (out += String(chunk)));
  const closed = once(child, 'close');
  await once(child.stdout, 'data');
  for (const ms of after) {
    await sleep(ms);
    child.kill('SIGINT');
  }
  const [code] = (await closed) as [number];
  return { code, out };
}

test('a tool stops at its next safe point, also if npm forwards the signal that the terminal has sent', async () => {
  expect(await interrupted(2500, [0, 20])).toEqual({ code: 130, out: 'ready\nstopping\nstopped\n' });
});

test('a second signal later on ends a tool at once', async () => {
  expect(await interrupted(60_000, [0, 1500])).toEqual({ code: 130, out: 'ready\nstopping\n' });
});

test('Ctrl-D at a question is no answer', async () => {
  const asking = `
    import { runFromShell } from './src/cli/shell.ts';
    process.stdin.isTTY = process.stderr.isTTY = true;
    await runFromShell(async ({ ask, out }) => {
      out(JSON.stringify(await ask('Sure?')));
      return 0;
    });
  `;
  const child = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '--eval', asking], {
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  let out = '';
  child.stdout.on('data', (chunk) => (out += String(chunk)));
  const closed = once(child, 'close');
  await once(child.stderr, 'data');
  child.stdin.end('\u0004');
  expect(await closed).toEqual([0, null]);
  expect(out).toBe('""');
});

test.each([
  ['cannot be written', '>/dev/full'],
  ['has no reader', '| true'],
])('what can be shown only once is an error if standard output %s', async (_where, redirection) => {
  const showing = `
    import { setTimeout } from 'node:timers/promises';
    import { runFromShell } from './src/cli/shell.ts';
    await setTimeout(500);
    await runFromShell(async ({ out }) => {
      out('secret', 'lost: revoke it');
      await setTimeout(100);
      return 0;
    });
  `;
  const command = `{ "$0" --import tsx --input-type=module --eval "$1"; echo "code $?" >&2; } ${redirection}`;
  const { stderr } = await execute('sh', ['-c', command, process.execPath, showing]);
  expect(stderr).toMatch(/^error: lost: revoke it\n(error: standard output cannot .*\n)?code 1\n$/);
});

test('a signal interrupts a question', async () => {
  const asking = `
    import { runFromShell } from './src/cli/shell.ts';
    process.stdin.isTTY = true;
    await runFromShell(async ({ ask, signal }) => {
      await ask('Sure?').catch(() => {});
      return signal.aborted ? 130 : 0;
    });
  `;
  const child = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '--eval', asking], {
    stdio: ['pipe', 'ignore', 'pipe'],
  });
  const exited = once(child, 'exit');
  await once(child.stderr, 'data');
  child.kill('SIGINT');
  // A second one would end the tool at once.
  const stuck = sleep(5000, 'stuck', { ref: false });
  const end = await Promise.race([exited, stuck]);
  child.kill('SIGKILL');
  expect(end).toEqual([130, null]);
});
