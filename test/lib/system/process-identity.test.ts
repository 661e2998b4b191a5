import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { expect, test } from '@jest/globals';
import { hasEnded, thisProcess } from '../../../src/lib/system/process-identity.ts';

test('a running process has not ended; a killed one has', async () => {
  expect(hasEnded(thisProcess())).toBe(false);
  const child = spawn('sleep', ['60']);
  await once(child, 'spawn');
  // Without a start time, only the id is compared.
  const other = { ...thisProcess(), pid: child.pid ?? 0, started: '' };
  expect(hasEnded(other)).toBe(false);
  child.kill('SIGKILL');
  await once(child, 'exit');
  expect(hasEnded(other)).toBe(true);
});

test('a process with the same id but another start time is a different process', () => {
  expect(hasEnded({ ...thisProcess(), started: '1' })).toBe(true);
});

test('a process in another container or on another machine may still be running', () => {
  expect(hasEnded({ ...thisProcess(), started: '1', namespace: 'pid:[1]' })).toBe(false);
  expect(hasEnded({ ...thisProcess(), started: '1', boot: 'another' })).toBe(false);
  expect(hasEnded({ ...thisProcess(), started: '1', boot: '', host: 'another' })).toBe(false);
});

// As ProtectProc=invisible of systemd does it, for processes of other users.
const hidingProcesses = ['--mount', 'sh', '-euc', 'mount -t proc -o hidepid=2 proc /proc && "$@"', 'sh'];
const asNobody = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'];
const canHide = spawnSync('unshare', [...hidingProcesses, ...asNobody, 'true']).status === 0;

(canHide ? test : test.skip)('a process that the system hides from this user may still be running', () => {
  const module = JSON.stringify(import.meta.resolve('../../../src/lib/system/process-identity.ts'));
  const script = `
    import { hasEnded } from ${module};
    console.log(hasEnded(${JSON.stringify(thisProcess())}));`;
  const asked = [process.execPath, '--import', 'tsx', '--input-type=module', '--eval', script];
  const answer = execFileSync('unshare', [...hidingProcesses, ...asNobody, ...asked], { encoding: 'utf8' });
  expect(answer).toBe('false\n');
});
