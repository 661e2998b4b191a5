import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, openSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { until } from '../support/until.ts';

/** Nobody reads its standard output. */
async function run(script: string, ...args: string[]): Promise<{ code: unknown; err: string }> {
  const child = spawn(process.execPath, ['--import', 'tsx', `scripts/${script}.ts`, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: 60_000,
  });
  child.stdout.destroy();
  let err = '';
  child.stderr.on('data', (chunk) => (err += String(chunk)));
  const [code] = (await once(child, 'close')) as [unknown];
  return { code, err };
}

test.each([
  ['bench/bench', ['nothing'], 'error: no such section: nothing: see npm run bench -- --help'],
  ['drills/drills', ['tools', '--tool', 'nothing'], 'error: nothing to drill matches these options'],
  ['drills/drills', ['tools', '--step', '0'], 'It must be a whole number of at least 1.'],
  ['rehearsal/rehearsal', ['--user', '5'], "error: unknown option '--user' (Did you mean --users?)"],
  ['bench/studies/growth', ['many'], 'It must be a whole number of at least 1.'],
  ['drills/drills', ['fuzz', '--seed', ''], 'It must be a whole number of at least 0.'],
  ['bench/studies/simulate-slots', ['10', '2abc'], 'It must be a number of at least 0, such as 1.2.'],
  ['bench/studies/simulate-slots', ['10', 'Infinity'], 'It must be a number of at least 0, such as 1.2.'],
])('scripts/%s.ts %j is wrong usage: one line, and exit code 2', async (script, args, line) => {
  const { code, err } = await run(script, ...args);
  expect({ code, err }).toEqual({ code: 2, err: expect.stringContaining(line) });
});

test.each(['admin', 'profile-bridge', 'drills/drills'])(
  'scripts/%s.ts ends quietly if nobody reads what it prints',
  async (script) => {
    expect(await run(script, '--help')).toEqual({ code: 0, err: '' });
  },
);

test.each(['SIGINT', 'SIGTERM'] as const)(
  'drills that get %s take what they started with them',
  async (signal) => {
    const folder = mkdtempSync(join(tmpdir(), 'pbtest-drills-'));
    const drills = spawn(
      process.execPath,
      ['--import', 'tsx', 'scripts/drills/drills.ts', 'history', '--fault', 'none'],
      { env: { ...process.env, TMPDIR: folder }, stdio: 'ignore' },
    );
    const hasBridge = () =>
      readdirSync(folder, { recursive: true }).some((name) => String(name).includes('drill-bridge-'));
    await until(hasBridge);
    const ended = once(drills, 'close');
    drills.kill(signal);
    expect(await ended).toEqual([130, null]);
    expect(readdirSync(folder).filter((name) => name.startsWith('drills-'))).toEqual([]);
    rmSync(folder, { recursive: true, force: true });
  },
);

test('a tool whose standard output cannot be written says so and fails', () => {
  const { status, stderr } = spawnSync(process.execPath, ['--import', 'tsx', 'scripts/admin.ts', '--help'], {
    stdio: ['ignore', openSync('/dev/full', 'w'), 'pipe'],
    encoding: 'utf8',
  });
  expect({ status, stderr }).toEqual({
    status: 1,
    stderr: 'error: standard output cannot be written (ENOSPC)\n',
  });
});
