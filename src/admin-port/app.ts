import { extname } from 'node:path';
import express, { type Express, type RequestHandler } from 'express';
import { Registry } from 'prom-client';
import { findEvidence, type Evidence } from '../cutover/verdict/evidence.ts';
import type { MetricsText } from '../deprecation/metrics.ts';
import type { DeprecationPolicy } from '../deprecation/policy/policy.ts';
import type { Log } from '../log.ts';
import { storeTime, type RedisClient } from '../redis/connection/client.ts';
import { createCutoverMetrics } from './cutover-metrics.ts';
import { dashboard } from './dashboard/route.ts';
import { assets } from './dashboard/shell.ts';
import { guard } from './guard.ts';
import { handleErrors, sendProblem } from './problem.ts';
import { createReportQueue } from './report-queue.ts';
import { onlyThisMachine, protectBrowsers, refuseOtherSites, requireTarget } from './safety.ts';
import { createSessions } from './sessions.ts';
import { shareReads } from './shared-reads.ts';
import { signIn } from './sign-in.ts';
import { usage } from './usage.ts';

interface AdminAppOptions {
  store: RedisClient;
  keyPrefix: string;
  /** The policy in force. */
  policy: () => DeprecationPolicy;
  metrics: MetricsText;
  /** Undefined: only requests from this machine are answered. */
  token: string | undefined;
  log: Log;
  /** Instead of the clocks of this machine and of Redis, in ms. */
  now?: () => number;
}

/**
 * The admin port: `/metrics` (Prometheus), `/usage` (JSON, CSV) and the dashboard at `/`, all of them read-only. They
 * require the token if there is one; otherwise they only answer this machine, by a loopback name.
 */
export function createAdminApp(options: AdminAppOptions): Express {
  const { store, keyPrefix, policy, metrics, token, log, now = Date.now } = options;
  /** The clock of the ledger. */
  const ledgerNow = async (): Promise<number> => options.now?.() ?? (await storeTime(store));
  const app = express();
  app.disable('x-powered-by');
  app.set('etag', false);
  app.set('query parser', false);
  app.set('strict routing', true);
  app.set('case sensitive routing', true);

  app.use(protectBrowsers, requireTarget);
  if (token === undefined) app.use(onlyThisMachine);
  app.use(refuseOtherSites);
  app.get('/assets/{*path}', serveAsset);
  if (token !== undefined) {
    const sessions = createSessions(token, now);
    app.use(signIn(sessions), guard(sessions));
  }
  const readCutover = shareReads<void, Evidence | undefined>(() => findEvidence(store, keyPrefix), now);
  const cutoverMetrics = createCutoverMetrics(readCutover);
  app.get('/metrics', async (_request, response) => {
    response.setHeader('Content-Type', Registry.PROMETHEUS_CONTENT_TYPE);
    response.send((await Promise.all([metrics.text(), cutoverMetrics.text()])).join('\n'));
  });
  const inTurn = createReportQueue();
  app.get('/usage', usage(store, keyPrefix, ledgerNow, inTurn));
  app.get('/', dashboard({ store, keyPrefix, policy, readCutover, log, now, ledgerNow, inTurn }));
  app.use(refuseUnknown);
  app.use(handleErrors(log));
  return app;
}

const serveAsset: RequestHandler = (request, response, next) => {
  const bytes = assets.get(request.path);
  if (bytes === undefined) next();
  else {
    response.setHeader('Cache-Control', 'public, max-age=31536000, immutable');
    response.type(extname(request.path)).send(bytes);
  }
};

const pages = new Set(['/', '/metrics', '/usage']);

const refuseUnknown: RequestHandler = (request, response) => {
  if (pages.has(request.path)) {
    sendProblem(response, {
      status: 405,
      title: 'Method not allowed',
      detail: `This path supports GET and HEAD, not ${request.method}.`,
      remedy: 'The admin port is read-only. To change the policy, run: profile-bridge admin deprecation set',
      headers: { Allow: 'GET, HEAD' },
    });
  } else {
    sendProblem(response, {
      status: 404,
      title: 'Not found',
      detail: 'The admin port has no such path.',
      remedy: `It serves ${[...pages].join(', ')}; the API itself is on the public port.`,
    });
  }
};
