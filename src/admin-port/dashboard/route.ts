import type { RequestHandler } from 'express';
import type { DeprecationPolicy } from '../../deprecation/policy/policy.ts';
import type { Evidence } from '../../cutover/verdict/evidence.ts';
import type { Log } from '../../log.ts';
import type { RedisClient } from '../../redis/connection/client.ts';
import { readParameters } from '../parameters.ts';
import { explainError, type AdminProblem } from '../problem.ts';
import type { ReportQueue } from '../report-queue.ts';
import { shareReads } from '../shared-reads.ts';
import { readDashboardData } from './dashboard-data.ts';
import { renderDashboard, renderProblem } from './page.ts';
import { dashboardParameters, readDashboardQuery, type DashboardQuery } from './query.ts';

interface DashboardOptions {
  store: RedisClient;
  keyPrefix: string;
  policy: () => DeprecationPolicy;
  readCutover: () => Promise<Evidence | undefined>;
  log: Log;
  /** The clock of this machine, by which it follows the policy; ms. */
  now: () => number;
  /** That of the ledger. */
  ledgerNow: () => Promise<number>;
  inTurn: ReportQueue;
}

/** `/`: the dashboard. Its problems are pages too. */
export function dashboard(options: DashboardOptions): RequestHandler {
  const { store, keyPrefix, policy, readCutover, log, now, ledgerNow, inTurn } = options;
  const read = shareReads(
    (query: DashboardQuery) =>
      inTurn(async () => readDashboardData(store, keyPrefix, query, await ledgerNow())),
    now,
    ({ firstDay, lastDay, organizationId, groupBy }) =>
      JSON.stringify([firstDay, lastDay, organizationId, groupBy]),
  );
  return async (request, response) => {
    const page = { policy: policy(), now: now(), signedIn: response.locals['signedIn'] === true };
    const { fields, reasons } = readParameters(request.originalUrl, dashboardParameters);
    const showProblem = (problem: AdminProblem): void => {
      response.set(problem.headers).status(problem.status).send(renderProblem(page, problem));
    };
    try {
      const asked = readDashboardQuery(fields, await ledgerNow(), reasons);
      if (asked.kind === 'invalid') {
        return showProblem({
          status: 400,
          title: 'This page cannot be shown',
          detail: `In its address, ${asked.reasons.join('; ')}.`,
          remedy: 'Choose an organization and a period again.',
        });
      }
      const [data, cutover] = await Promise.all([read(asked.query), readCutover()]);
      response.send(renderDashboard(page, asked.query, data, cutover));
    } catch (error) {
      showProblem(explainError(error, request.path, log));
    }
  };
}
