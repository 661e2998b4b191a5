import { createApp } from './api/app.ts';
import { defaultAdminPort, type Config } from './config.ts';
import { describeDemo, openDemo } from './demo.ts';
import { createLedger, type Ledger } from './deprecation/ledger/ledger.ts';
import { watchPolicy, type PolicyWatch } from './deprecation/policy/policy-store.ts';
import { createMetrics, workersMetrics, type Metrics, type MetricsText } from './deprecation/metrics.ts';
import type { DeprecationPolicy, PolicyLayer } from './deprecation/policy/policy.ts';
import { createPictures } from './media/upload.ts';
import { createLimiter } from './api/middleware/rate-limit.ts';
import { listen, PortError } from './api/server.ts';
import { createReleasers, type Releasers } from './lib/releasers.ts';
import type { Log } from './log.ts';
import { createMediaStore } from './media/open.ts';
import { readBucketCredentials } from './media/s3.ts';
import type { MediaStore } from './media/store.ts';
import { sweepLooseMedia } from './media/orphans.ts';
import { createOperationsApp } from './admin-port/app.ts';
import { openStore } from './redis/connection/open.ts';
import type { Store } from './redis/scripts.ts';
import { startWorkers } from './workers.ts';

export interface Bridge {
  /** The address of the public port. */
  url: string;
  /** What a person who started it for the first time wants to read. */
  welcome?: string;
  /** Drains and closes everything, in the reverse order of opening. */
  close: () => Promise<void>;
}

/** What every process of the bridge has open. */
interface Resources {
  config: Config;
  log: Log;
  releasers: Releasers;
  store: Store;
  redisUrl: string;
  isEmbedded: boolean;
  media: MediaStore;
  deprecation: PolicyWatch;
}

/**
 * Opens everything that the configuration asks for, in order, and starts to answer: in this process, or in
 * `workers` of them, which this one then looks after. Where a step fails, what was opened before is closed
 * again, and the Error has one line and the remedy. `policyLayers` is the deprecation policy without the
 * operator's own layer, lowest first.
 */
export async function assemble(
  config: Config,
  policyLayers: readonly PolicyLayer[],
  log: Log,
): Promise<Bridge> {
  return await open(config, policyLayers, log, async (resources) => {
    const welcome = await startHousekeeping(resources);
    const counters = config.workers === 1 ? startCounting(resources) : undefined;
    const adminUrl = await openAdminPort(resources, counters?.metrics ?? workersMetrics());
    const url = counters === undefined ? await answerByWorkers(resources) : await answer(resources, counters);
    return { url, ...(welcome !== undefined && { welcome: welcome(url, adminUrl) }) };
  });
}

/** What one of several processes opens: what it needs to answer, and nothing that there must be only one of. */
export async function assembleWorker(
  config: Config,
  policyLayers: readonly PolicyLayer[],
  log: Log,
): Promise<Bridge> {
  return await open(config, policyLayers, log, async (resources) => ({
    url: await answer(resources, startCounting(resources)),
  }));
}

async function open(
  config: Config,
  policyLayers: readonly PolicyLayer[],
  log: Log,
  start: (resources: Resources) => Promise<Omit<Bridge, 'close'>>,
): Promise<Bridge> {
  const releasers = createReleasers((name, error) => {
    log.error(`closing failed: ${name}`, { error: String(error) });
  });
  try {
    const opened = await openStore(config, releasers, log);
    const aws = readBucketCredentials(process.env);
    const media = await createMediaStore(config.mediaUrl, { dataDir: config.dataDir, aws });
    const deprecation = await watchPolicy(opened.store, config.keyPrefix, { defaults: policyLayers, log });
    releasers.onClose('deprecation policy', deprecation.close);
    const started = await start({ config, log, releasers, ...opened, media, deprecation });
    return { ...started, close: releasers.close };
  } catch (error) {
    await releasers.close();
    throw error;
  }
}

/** What counts the calls that this process answers. */
interface Counters {
  ledger: Ledger;
  metrics: Metrics;
}

function startCounting({ config, log, releasers, store, deprecation }: Resources): Counters {
  const ledger = createLedger(store, config.keyPrefix, { log });
  releasers.onClose('ledger', ledger.close);
  const metrics = createMetrics({
    policy: () => deprecation.current().policy,
    lagSeconds: ledger.lagSeconds,
    ping: () => store.ping(),
  });
  return { ledger, metrics };
}

