import { readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';

/** What tells a process from all others, also from one with its id in another container or after a restart. */
export interface ProcessIdentity {
  host: string;
  pid: number;
  /** The system's current boot, and the namespace of process ids; '' where the system has no such things. */
  boot: string;
  namespace: string;
  /** When the process began, in clock ticks; '' where the system does not tell. */
  started: string;
}

/** This process. */
export function thisProcess(): ProcessIdentity {
  return {
    host: hostname(),
    pid: process.pid,
    boot: quietly(() => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()),
    namespace: quietly(() => readlinkSync('/proc/self/ns/pid')),
    started: startOf(process.pid),
  };
}

/** Whether the process has certainly ended; false where that cannot be seen from here, as in another container. */
export function hasEnded({ host, pid, boot, namespace, started }: ProcessIdentity): boolean {
  const own = thisProcess();
  if (boot !== own.boot || namespace !== own.namespace) return false;
  // Without a boot's id the host's name has to do; on Linux that means a container that hides it.
  if (boot === '' && (host !== own.host || process.platform === 'linux')) return false;
  try {
    process.kill(pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return true;
  }
  return started !== '' && startOf(pid) !== started;
}

/** '' for a process that is not there, or has ended and only waits for its parent to notice. */
function startOf(pid: number): string {
  const stat = quietly(() => readFileSync(`/proc/${pid}/stat`, 'utf8'));
  const [state, ...fields] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return state === 'Z' ? '' : (fields[18] ?? '');
}

function quietly(read: () => string): string {
  try {
    return read();
  } catch {
    return '';
  }
}
