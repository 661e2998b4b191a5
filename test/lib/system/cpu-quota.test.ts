import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { availableCpus } from '../../../src/lib/system/cpu-quota.ts';

let root = '';
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'cgroup-'));
});
afterEach(() => rmSync(root, { recursive: true }));

function files(contents: Record<string, string>): void {
  for (const [file, content] of Object.entries(contents)) {
    mkdirSync(dirname(join(root, file)), { recursive: true });
    writeFileSync(join(root, file), content);
  }
}

describe('availableCpus', () => {
  test.each<[string, number, Record<string, string>]>([
    [
      'the quota of a container (cgroup v2)',
      1,
      { 'proc/self/cgroup': '0::/\n', 'sys/fs/cgroup/cpu.max': '100000 100000\n' },
    ],
    [
      'the quota of a systemd unit, or of a slice around it',
      1,
      {
        'proc/self/cgroup': '0::/system.slice/profile-bridge.service\n',
        'sys/fs/cgroup/system.slice/cpu.max': '150000 100000\n',
        'sys/fs/cgroup/system.slice/profile-bridge.service/cpu.max': 'max 100000\n',
      },
    ],
    [
      'the quota of a container (cgroup v1)',
      1,
      {
        'proc/self/cgroup': '4:memory:/docker/1f\n3:cpu,cpuacct:/docker/1f\n',
        'sys/fs/cgroup/cpu/cpu.cfs_quota_us': '120000\n',
        'sys/fs/cgroup/cpu/cpu.cfs_period_us': '100000\n',
      },
    ],
    [
      'whole CPUs only',
      Math.min(2, availableParallelism()),
      { 'proc/self/cgroup': '0::/\n', 'sys/fs/cgroup/cpu.max': '250000 100000\n' },
    ],
    ['at least one', 1, { 'proc/self/cgroup': '0::/\n', 'sys/fs/cgroup/cpu.max': '10000 100000\n' }],
    [
      'all CPUs without a quota',
      availableParallelism(),
      { 'proc/self/cgroup': '0::/\n', 'sys/fs/cgroup/cpu.max': 'max 100000\n' },
    ],
    [
      'all CPUs with a quota beyond them',
      availableParallelism(),
      { 'proc/self/cgroup': '0::/\n', 'sys/fs/cgroup/cpu.max': '99900000 100000\n' },
    ],
    [
      'all CPUs without a quota in cgroup v1',
      availableParallelism(),
      {
        'proc/self/cgroup': '3:cpu,cpuacct:/\n',
        'sys/fs/cgroup/cpu/cpu.cfs_quota_us': '-1\n',
        'sys/fs/cgroup/cpu/cpu.cfs_period_us': '100000\n',
      },
    ],
    ['all CPUs where there are no control groups', availableParallelism(), {}],
  ])('is %s', (_name, expected, contents) => {
    files(contents);
    expect(availableCpus(root)).toBe(expected);
  });
});
