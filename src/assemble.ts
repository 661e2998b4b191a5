import { createAdminApp } from './admin-port/app.ts';
import { listen, PortError } from './api/server.ts';
import { defaultAdminPort, type Config } from './config.ts';
import { describeDemo, openDemo } from './demo.ts';
import type { MetricsText } from './deprecation/metrics.ts';
import { workersMetrics } from './deprecation/worker-metrics.ts';
import { startHousekeeping } from './housekeeping.ts';
import { isWildcard, serverUrl } from './lib/hosts.ts';
import type { Log } from './log.ts';
import { withResources, type Resources } from './resources.ts';
import { serve, startCounters } from './serve.ts';
import { startWorkers } from './workers.ts';

/** A running bridge, or a worker of it. */
export interface Bridge {
  /** The URL of the public port. */
  url: string;
  /** Instructions for a person who runs the bridge with its demo organization. */
  welcome?: string;
  /** Answers pending requests, then closes everything in reverse order of opening. */
  close: () => Promise<void>;
}

/**
 * Starts the bridge: opens all resources, then serves requests from this process or, with `workers` above 1, from
 * worker processes that this one supervises.
 */
export async function assemble(config: Config, log: Log): Promise<Bridge> {
  return await withResources(config, log, async (resources) => {
    startHousekeeping(resources);
    const hasDemo = config.redisUrl === undefined;
    const demo = hasDemo ? await openDemo(resources.store, config.keyPrefix, config.dataDir) : undefined;
    const counters = config.workers === 1 ? startCounters(resources) : undefined;
    const admin = await openAdminPort(resources, counters?.metrics ?? workersMetrics());
    const url = counters === undefined ? await serveFromWorkers(resources) : await serve(resources, counters);
    // Registered last, so it runs first: both ports drain together. One after the other would take twice as long.
    resources.releasers.onClose('admin port', () => void admin?.drain(config.drainDelay));
    if (config.publicBaseUrl === undefined && isWildcard(config.host)) {
      log.warn(
        `PUBLIC_BASE_URL is not set: picture URLs start with ${url}, which only this machine can reach`,
      );
    }
    if (demo === undefined) return { url };
    return { url, welcome: describeDemo(demo, url, admin?.url, config.organizationHeader) };
  });
}

/** Starts one of several worker processes: it serves requests and leaves the rest to its supervisor. */
export async function assembleWorker(config: Config, log: Log): Promise<Bridge> {
  return await withResources(config, log, async (resources) => ({
    url: await serve(resources, startCounters(resources)),
  }));
}

async function serveFromWorkers({ config, log, releasers, redisUrl }: Resources): Promise<string> {
  // A REDIS_URL that comes from a file is not passed on: each worker reads the file, also one that starts later.
  const isEmbedded = config.redisUrl === undefined;
  const env = isEmbedded ? { REDIS_URL: redisUrl, REDIS_URL_FILE: '' } : {};
  const workers = await startWorkers(config.workers, env, config.drainDelay, log);
  releasers.onClose('workers', workers.close);
  return serverUrl(config.host, workers.port);
}

/** Opens the admin port; undefined if ADMIN_PORT is not set and the default port is in use. */
async function openAdminPort(
  { config, log, releasers, store, deprecation }: Resources,
  metrics: MetricsText,
): Promise<{ url: string; drain: (delay?: number) => Promise<void> } | undefined> {
  const { keyPrefix, adminHost, adminPort, adminToken } = config;
  const policy = () => deprecation.current.policy;
  const app = createAdminApp({ store, keyPrefix, policy, metrics, token: adminToken, log });
  try {
    const server = await listen(app, adminHost, adminPort ?? defaultAdminPort, { prefix: 'ADMIN_' });
    releasers.onClose('admin port', () => server.drain());
    if (adminToken !== undefined && adminToken.length < 16) {
      log.warn('ADMIN_TOKEN is short enough to be guessed: use at least 16 characters');
    }
    const url = serverUrl(adminHost, server.port);
    log.info('admin port open', { url });
    return { url, drain: server.drain };
  } catch (error) {
    if (!(error instanceof PortError && error.inUse && adminPort === undefined)) throw error;
    log.warn('the admin port is not available', { reason: error.message });
    return undefined;
  }
}
