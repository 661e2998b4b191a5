import type { RequestHandler } from 'express';
import type { DeprecationPolicy } from '../../deprecation/policy/policy.ts';
import type { RedisClient } from '../../redis/connection/connect.ts';
import { readParameters } from '../parameters.ts';
import { explainError } from '../problem.ts';
import { createDashboardReader } from './dashboard-data.ts';
import { renderDashboard, renderProblem } from './page.ts';
import { dashboardParameters, readDashboardQuery } from './query.ts';

export interface DashboardOptions {
  store: RedisClient;
  keyPrefix: string;
  policy: () => DeprecationPolicy;
  now: () => number;
  signedIn: (request: Parameters<RequestHandler>[0]) => boolean;
}

/** `/`: the dashboard. Its problems are pages too. */
export function dashboard({ store, keyPrefix, policy, now, signedIn }: DashboardOptions): RequestHandler {
  const read = createDashboardReader(store, keyPrefix, now);
  return async (request, response) => {
    const options = { policy: policy(), now: now(), signedIn: signedIn(request) };
    const { fields, reasons } = readParameters(request.originalUrl, dashboardParameters);
    const asked = readDashboardQuery(fields, now());
    if (asked.kind === 'invalid') reasons.push(...asked.reasons);
    if (asked.kind === 'invalid' || reasons.length > 0) {
      const problem = {
        status: 400,
        title: 'This page cannot be shown',
        detail: `In its address, ${reasons.join('; ')}.`,
        remedy: 'Choose an organization and a period again.',
      };
      response.status(400).send(renderProblem(options, problem));
      return;
    }
    try {
      response.send(renderDashboard(options, asked.query, await read(asked.query)));
    } catch (error) {
      const problem = explainError(error);
      if (problem === undefined) throw error;
      response
        .set(problem.headers ?? {})
        .status(problem.status)
        .send(renderProblem(options, problem));
    }
  };
}
