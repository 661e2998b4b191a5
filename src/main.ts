import cluster from 'node:cluster';
import { assemble, assembleWorker, type Bridge } from './assemble.ts';
import { describeError } from './cli/command-line.ts';
import { ConfigError, readConfig, type Config } from './config.ts';
import { createLog } from './log.ts';

/** How long a stop waits for a start that is under way, such as one that waits for Redis, in ms. */
const startTimeout = 3000;

/** Runs the service. Exit codes: 0 stopped by a signal, 1 could not start, 2 invalid configuration. */
async function main(): Promise<void> {
  // The service must survive the end of the process that reads its log.
  process.stdout.on('error', () => {});
  const config = readConfigurationOrExit();
  const log = createLog(config.logLevel);
  const starting = (cluster.isWorker ? assembleWorker : assemble)(config, log);
  let isStopping = false;
  const stop = (signal: string): void => {
    // npm forwards a signal that the terminal has already sent; the second one must not cut requests off.
    if (isStopping) return;
    isStopping = true;
    log.info('stopping', { signal });
    // Workers that are starting release what they have by themselves, and the start ends with the first one that exits.
    const workers = Object.values(cluster.workers ?? {});
    for (const worker of workers) worker?.process.kill('SIGTERM');
    const late = workers.length > 0 ? undefined : setTimeout(() => process.exit(0), startTimeout);
    const close = async (bridge: Bridge): Promise<void> => {
      clearTimeout(late);
      await bridge.close();
      log.info('stopped');
      // The channel to the parent process would keep a worker alive.
      cluster.worker?.disconnect();
    };
    void starting.then(close, () => process.exit(0));
  };
  process.on('SIGTERM', stop);
  process.on('SIGINT', stop);
  const bridge = await starting;
  if (isStopping) return;

  if (bridge.welcome !== undefined) process.stdout.write(`${bridge.welcome}\n`);
  log.info('listening', { url: bridge.url, pid: process.pid });
}

function readConfigurationOrExit(): Config {
  try {
    return readConfig(process.env);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    process.stderr.write(`Invalid configuration:\n${error.message.replace(/^/gm, '  ')}\n`);
    process.exit(2);
  }
}

main().catch((error: unknown) => {
  process.stderr.write(`Profile Bridge could not start: ${describeError(error)}\n`);
  process.exit(1);
});
