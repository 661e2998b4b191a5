import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';

/** What the script says where none of the programs is there, and apt knows these packages. */
function install(known: readonly string[], ...pairs: readonly string[]): string {
  const bin = mkdtempSync(join(tmpdir(), 'pb-packages-'));
  try {
    symlinkSync('/usr/bin/env', join(bin, 'env'));
    const programs = {
      id: 'echo 0',
      'apt-get': ':',
      'apt-cache': `case " ${known.join(' ')} " in *" $2 "*) ;; *) exit 100 ;; esac`,
    };
    for (const [name, script] of Object.entries(programs)) {
      writeFileSync(join(bin, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    }
    const args = ['scripts/ci/packages.sh', ...pairs];
    return execFileSync('/bin/bash', args, { env: { PATH: bin }, encoding: 'utf8' });
  } finally {
    rmSync(bin, { recursive: true });
  }
}

test.each([
  [['docker.io'], 'docker.io'],
  [['docker-cli', 'docker.io'], 'docker-cli'],
])('where apt knows %j, docker comes from %s', (known, expected) => {
  expect(install(known, 'docker=docker-cli|docker.io')).toBe(`installed: ${expected}\n`);
});
