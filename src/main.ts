import cluster from 'node:cluster';
import { assemble, assembleWorker, type Bridge } from './assemble.ts';
import { ConfigError, readConfig, type Config } from './config.ts';
import { readContractPolicy } from './deprecation/policy/contract-policy.ts';
import { checkPolicy, layerPolicy, type PolicyLayer } from './deprecation/policy/policy.ts';
import { createLog, type Log } from './log.ts';

/** Exit codes: 0 stopped as asked, 1 could not start or broke, 2 the configuration is wrong. */
async function main(): Promise<void> {
  const { config, policyLayers } = configurationOrExit();
  const log = createLog(config.logLevel);
  const bridge = await (cluster.isWorker ? assembleWorker : assemble)(config, policyLayers, log);
  if (bridge.welcome !== undefined) process.stdout.write(`${bridge.welcome}\n`);
  log.info('listening', { url: bridge.url, pid: process.pid });

  let stopping = false;
  const stop = (signal: string): void => {
    // npm forwards a second signal while the first is being obeyed: it must not cut anybody.
    if (stopping) return;
    stopping = true;
    log.info('stopping', { signal });
    void closeAndLeave(bridge, log);
  };
  process.on('SIGTERM', stop);
  process.on('SIGINT', stop);
}

async function closeAndLeave(bridge: Bridge, log: Log): Promise<void> {
  await bridge.close();
  log.info('stopped');
  // Its channel to the parent would keep a worker alive.
  cluster.worker?.disconnect();
}

function configurationOrExit(): { config: Config; policyLayers: PolicyLayer[] } {
  try {
    const config = readConfig(process.env);
    return { config, policyLayers: checkedLayers(config.deprecation) };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    process.stderr.write(`The configuration is wrong:\n${error.message.replace(/^/gm, '  ')}\n`);
    process.exit(2);
  }
}

function checkedLayers(environment: PolicyLayer): PolicyLayer[] {
  const layers = [readContractPolicy(), environment];
  const faults = checkPolicy(layerPolicy(...layers), Date.now());
  if (faults.length > 0) throw new ConfigError(faults.join('\n'));
  return layers;
}

main().catch((error: unknown) => {
  process.stderr.write(
    `Profile Bridge could not start: ${error instanceof Error ? error.message : String(error)}\n`,
  );
  process.exit(1);
});
