import type { Metric, Registry } from 'prom-client';

/** Of the calls of one operation with one status. */
interface Series {
  labels: { operation: string; status: string };
  /** How many took no longer than the bound at this place, and longer than the one before. */
  calls: number[];
  count: number;
  sum: number;
}

/**
 * A histogram of how long calls took, in seconds, by operation and status, as a metric of prom-client. That one's
 * own makes a text of the labels for each observation, to find the series by, which costs many times all this.
 */
export function observeDurations(
  registry: Registry,
  name: string,
  help: string,
  bounds: readonly number[],
): (operation: string, status: number, seconds: number) => void {
  const operations = new Map<string, Map<number, Series>>();

  const start = (operation: string, status: number): Series => {
    const series: Series = {
      labels: { operation, status: String(status) },
      calls: bounds.map(() => 0),
      count: 0,
      sum: 0,
    };
    const statuses = operations.get(operation) ?? new Map<number, Series>();
    operations.set(operation, statuses.set(status, series));
    return series;
  };

  const valuesOf = ({ labels, calls, count, sum }: Series) => {
    let upTo = 0;
    const buckets = bounds.map((le, i) => ({ labels: { le, ...labels }, value: (upTo += calls[i] ?? 0) }));
    return [
      ...[...buckets, { labels: { le: '+Inf', ...labels }, value: count }].map((bucket) => ({
        ...bucket,
        metricName: `${name}_bucket`,
      })),
      { labels, value: sum, metricName: `${name}_sum` },
      { labels, value: count, metricName: `${name}_count` },
    ];
  };

  const described = { name, help, type: 'histogram', aggregator: 'sum' };
  const get = async () => {
    const all = [...operations.values()].flatMap((statuses) => [...statuses.values()]);
    return await Promise.resolve({ ...described, values: all.flatMap(valuesOf) });
  };
  registry.registerMetric({ ...described, get } as unknown as Metric);

  return (operation, status, seconds) => {
    const series = operations.get(operation)?.get(status) ?? start(operation, status);
    series.count += 1;
    series.sum += seconds;
    const place = bounds.findIndex((bound) => seconds <= bound);
    if (place >= 0) series.calls[place] = (series.calls[place] ?? 0) + 1;
  };
}
