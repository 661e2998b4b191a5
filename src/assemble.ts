import { createAdminApp } from './admin-port/app.ts';
import { createAccessLog } from './api/access-log.ts';
import { createApp } from './api/app.ts';
import { createForwarding, type Forwarding } from './api/forwarding.ts';
import { createLoadShedding, type LoadShedding } from './api/middleware/load-shedding.ts';
import { createFailureLimiter, createLimiter } from './api/middleware/rate-limit.ts';
import { listen, PortError } from './api/server.ts';
import { defaultAdminPort, type Config } from './config.ts';
import { describeDemo, openDemo } from './demo.ts';
import { createLedger, type Ledger } from './deprecation/ledger/ledger.ts';
import { createMetrics, workersMetrics, type Metrics, type MetricsText } from './deprecation/metrics.ts';
import { watchPolicy, type PolicyWatch } from './deprecation/policy/policy-store.ts';
import type { PolicyLayer } from './deprecation/policy/policy.ts';
import { connectLegacy } from './cutover/forward/legacy.ts';
import { openReplayCredentials, type ReplayAbility } from './cutover/replay/credentials.ts';
import { createReplayQueue } from './cutover/replay/queue/queue.ts';
import { createQueueing } from './cutover/replay/queue/queueing.ts';
import { createReplayListings } from './redis/replay-listings.ts';
import { startReplayer } from './cutover/replay/replayer.ts';
import { joinCutover, type Cutover } from './cutover/switch/instance.ts';
import { createTraffic } from './cutover/traffic.ts';
import { countLegacyPictures } from './cutover/verdict/pictures.ts';
import { createPictures, removeOrphans } from './media/lifecycle.ts';
import { createReleasers, type Releasers } from './lib/releasers.ts';
import { repeat } from './lib/repeat.ts';
import { isWildcard, serverUrl } from './lib/hosts.ts';
import type { Log } from './log.ts';
import { watchMedia, type MediaStore } from './media/store.ts';
import type { MediaUrl } from './contract/views.ts';
import { createMediaStore } from './media/open.ts';
import { openStore } from './redis/connection/open.ts';
import { removeAbandonedStage } from './redis/denylist.ts';
import { sweepOrganizations, type SweepJob } from './redis/sweep.ts';
import { startWorkers } from './workers.ts';
import type { RedisClient } from './redis/connection/client.ts';

export interface Bridge {
  /** The URL of the public port. */
  url: string;
  /** Instructions for a person who runs the bridge with its demo organization. */
  welcome?: string;
  /** Answers pending requests, then closes everything in reverse order of opening. */
  close: () => Promise<void>;
}

/** What every process of the bridge has open. */
interface Resources {
  config: Config;
  log: Log;
  releasers: Releasers;
  store: RedisClient;
  redisUrl: string;
  isEmbedded: boolean;
  media: MediaStore;
  arePicturesAvailable: () => boolean;
  deprecation: PolicyWatch;
}

/**
 * Starts the bridge: opens all resources, then serves requests from this process or, with `workers` above 1, from
 * worker processes that this one supervises. If a step fails, everything opened before is closed again; the error is
 * one line that says what to do. `policyLayers` is the deprecation policy without the operator's own settings, lowest
 * precedence first.
 */
export async function assemble(
  config: Config,
  policyLayers: readonly PolicyLayer[],
  log: Log,
): Promise<Bridge> {
  return await withResources(config, policyLayers, log, async (resources) => {
    startHousekeeping(resources);
    const demo = resources.isEmbedded
      ? await openDemo(resources.store, config.keyPrefix, config.dataDir)
      : undefined;
    const counters = config.workers === 1 ? startCounters(resources) : undefined;
    const adminUrl = await openAdminPort(resources, counters?.metrics ?? workersMetrics());
    const url = counters === undefined ? await serveFromWorkers(resources) : await serve(resources, counters);
    if (config.publicBaseUrl === undefined && isWildcard(config.host)) {
      log.warn(
        `PUBLIC_BASE_URL is not set: picture URLs start with ${url}, which only this machine can reach`,
      );
    }
    if (demo === undefined) return { url };
    return { url, welcome: describeDemo(demo, url, adminUrl, config.organizationHeader) };
  });
}

