import type { RequestHandler } from 'express';
import { reportCsv, reportUsage } from '../deprecation/reports/report.ts';
import { readUsageQuery } from '../deprecation/reports/usage-query.ts';
import type { RedisClient } from '../redis/connection/connect.ts';
import { readParameters } from './parameters.ts';
import { tellOperator } from './problem.ts';

interface UsageOptions {
  store: RedisClient;
  keyPrefix: string;
  now: () => number;
}

/** `/usage`: who called what, as JSON (a `UsageReport`) or CSV; 400 names everything wrong with the question. */
export function usage({ store, keyPrefix, now }: UsageOptions): RequestHandler {
  return async (request, response) => {
    const { fields, reasons } = readParameters(request.originalUrl, [
      'from',
      'to',
      'organization',
      'group',
      'format',
    ]);
    const format = fields.format ?? 'json';
    if (format !== 'json' && format !== 'csv') reasons.push(`format is json or csv, not "${format}"`);
    const read = readUsageQuery(fields, now());
    if (read.kind === 'invalid') reasons.push(...read.reasons);
    if (read.kind === 'invalid' || reasons.length > 0) {
      tellOperator(response, {
        status: 400,
        title: 'The question cannot be answered',
        detail: reasons.join('; '),
        remedy:
          'Ask like /usage?from=2027-01-01&to=2027-01-31&organization=ID&group=day|organization|client|operation|status&format=json|csv; all of it may be left out.',
      });
      return;
    }
    const report = await reportUsage(store, keyPrefix, read.query, now());
    if (format === 'csv') {
      response.attachment(`usage-by-${report.groupBy}-${report.from}-to-${report.to}.csv`);
      response.type('text/csv; charset=utf-8').send(reportCsv(report));
    } else response.json(report);
  };
}
