import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, test } from '@jest/globals';

async function run(script: string, ...args: string[]): Promise<{ code: unknown; err: string }> {
  const child = spawn(process.execPath, ['--import', 'tsx', `scripts/${script}.ts`, ...args], {
    stdio: ['ignore', 'ignore', 'pipe'],
    timeout: 60_000,
  });
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
])('scripts/%s.ts %j is wrong usage: one line, and exit code 2', async (script, args, line) => {
  const { code, err } = await run(script, ...args);
  expect({ code, err }).toEqual({ code: 2, err: expect.stringContaining(line) });
});
