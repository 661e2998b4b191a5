import { createApp } from './app.ts';
import { describeDemo, openDemo } from './demo.ts';
import type { Config } from './config.ts';
import { createLedger } from './deprecation/ledger.ts';
import type { PolicyLayer } from './deprecation/policy.ts';
import { watchPolicy } from './deprecation/policy-store.ts';
import { createPictures } from './http/pictures.ts';
import { createLimiter } from './http/rate-limit.ts';
import { listen } from './http/server.ts';
import { createLifetime } from './lifetime.ts';
import type { Log } from './log.ts';
import { createMediaStore } from './media/open.ts';
import { sweepLooseMedia } from './redis/loose-media.ts';
import { openStore } from './redis/open.ts';

export interface Bridge {
  /** The address of the public port. */
  url: string;
  /** What a person who started it for the first time wants to read. */
  welcome?: string;
  /** Drains and closes everything, in the reverse order of opening. */
  close: () => Promise<void>;
}

const sweepInterval = 60_000;

/**
 * Opens everything that the configuration asks for, in order, and starts to answer. Where a step fails, what was
 * opened before is closed again, and the Error has one line and the remedy. `policyLayers` is the deprecation
 * policy without the operator's own layer, lowest first.
 */
export async function assemble(
  config: Config,
  policyLayers: readonly PolicyLayer[],
  log: Log,
): Promise<Bridge> {
  const lifetime = createLifetime((name, error) => {
    log.error(`closing failed: ${name}`, { error: String(error) });
  });
  try {
    const { store, isEmbedded } = await openStore(config, lifetime, log);
    const media = await createMediaStore(config.mediaUrl, { dataDir: config.dataDir, aws: awsCredentials() });
    const deprecation = await watchPolicy(store, config.keyPrefix, { defaults: policyLayers, log });
    lifetime.onClose('deprecation policy', deprecation.close);
    const ledger = createLedger(store, config.keyPrefix, { log });
    lifetime.onClose('ledger', ledger.close);
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
      onAnswered: ({ organizationId, caller, operation = '', status, userAgent }) => {
        ledger.record({
          organizationId,
          keyId: caller?.keyId,
          client: caller?.client,
          operation,
          status,
          userAgent,
        });
      },
      isDraining: () => isDraining(),
    });

    const sweep = (): void => {
      sweepLooseMedia(store, keyPrefix, (file) => media.remove(file)).catch((error: unknown) => {
        log.warn('loose picture files could not be swept', { reason: String(error) });
      });
    };
    sweep();
    const sweeper = setInterval(sweep, sweepInterval).unref();
    lifetime.onClose('sweeper', () => clearInterval(sweeper));

    const demo = isEmbedded ? await openDemo(store, keyPrefix, config.dataDir) : undefined;
    const server = await listen(app, config.host, config.port);
    lifetime.onClose('server', server.drain);
    isDraining = server.isDraining;
    const url = `http://${config.host.includes(':') ? `[${config.host}]` : config.host}:${server.port}`;
    baseUrl = config.publicBaseUrl ?? url;
    return {
      url,
      ...(demo && { welcome: describeDemo(demo, url, organizationHeader) }),
      close: lifetime.close,
    };
  } catch (error) {
    await lifetime.close();
    throw error;
  }
}

function awsCredentials() {
  const { AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION } = process.env;
  return {
    ...(AWS_ACCESS_KEY_ID !== undefined && { accessKeyId: AWS_ACCESS_KEY_ID }),
    ...(AWS_SECRET_ACCESS_KEY !== undefined && { secretAccessKey: AWS_SECRET_ACCESS_KEY }),
    ...(AWS_REGION !== undefined && { region: AWS_REGION }),
  };
}
