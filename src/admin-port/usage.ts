import type { RequestHandler } from 'express';
import { reportUsage } from '../deprecation/reports/report.ts';
import { reportCsv } from '../deprecation/reports/report-text.ts';
import { readUsageQuery } from '../deprecation/reports/usage-query.ts';
import { bytesOf, jsonParts } from '../lib/long-texts.ts';
import type { RedisClient } from '../redis/connection/client.ts';
import { readParameters } from './parameters.ts';
import { sendProblem } from './problem.ts';
import type { ReportQueue } from './report-queue.ts';

const parameters = ['from', 'to', 'organization', 'group', 'format'] as const;

/** `/usage`: who called what, as JSON (a `UsageReport`) or CSV. A 400 names everything wrong with the query. */
export function usage(
  store: RedisClient,
  keyPrefix: string,
  now: () => Promise<number>,
  inTurn: ReportQueue,
): RequestHandler {
  return async (request, response) => {
    const { fields, reasons } = readParameters(request.originalUrl, parameters);
    const { format = 'json' } = fields;
    if (format !== 'json' && format !== 'csv') reasons.push(`format must be json or csv, not "${format}"`);
    const at = await now();
    const read = readUsageQuery(fields, at, reasons);
    if (read.kind === 'invalid') {
      sendProblem(response, {
        status: 400,
        title: 'Invalid query',
        detail: read.reasons.join('; '),
        remedy:
          'Example: /usage?from=2026-11-01&to=2026-11-30&organization=ID&group=client,status&format=csv. Every parameter is optional. The groups are day, organization, client, operation and status; the formats json and csv.',
      });
      return;
    }
    const { report, bytes } = await inTurn(async () => {
      const made = await reportUsage(store, keyPrefix, read.query, at);
      return { report: made, bytes: await bytesOf(format === 'csv' ? reportCsv(made) : jsonParts(made)) };
    });
    if (format === 'csv') {
      response.attachment(
        `usage-by-${report.groupBy.replaceAll(',', '-')}-${report.from}-to-${report.to}.csv`,
      );
      response.type('text/csv; charset=utf-8');
    } else response.type('json');
    response.send(bytes);
  };
}