/** Starts one of several worker processes: it serves requests and leaves the rest to its supervisor. */
export async function assembleWorker(
  config: Config,
  policyLayers: readonly PolicyLayer[],
  log: Log,
): Promise<Bridge> {
  return await withResources(config, policyLayers, log, async (resources) => ({
    url: await serve(resources, startCounters(resources)),
  }));
}

async function withResources(
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
    const watched = watchMedia(await createMediaStore(config.mediaUrl, config), log);
    releasers.onClose('picture store', watched.close);
    const deprecation = await watchPolicy(opened.store, config.keyPrefix, {
      defaults: policyLayers,
      baseUrl: config.publicBaseUrl,
      log,
    });
    releasers.onClose('deprecation policy', deprecation.close);
    const started = await start({ config, log, releasers, ...opened, ...watched, deprecation });
    return { ...started, close: releasers.close };
  } catch (error) {
    await releasers.close();
    throw error;
  }
}

/** What counts the requests that this process answers. */
interface Counters {
  ledger: Ledger;
  metrics: Metrics;
  load: LoadShedding;
}

function startCounters(resources: Resources): Counters {
  const { config, log, releasers, store, arePicturesAvailable, deprecation } = resources;
  const ledger = createLedger(store, config.keyPrefix, { log });
  releasers.onClose('ledger', ledger.close);
  const load = createLoadShedding();
  const metrics = createMetrics({
    policy: () => deprecation.current.policy,
    lagSeconds: ledger.lagSeconds,
    ping: () => store.ping(),
    arePicturesAvailable,
    slotsInUse: load.slots.inUse,
    openBodies: load.openBodies.inUse,
  });
  return { ledger, metrics, load };
}

/** Serves the public port from this process; returns its URL. */
async function serve(resources: Resources, { ledger, metrics, load }: Counters): Promise<string> {
  const { config, log, releasers, store, media, arePicturesAvailable, deprecation } = resources;
  const { rateLimit, authFailureLimit, keyPrefix, organizationHeader } = config;
  const ability = await openReplayCredentials(store, keyPrefix, {
    secret: config.replaySecret,
    previous: config.replaySecretPrevious,
  });
  if (ability.kind === 'unable' && config.replaySecret !== undefined)
    log.error('changes cannot be replayed', { reason: ability.reason });
  const cutover = await joinCutover(store, {
    keyPrefix,
    kind: 'bridge',
    hasLegacy: config.legacyBaseUrl !== undefined,
    canReplay: ability.kind === 'able',
    log,
  });
  releasers.onClose('cut-over', cutover.close);

  let baseUrl = config.publicBaseUrl ?? '';
  const mediaUrl = (file: string): string => `${baseUrl}/media/${file}`;
  let isDraining = (): boolean => false;
  const writeLog = createAccessLog(log);
  const app = createApp({
    store,
    keyPrefix,
    organizationHeader,
    countFailure:
      authFailureLimit === 'none' ? undefined : createFailureLimiter(store, keyPrefix, authFailureLimit),
    enforceRateLimit: rateLimit && createLimiter(store, rateLimit),
    media,
    mediaUrl,
    pictures: createPictures(store, media, log),
    publicBaseUrl: config.publicBaseUrl,
    corsOrigins: config.corsOrigins,
    corsHeaders: config.corsHeaders,
    trustProxy: config.trustProxy,
    maxListBytes: config.maxListBytes,
    deprecation,
    onSettled: (record) => {
      writeLog(record);
      const { organizationId, caller, operation, status, seconds, userAgent, code } = record;
      if (operation === undefined) return;
      const { keyId, client } = caller ?? {};
      ledger.record({ organizationId, keyId, client, operation, status, userAgent });
      // Only a valid key proves the organization; without one, anybody could add values to the label.
      metrics.observe({ operation, status, seconds, organizationId: caller && organizationId, code });
    },
    load,
    cutover,
    queueing: createQueueing(ability, config.replayMax, createReplayListings(store, keyPrefix)),
    forwarding: openForwarding(resources, cutover, ability, load, mediaUrl),
    isDraining: () => isDraining(),
    arePicturesAvailable,
  });
  const server = await listen(app, config.host, config.port, { drainDelay: config.drainDelay });
  releasers.onClose('server', server.drain);
  isDraining = server.isDraining;
  const url = serverUrl(config.host, server.port);
  baseUrl = config.publicBaseUrl ?? url;
  return url;
}