/** Answers the public port from this process; returns its address. */
async function answer(
  { config, log, releasers, store, media, deprecation }: Resources,
  { ledger, metrics }: Counters,
): Promise<string> {
  const { rateLimit, keyPrefix, organizationHeader } = config;

  let baseUrl = config.publicBaseUrl ?? '';
  let isDraining = (): boolean => false;
  const app = createApp({
    store,
    keyPrefix,
    organizationHeader,
    limiter: rateLimit && createLimiter(store, rateLimit),
    log,
    media,
    mediaUrl: (file) => `${baseUrl}/media/${file}`,
    pictures: createPictures(store, media, log),
    corsOrigins: config.corsOrigins,
    maxListBytes: config.maxListBytes,
    deprecation: deprecation.current,
    onAnswered: ({ organizationId, caller, operation = '', status, seconds, userAgent }) => {
      const { keyId, client } = caller ?? {};
      ledger.record({ organizationId, keyId, client, operation, status, userAgent });
      // A label holds what a key has proven, nothing that anybody may claim.
      metrics.observe({ operation, status, seconds, organizationId: caller && organizationId });
    },
    isDraining: () => isDraining(),
  });
  const server = await listen(app, config.host, config.port);
  releasers.onClose('server', server.drain);
  isDraining = server.isDraining;
  const url = addressOf(config.host, server.port);
  baseUrl = config.publicBaseUrl ?? url;
  return url;
}

async function answerByWorkers({ config, log, releasers, redisUrl }: Resources): Promise<string> {
  const workers = await startWorkers(config.workers, { REDIS_URL: redisUrl }, log);
  releasers.onClose('workers', workers.close);
  return addressOf(config.host, workers.port);
}

/** Where nobody chose the admin port, and another has the usual one, the bridge does without: it is not why it runs. */
async function openAdminPort(
  { config, log, releasers, store, deprecation }: Resources,
  metrics: MetricsText,
): Promise<string | undefined> {
  const { keyPrefix, adminHost, adminPort, adminToken } = config;
  const policy = (): DeprecationPolicy => deprecation.current().policy;
  const app = createOperationsApp({ store, keyPrefix, policy, metrics, token: adminToken, log });
  try {
    const server = await listen(app, adminHost, adminPort ?? defaultAdminPort, 'ADMIN_');
    releasers.onClose('admin port', server.drain);
    if (adminToken !== undefined && adminToken.length < 16) {
      log.warn('ADMIN_TOKEN is short enough to be guessed: set one of 16 characters or more');
    }
    const url = addressOf(adminHost, server.port);
    log.info('admin port open', { url });
    return url;
  } catch (error) {
    if (!(error instanceof PortError && error.inUse && adminPort === undefined)) throw error;
    log.warn('there is no admin port', { reason: error.message });
    return undefined;
  }
}

/** How often it is asked whether a sweep is due, in ms. */
const sweepInterval = 60_000;

type Welcome = (url: string, adminUrl: string | undefined) => string;

/** Does what one process of the bridge has to do; returns the demo's welcome, where there is a demo. */
async function startHousekeeping(resources: Resources): Promise<Welcome | undefined> {
  const { config, log, releasers, store, media } = resources;
  const stopped = new AbortController();
  const sweep = async (): Promise<void> => {
    try {
      await sweepLooseMedia(store, config.keyPrefix, media.remove, stopped.signal);
    } catch (error) {
      log.warn('loose picture files could not be swept', { reason: String(error) });
    }
  };
  let sweeping = sweep();
  const sweeper = setInterval(() => {
    sweeping = sweep();
  }, sweepInterval).unref();
  releasers.onClose('sweeper', async () => {
    clearInterval(sweeper);
    stopped.abort();
    await sweeping;
  });

  if (!resources.isEmbedded) return undefined;
  const demo = await openDemo(store, config.keyPrefix, config.dataDir);
  return (url, adminUrl) => describeDemo(demo, url, adminUrl, config.organizationHeader);
}

function addressOf(host: string, port: number): string {
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
}
