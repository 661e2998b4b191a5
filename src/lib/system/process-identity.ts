import { readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';

/** Identifies a process uniquely, even if its id is used again in another container or after a restart. */
export interface ProcessIdentity {
  host: string;
  pid: number;
  /** The id of the system's boot and of the process's PID namespace; '' if the system has none. */
  boot: string;
  namespace: string;
  /** When the process started, in clock ticks; '' if unknown. */
  started: string;
}

/** The identity of this process. */
export function thisProcess(): ProcessIdentity {
  return {
    host: hostname(),
    pid: process.pid,
    boot: readOrEmpty(() => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()),
    namespace: readOrEmpty(() => readlinkSync('/proc/self/ns/pid')),
    started: startOf(process.pid),
  };
}

/** Whether the process has certainly ended; false if that is unknown, as for a process in another container. */
export function hasEnded({ host, pid, boot, namespace, started }: ProcessIdentity): boolean {
  const own = thisProcess();
  if (boot !== own.boot || namespace !== own.namespace) return false;
  // Without a boot id the host name must suffice; on Linux it is only missing in a container that hides it.
  if (boot === '' && (host !== own.host || process.platform === 'linux')) return false;
  try {
    process.kill(pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return true;
  }
  // Nothing is known of a process that is hidden from this user (hidepid of /proc, ProtectProc of systemd).
  const start = startOf(pid);
  return started !== '' && start !== '' && start !== started;
}

/** When a process started: '' if it does not exist or is hidden, 'ended' if it is a zombie. */
function startOf(pid: number): string {
  const stat = readOrEmpty(() => readFileSync(`/proc/${pid}/stat`, 'utf8'));
  const [state, ...fields] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return state === 'Z' ? 'ended' : (fields[18] ?? '');
}

function readOrEmpty(read: () => string): string {
  try {
    return read();
  } catch {
    return '';
  }
}
