import { Router, type Request, type Response } from 'express';
import { createFindings } from './findings.ts';
import { liveUpdate, renderDashboard, renderTrouble, type DashboardOptions } from './page.ts';
import { dashboardParameters, readDashboardQuery } from './query.ts';
import type { DeprecationPolicy } from '../../deprecation/policy/policy.ts';
import type { RedisClient } from '../../redis/connection/connect.ts';
import { readParameters } from '../parameters.ts';
import { explainError, tellOperator, type OperationsProblem } from '../problem.ts';

export interface DashboardRoutesOptions {
  store: RedisClient;
  keyPrefix: string;
  policy: () => DeprecationPolicy;
  now: () => number;
  signedIn: (request: Request) => boolean;
}

/** `/`, the page for people, and `/live`, what an open page asks for now and then. */
export function dashboard({ store, keyPrefix, policy, now, signedIn }: DashboardRoutesOptions): Router {
  const read = createFindings(store, keyPrefix, now);

  /** What to show, or why nothing can be shown. Throws what is a mistake of ours. */
  const look = async (request: Request): Promise<DashboardOptions | OperationsProblem> => {
    const { fields, reasons } = readParameters(request.originalUrl, dashboardParameters);
    const asked = readDashboardQuery(fields, now());
    if (asked.kind === 'invalid') reasons.push(...asked.reasons);
    if (asked.kind === 'invalid' || reasons.length > 0) return badQuestion(reasons);
    try {
      const findings = await read(asked.query);
      return { policy: policy(), query: asked.query, findings, signedIn: signedIn(request) };
    } catch (error) {
      const known = explainError(error);
      if (known === undefined) throw error;
      return known;
    }
  };

  const router = Router();
  router.get('/', async (request: Request, response: Response) => {
    const seen = await look(request);
    if ('findings' in seen) response.send(renderDashboard(seen));
    else {
      const { status, title, detail, remedy, headers = {} } = seen;
      for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
      const page = {
        policy: policy(),
        now: now(),
        title,
        details: [detail],
        remedy,
        signedIn: signedIn(request),
      };
      response.status(status).send(renderTrouble(page));
    }
  });
  router.get('/live', async (request: Request, response: Response) => {
    const seen = await look(request);
    if ('findings' in seen) response.json(liveUpdate(seen));
    else tellOperator(response, seen);
  });
  return router;
}

function badQuestion(reasons: readonly string[]): OperationsProblem {
  return {
    status: 400,
    title: 'The address asks for something that cannot be shown',
    detail: reasons.join('; '),
    remedy: 'Choose an organization and a period again.',
  };
}
