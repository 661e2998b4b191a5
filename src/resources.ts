import type { Config } from './config.ts';
import { readContractPolicy } from './deprecation/policy/contract-policy.ts';
import { watchPolicy } from './deprecation/policy/policy-store.ts';
import { createReleasers, type Releasers } from './lib/releasers.ts';
import type { Log } from './log.ts';
import { openMediaStore } from './media/open.ts';
import { watchMedia } from './media/availability.ts';
import { openStore } from './redis/open.ts';

/** What every process of the bridge has open. */
export type Resources = Awaited<ReturnType<typeof openResources>>;

async function openResources(config: Config, log: Log, releasers: Releasers) {
  const { store, redisUrl } = await openStore(config, releasers, log);
  const { media, arePicturesAvailable, close } = watchMedia(
    await openMediaStore(config.mediaUrl, config),
    log,
  );
  releasers.onClose('picture store', close);
  const deprecation = await watchPolicy(store, config.keyPrefix, {
    defaults: [readContractPolicy(), config.deprecation],
    baseUrl: config.publicBaseUrl,
    log,
  });
  releasers.onClose('deprecation policy', deprecation.close);
  return { config, log, releasers, store, redisUrl, media, arePicturesAvailable, deprecation };
}

/**
 * Opens what every process of the bridge needs, and calls `start` with it. If a step fails, everything opened before is
 * closed again; the error is one line that says what to do. `close` closes everything in reverse order of opening.
 */
export async function withResources<Started>(
  config: Config,
  log: Log,
  start: (resources: Resources) => Promise<Started>,
): Promise<Started & { close: () => Promise<void> }> {
  const releasers = createReleasers((name, error) => {
    log.error(`closing failed: ${name}`, { error: String(error) });
  });
  try {
    const started = await start(await openResources(config, log, releasers));
    return { ...started, close: releasers.close };
  } catch (error) {
    await releasers.close();
    throw error;
  }
}