/**
 * What forwards requests while the legacy service is the authority, and replays changes to it while Redis is; undefined
 * where there is no legacy service.
 */
function openForwarding(
  { config, log, releasers, store, media }: Resources,
  cutover: Cutover,
  ability: ReplayAbility,
  load: LoadShedding,
  mediaUrl: MediaUrl,
): Forwarding | undefined {
  const { legacyBaseUrl, legacyTimeout, keyPrefix } = config;
  if (legacyBaseUrl === undefined) return undefined;
  const legacy = connectLegacy(legacyBaseUrl, legacyTimeout);
  const traffic = createTraffic({ store, keyPrefix, legacy, mediaUrl, cutover, log });
  releasers.onClose('forwarding', traffic.close);
  const stopping = new AbortController();
  const counting = repeat(async () => {
    if (cutover.mode() !== 'mirror' && cutover.mode() !== 'reverse') return;
    await countLegacyPictures(store, keyPrefix, stopping.signal).catch((error: unknown) => {
      if (!stopping.signal.aborted)
        log.warn('pictures of the legacy service could not be counted', { reason: String(error) });
    });
  }, housekeepingInterval);
  releasers.onClose('counting', async () => {
    stopping.abort();
    await counting.stop();
  });
  if (ability.kind === 'able') {
    const { organizationHeader } = config;
    const queue = createReplayQueue(store, keyPrefix);
    const { credentials } = ability;
    const options = { store, keyPrefix, organizationHeader, legacy, media, queue, credentials, cutover, log };
    releasers.onClose('replay', startReplayer(options).close);
  }
  return createForwarding({ ...config, store, cutover, traffic, load });
}

async function serveFromWorkers({ config, log, releasers, redisUrl }: Resources): Promise<string> {
  const env = { REDIS_URL: redisUrl, REDIS_URL_FILE: '' };
  const workers = await startWorkers(config.workers, env, config.drainDelay, log);
  releasers.onClose('workers', workers.close);
  return serverUrl(config.host, workers.port);
}

/** Opens the admin port and returns its URL; undefined if ADMIN_PORT is not set and the default port is in use. */
async function openAdminPort(
  { config, log, releasers, store, deprecation }: Resources,
  metrics: MetricsText,
): Promise<string | undefined> {
  const { keyPrefix, adminHost, adminPort, adminToken } = config;
  const policy = () => deprecation.current.policy;
  const app = createAdminApp({ store, keyPrefix, policy, metrics, token: adminToken, log });
  try {
    const server = await listen(app, adminHost, adminPort ?? defaultAdminPort, { prefix: 'ADMIN_' });
    releasers.onClose('admin port', server.drain);
    if (adminToken !== undefined && adminToken.length < 16) {
      log.warn('ADMIN_TOKEN is short enough to be guessed: use at least 16 characters');
    }
    const url = serverUrl(adminHost, server.port);
    log.info('admin port open', { url });
    return url;
  } catch (error) {
    if (!(error instanceof PortError && error.inUse && adminPort === undefined)) throw error;
    log.warn('the admin port is not available', { reason: error.message });
    return undefined;
  }
}

/** How often to look whether work is due that one process does for all, in ms. */
const housekeepingInterval = 60_000;

/** Starts the background work that one process does for all. */
function startHousekeeping({ config, log, releasers, store, media }: Resources): void {
  const stopping = new AbortController();
  const jobs: SweepJob[] = [
    (base) => removeOrphans(store, base, media.remove, stopping.signal),
    (base) => removeAbandonedStage(store, base),
  ];
  const sweep = async (): Promise<void> => {
    try {
      await sweepOrganizations(store, config.keyPrefix, jobs, stopping.signal);
    } catch (error) {
      log.warn('orphaned picture files or abandoned denylists could not be removed', {
        reason: String(error),
      });
    }
  };
  const sweeping = repeat(sweep, housekeepingInterval);
  releasers.onClose('housekeeping', async () => {
    stopping.abort();
    await sweeping.stop();
  });
}
