import { spawnSync } from 'node:child_process';
import { test } from '@jest/globals';

const mounting = ['--mount', '--map-root-user', 'sh', '-c'];
const canMount = spawnSync('unshare', [...mounting, 'mount -t tmpfs none /mnt']).status === 0;

/** A test that needs a disk of its own; skipped visibly where none may be mounted. */
export const testWithMounts = canMount ? test : test.skip;

/** Runs a shell command while the folder is a disk of 256 KiB, which only that command sees. */
export function inSmallDisk(
  folder: string,
  command: string,
  env: NodeJS.ProcessEnv,
): { status: number | null; stdout: string; stderr: string } {
  const script = `mount -t tmpfs -o size=256k none ${folder} && ${command}`;
  return spawnSync('unshare', [...mounting, script], { env, encoding: 'utf8' });
}
