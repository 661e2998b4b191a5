import cluster, { type Address, type Worker } from 'node:cluster';
import { once } from 'node:events';
import type { Log } from './log.ts';

/**
 * How long a worker may take to exit after the drain delay before it is killed, in ms: longer than its requests in
 * progress (api/server.ts) and the legacy service (cutover/forward/legacy.ts) are waited for, one after the other.
 */
const drainTimeout = 7100;

const forkRemedy = 'raise the limits of processes, open files and memory, or lower WORKERS';

/**
 * Starts `count` processes of this program, which share one port, and replaces each one that exits unexpectedly.
 * Rejects if they cannot start; the reason is on standard error. If this process dies, its workers exit too. `close`
 * lets every worker answer its pending requests and exit.
 */
export async function startWorkers(count: number, env: NodeJS.ProcessEnv, drainDelay: number, log: Log) {
  /** Whether all workers have started and are not to stop: those that exit are then replaced. */
  let isRunning = false;
  let delay = 0;

  const forkLater = (): void => {
    setTimeout(() => {
      if (isRunning) fork();
    }, delay).unref();
    delay = Math.min(delay * 2 + 100, 5000);
  };

  let failStart = (_reason: Error): void => {};
  const refused = new Promise<never>((_, reject) => (failStart = reject));

  const onRefused = ({ message }: Error): void => {
    if (isRunning) {
      log.error('a worker could not be started', { reason: message });
      forkLater();
    } else failStart(new Error(`a worker could not be started (${message}): ${forkRemedy}`));
  };

  const fork = (): void => {
    let worker: Worker;
    try {
      worker = cluster.fork(env);
    } catch (error) {
      onRefused(error as Error);
      return;
    }
    worker.on('error', (error) => {
      // Also an error of a message to a worker that has just exited.
      if (worker.process.pid !== undefined) return;
      // It never emits 'exit', upon which Node.js would remove it.
      delete cluster.workers?.[worker.id];
      onRefused(error);
    });
    // Without open files left, it was not even connected.
    if (worker.isConnected()) closeUnaccepted(worker);
    worker.once('listening', () => {
      delay = 0;
    });
    worker.once('exit', (code: number, signal: string | null) => {
      if (!isRunning) return;
      log.error('a worker exited unexpectedly and is replaced', { pid: worker.process.pid, code, signal });
      forkLater();
    });
  };

  const close = async (): Promise<void> => {
    isRunning = false;
    await Promise.all(
      Object.values(cluster.workers ?? {})
        .flatMap((worker) => worker ?? [])
        .map((worker) => stop(worker, drainDelay + drainTimeout)),
    );
  };

  const started = Promise.race([listening(count), firstExit(), refused]);
  for (let i = 0; i < count; i++) fork();
  try {
    const port = await started;
    isRunning = true;
    return { port, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Of the messages between Node.js and its workers, the one that hands over a connection, and its answer. */
interface InternalMessage {
  act?: 'newconn';
  seq: number;
  ack?: number;
}

/**
 * Closes what was handed to a worker that died before it accepted it. Node.js keeps such a connection open, for as long
 * as this process runs, and its client would wait for an answer. Where Node.js has other messages, this does nothing.
 */
function closeUnaccepted({ process: child }: Worker): void {
  const offered = new Map<number, { close: () => void }>();
  const send = child.send.bind(child) as (...message: unknown[]) => boolean;
  child.send = (...message: unknown[]): boolean => {
    const [{ act, seq }, connection] = message as [InternalMessage, { close: () => void }];
    if (act === 'newconn') offered.set(seq, connection);
    return send(...message);
  };
  child.on('internalMessage', ({ ack }: InternalMessage) => {
    if (ack !== undefined) offered.delete(ack);
  });
  child.once('exit', () => {
    for (const connection of offered.values()) connection.close();
  });
}

/** The port, once `count` workers listen on it. */
async function listening(count: number): Promise<number> {
  let port = 0;
  for (let ready = 0; ready < count; ready++) {
    const [, address] = (await once(cluster, 'listening')) as [Worker, Address];
    port = address.port;
  }
  return port;
}

async function firstExit(): Promise<never> {
  const [, code, signal] = (await once(cluster, 'exit')) as [Worker, number, string | null];
  const end = signal ?? `exit code ${code}`;
  throw new Error(`a worker could not start (it ended with ${end}); see the messages above`);
}

async function stop(worker: Worker, timeout: number): Promise<void> {
  if (worker.isDead()) return;
  const late = setTimeout(() => worker.process.kill('SIGKILL'), timeout);
  worker.process.kill('SIGTERM');
  await once(worker, 'exit');
  clearTimeout(late);
}
