import { existsSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { dirname, join } from 'node:path';

/**
 * How many CPUs this process may use, within the CPU quota (a container's `--cpus`, a Kubernetes limit, systemd's
 * CPUQuota), which Node.js 20 itself does not consider; at least 1. `root` is where the kernel's file systems are.
 */
export function availableCpus(root = '/'): number {
  return Math.max(1, Math.min(availableParallelism(), Math.floor(cpuQuota(root))));
}

/** The smallest CPU quota of this process's control groups, in CPUs; Infinity if there is none. */
function cpuQuota(root: string): number {
  // hierarchy:controllers:path, as in cgroups(7); version 2 names no controllers.
  const groups = readText(join(root, 'proc/self/cgroup')).matchAll(/^\d+:([^:\n]*):(.*)$/gm);
  const found = [...groups].flatMap(([, controllers = '', path = '']) => {
    if (controllers === '') return quotas(join(root, 'sys/fs/cgroup'), path, readV2);
    if (!controllers.split(',').includes('cpu')) return [];
    return quotas(join(root, 'sys/fs/cgroup/cpu'), path, readV1);
  });
  return Math.min(...found);
}

/** The quotas of a group and its parents, each of which limits the process. */
function quotas(mount: string, path: string, read: (folder: string) => number): number[] {
  // In a container the path may be the host's, while the mount shows only the container's own group.
  const own = existsSync(join(mount, path)) ? join(mount, path) : mount;
  const found: number[] = [];
  for (let folder = own; folder.length >= mount.length; folder = dirname(folder)) found.push(read(folder));
  return found;
}

/** `cpu.max`: "quota period" or "max period". */
function readV2(folder: string): number {
  const [quota, period] = readText(join(folder, 'cpu.max')).split(' ').map(Number);
  return toCpus(quota, period);
}

/** `cpu.cfs_quota_us` and `cpu.cfs_period_us`; a quota of -1 is none. */
function readV1(folder: string): number {
  const read = (file: string): number => Number(readText(join(folder, file)) || Number.NaN);
  return toCpus(read('cpu.cfs_quota_us'), read('cpu.cfs_period_us'));
}

function toCpus(quota = Number.NaN, period = Number.NaN): number {
  return quota > 0 && period > 0 ? quota / period : Infinity;
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
