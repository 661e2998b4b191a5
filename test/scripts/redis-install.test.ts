import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from '@jest/globals';

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

/** Runs it where the PATH has this server and no way to install another. */
function install(program: string, version: string) {
  const bin = mkdtempSync(join(tmpdir(), 'pb-install-'));
  folders.push(bin);
  for (const name of ['sh', 'sed', 'id'])
    symlinkSync(execFileSync('which', [name], { encoding: 'utf8' }).trim(), join(bin, name));
  writeFileSync(join(bin, program), `#!/bin/sh\necho "${version}"\n`, { mode: 0o755 });
  const { status, stdout, stderr } = spawnSync('sh', ['scripts/redis-install.sh'], {
    env: { PATH: bin },
    encoding: 'utf8',
  });
  return { status, stdout, stderr };
}

test.each([
  ['redis-server', 'Redis server v=7.0.0 sha=00000000:0 malloc=libc bits=64', 'Redis 7.0'],
  ['redis-server', 'Redis server v=8.2.1 sha=00000000:0 malloc=libc bits=64', 'Redis 8.2'],
  ['redis-server', 'Redis server v=10.0.3 sha=00000000:0 malloc=libc bits=64', 'Redis 10.0'],
  ['valkey-server', 'Valkey server v=7.2.5 sha=00000000:0 malloc=libc bits=64', 'Valkey 7.2'],
])('npm run redis:install accepts a %s that reports %s', (program, version, reported) => {
  expect(install(program, version)).toMatchObject({
    status: 0,
    stdout: expect.stringContaining(reported),
    stderr: '',
  });
});

test.each([
  ['redis-server', 'Redis server v=6.2.14 sha=00000000:0 malloc=libc bits=64', 'Redis 6.2'],
  ['redis-server', 'Redis server v=5.0.10 sha=00000000:0 malloc=libc bits=64', 'Redis 5.0'],
  ['valkey-server', 'Valkey server v=7.1.9 sha=00000000:0 malloc=libc bits=64', 'Valkey 7.1'],
])('npm run redis:install says that a %s is too old, and the remedy: %s', (program, version, reported) => {
  const { status, stderr } = install(program, version);
  expect(status).toBe(1);
  expect(stderr).toContain(`it is ${reported}, and the bridge needs Redis 7.0+ or Valkey 7.2+`);
  expect(stderr).toContain('upgrade it');
});

test('npm run redis:install accepts a server that does not report its version, and says so', () => {
  const { status, stderr } = install('redis-server', 'a server of our own');
  expect([status, stderr]).toEqual([0, expect.stringContaining('cannot be read from "a server of our own"')]);
});
