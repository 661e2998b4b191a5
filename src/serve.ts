import { createAccessLog } from './api/access-log.ts';
import { createApp } from './api/app.ts';
import { createForwarding, type Forwarding } from './api/forwarding.ts';
import { createLoadShedding, type LoadShedding } from './api/middleware/load-shedding.ts';
import { createFailureLimiter, createLimiter } from './api/middleware/rate-limit.ts';
import { listen } from './api/server.ts';
import type { FileUrl } from './contract/views.ts';
import { connectLegacy } from './cutover/forward/legacy.ts';
import { openApiKeyCipher, type ReplayAbility } from './cutover/replay/api-key-cipher.ts';
import { createReplayQueue } from './cutover/replay/queue/queue.ts';
import { createQueueing } from './cutover/replay/queueing.ts';
import { startReplayer } from './cutover/replay/replayer.ts';
import { joinCutover, type Cutover } from './cutover/switch/instance.ts';
import { createTraffic } from './cutover/traffic.ts';
import { createLedger } from './deprecation/ledger/ledger.ts';
import { createMetrics } from './deprecation/metrics.ts';
import { serverUrl } from './lib/hosts.ts';
import { createPictures } from './media/lifecycle.ts';
import type { Resources } from './resources.ts';

type Counters = ReturnType<typeof startCounters>;

/** Starts what measures the requests that this process serves. */
export function startCounters(resources: Resources) {
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
export async function serve(resources: Resources, { ledger, metrics, load }: Counters): Promise<string> {
  const { config, log, releasers, store, media, arePicturesAvailable, deprecation } = resources;
  const { rateLimit, authFailureLimit, keyPrefix } = config;
  const ability = await openApiKeyCipher(store, keyPrefix, {
    secret: config.replaySecret,
    previous: config.replaySecretPrevious,
  });
  if (ability.kind === 'unable' && config.replaySecret !== undefined)
    log.error('changes cannot be replayed', { reason: ability.reason });
  const cutover = await joinCutover(store, {
    keyPrefix,
    kind: 'bridge',
    legacy: config.legacyBaseUrl !== undefined,
    replay: ability.kind === 'able',
    log,
  });
  releasers.onClose('cut-over', cutover.close);

  let baseUrl = config.publicBaseUrl ?? '';
  const fileUrl = (file: string): string => `${baseUrl}/media/${file}`;
  let isDraining = (): boolean => false;
  const writeLog = createAccessLog(log);
  const app = createApp({
    ...config,
    store,
    countFailure:
      authFailureLimit === 'none' ? undefined : createFailureLimiter(store, keyPrefix, authFailureLimit),
    enforceRateLimit: rateLimit && createLimiter(store, rateLimit),
    media,
    fileUrl,
    pictures: createPictures(store, media, log),
    deprecation,
    onSettled: (record) => {
      writeLog(record);
      const { organizationId, caller, isUnchecked, operation, status, seconds, userAgent, code } = record;
      if (operation === undefined) return;
      const { keyId, client } = caller ?? {};
      ledger.record({ organizationId, keyId, isUnchecked, client, operation, status, userAgent });
      metrics.observe({ organizationId, keyId, operation, status, seconds, code });
    },
    load,
    cutover,
    queueing: createQueueing(ability, config.replayMax, createReplayQueue(store, keyPrefix)),
    forwarding: openForwarding(resources, cutover, ability, load, fileUrl),
    isDraining: () => isDraining(),
    forwardsAll: cutover.forwardsAll,
    knowsAuthority: () => cutover.knowsAuthority() && !cutover.hasLostSwitch(),
    arePicturesAvailable,
  });
  const server = await listen(app, config.host, config.port);
  releasers.onClose('server', () => server.drain(config.drainDelay));
  isDraining = server.isDraining;
  const url = serverUrl(config.host, server.port);
  baseUrl = config.publicBaseUrl ?? url;
  return url;
}

/**
 * What forwards requests while the legacy service is the authority, and replays changes to it while Redis is; undefined
 * if there is no legacy service.
 */
function openForwarding(
  { config, log, releasers, store, media }: Resources,
  cutover: Cutover,
  ability: ReplayAbility,
  load: LoadShedding,
  fileUrl: FileUrl,
): Forwarding | undefined {
  const { legacyBaseUrl, legacyTimeout, keyPrefix } = config;
  if (legacyBaseUrl === undefined) return undefined;
  const legacy = connectLegacy(legacyBaseUrl, legacyTimeout);
  const traffic = createTraffic({ store, keyPrefix, legacy, fileUrl, cutover, log });
  releasers.onClose('forwarding', traffic.close);
  if (ability.kind === 'able') {
    const { cipher } = ability;
    const queue = createReplayQueue(store, keyPrefix);
    const replayer = startReplayer({ ...config, store, legacy, media, queue, cipher, cutover, log });
    releasers.onClose('replay', replayer.close);
  }
  return createForwarding({ ...config, store, cutover, traffic, load });
}
