import express, { type Express, type RequestHandler } from 'express';
import { assets } from './dashboard/assets.ts';
import type { Metrics } from '../deprecation/metrics.ts';
import type { DeprecationPolicy } from '../deprecation/policy/policy.ts';
import type { Log } from '../log.ts';
import type { RedisClient } from '../redis/connection/connect.ts';
import { dashboard } from './dashboard/route.ts';
import { createTokenVerifier, guard, sessionOf } from './guard.ts';
import { tellOperatorOfErrors, tellOperator } from './problem.ts';
import { onlyThisMachine, protectBrowsers, refuseOtherSites } from './safety.ts';
import { createSessions } from './sessions.ts';
import { signIn } from './sign-in.ts';
import { usage } from './usage.ts';

export interface OperationsOptions {
  store: RedisClient;
  keyPrefix: string;
  /** The policy in force. */
  policy: () => DeprecationPolicy;
  metrics: Pick<Metrics, 'text' | 'contentType'>;
  /** Undefined: whoever is on this machine may look. */
  token: string | undefined;
  log: Log;
  /** ms */
  now?: () => number;
}

/**
 * The admin port: `/metrics` (Prometheus), `/usage` (JSON, CSV) and the dashboard. With a token, only for those
 * who have it; without one, only for this machine, by a loopback name. It changes nothing, whoever asks.
 */
export function createOperationsApp(options: OperationsOptions): Express {
  const { store, keyPrefix, policy, metrics, token, log, now = Date.now } = options;
  const sessions = token === undefined ? undefined : createSessions(token, now);
  const app = express();
  app.disable('x-powered-by');
  app.set('etag', false);
  app.set('query parser', false);
  app.set('strict routing', true);
  app.set('case sensitive routing', true);

  app.use(protectBrowsers);
  if (sessions === undefined) app.use(onlyThisMachine);
  app.use(refuseOtherSites);
  app.get('/assets/{*path}', serveAsset);
  if (sessions !== undefined) {
    const judge = createTokenVerifier(sessions);
    app.use(signIn(sessions, judge));
    app.use(guard(sessions, judge));
  }
  app.get('/metrics', async (_request, response) => {
    response.setHeader('Content-Type', metrics.contentType);
    response.send(await metrics.text());
  });
  app.get('/usage', usage({ store, keyPrefix, now }));
  app.use(
    dashboard({
      store,
      keyPrefix,
      policy,
      now,
      signedIn: (request) => sessions !== undefined && sessionOf(request, sessions) !== undefined,
    }),
  );
  app.use(answerTheRest);
  app.use(tellOperatorOfErrors(log));
  return app;
}

const serveAsset: RequestHandler = (request, response, next) => {
  const asset = assets.get(request.path);
  if (asset === undefined) {
    next();
    return;
  }
  response.setHeader('Cache-Control', 'public, max-age=31536000, immutable');
  response.setHeader('Content-Type', asset.type);
  response.send(asset.bytes);
};

const pages = new Set(['/', '/live', '/metrics', '/usage']);

const answerTheRest: RequestHandler = (request, response) => {
  if (pages.has(request.path)) {
    tellOperator(response, {
      status: 405,
      title: 'The method is not allowed here',
      detail: `This path answers GET and HEAD, not ${request.method}.`,
      remedy: 'The policy is changed by profile-bridge admin deprecation, not here.',
      headers: { Allow: 'GET, HEAD' },
    });
  } else {
    tellOperator(response, {
      status: 404,
      title: 'There is nothing here',
      detail: 'The path is none of the admin port.',
      remedy: `There are ${[...pages].join(', ')}; the API itself answers on the public port.`,
    });
  }
};
