import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { describe, expect, test } from '@jest/globals';
import { startStopwatch } from '../support/stopwatch.ts';
import { programOf } from '../support/run/program.ts';

const program = programOf('scripts/profile-bridge');

interface Result {
  code: number;
  out: string;
  err: string;
}

/** Runs the command as a shell would. */
async function profileBridge(...args: string[]): Promise<Result> {
  return await new Promise((resolve) => {
    execFile(
      process.execPath,
      [...program, ...args],
      { env: { PATH: process.env['PATH'] } },
      (error, out, err) => resolve({ code: Number(error?.code ?? 0), out, err }),
    );
  });
}

const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };

describe('profile-bridge', () => {
  test.each(['--version', 'serve --version', 'admin --version', 'migrate --version'])(
    '%s prints the version of package.json',
    async (command) => {
      expect(await profileBridge(...command.split(' '))).toEqual({ code: 0, out: `${version}\n`, err: '' });
    },
  );

  test('--help lists the commands', async () => {
    const { code, out } = await profileBridge('--help');
    expect(code).toBe(0);
    for (const command of ['serve', 'admin', 'migrate'])
      expect(out).toMatch(new RegExp(`^ {2}${command}`, 'm'));
  });

  test('serve --help describes the service without starting it', async () => {
    const { code, out } = await profileBridge('serve', '--help');
    expect(code).toBe(0);
    expect(out).toContain('Usage: profile-bridge serve [options]');
    expect(out).toContain('profile-bridge serve\n');
  });

  test('serve ends with exit code 0 if it is to stop while it is still loading', async () => {
    const stopAtOnce =
      "setInterval(() => process.listenerCount('SIGTERM') > 0 && process.kill(process.pid, 'SIGTERM')).unref()";
    const child = spawn(process.execPath, [
      '--import',
      `data:text/javascript,${stopAtOnce}`,
      ...program,
      'serve',
    ]);
    let log = '';
    child.stdout.on('data', (chunk) => (log += String(chunk)));
    expect(await once(child, 'close')).toEqual([0, null]);
    expect(log).toBe('');
  });

  test.each(['serve', 'admin', 'migrate'])('%s --help ends quietly if nobody reads it', async (tool) => {
    const child = spawn(process.execPath, [...program, tool, '--help']);
    child.stdout.destroy();
    let err = '';
    child.stderr.on('data', (chunk) => (err += String(chunk)));
    const [code] = (await once(child, 'close')) as [number];
    expect({ code, err }).toEqual({ code: 0, err: '' });
  });

  test.each(['admin', 'migrate'])('%s passes its arguments on to the tool, --help included', async (tool) => {
    const { code, out } = await profileBridge(tool, '--help');
    expect(code).toBe(0);
    expect(out).toContain(`Usage: profile-bridge ${tool} [options] [command]`);
  });

  test.each([
    ['help', 'profile-bridge [options]'],
    ['help serve', 'profile-bridge serve'],
    ['help migrate', 'profile-bridge migrate [options] [command]'],
    ['help migrate plan', 'profile-bridge migrate plan [options]'],
    ['help admin org set', 'profile-bridge admin org set [options] <organization>'],
  ])('%s is the help of that command', async (command, usage) => {
    const { code, out, err } = await profileBridge(...command.split(' '));
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(out).toContain(`Usage: ${usage}`);
  });

  test.each(['admin org list', 'migrate status'])(
    '%s ends at once on SIGINT if Redis is silent',
    async (command) => {
      const silent = createServer().listen(0, '127.0.0.1');
      await once(silent, 'listening');
      const { port } = silent.address() as AddressInfo;
      const args = [...program, ...command.split(' ')];
      const env = { PATH: process.env['PATH'], REDIS_URL: `redis://127.0.0.1:${port}` };
      const child = spawn(process.execPath, args, { env });
      let err = '';
      child.stderr.on('data', (chunk) => (err += String(chunk)));
      await once(silent, 'connection');
      const elapsed = startStopwatch();
      child.kill('SIGINT');
      const [code] = (await once(child, 'close')) as [number];
      silent.close();
      expect({ code, err }).toEqual({
        code: 130,
        err: expect.stringMatching(/^error: interrupted[^\n]*\n$/),
      });
      // Redis would be waited for until 5 s after the start.
      expect(elapsed()).toBeLessThan(2000);
    },
  );

  test('an unknown command is one line with the way to the help, and exit code 2', async () => {
    const { code, err } = await profileBridge('sevre');
    expect(code).toBe(2);
    expect(err).toMatch(/^error: unknown command 'sevre'.* profile-bridge --help\n$/);
  });
});
