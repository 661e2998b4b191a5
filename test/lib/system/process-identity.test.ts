import { spawn } from 'node:child_process';
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
