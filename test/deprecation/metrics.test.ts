import { describe, expect, test } from '@jest/globals';
import { createMetrics, type MetricsOptions } from '../../src/deprecation/metrics.ts';
import { layerPolicy } from '../../src/deprecation/policy/policy.ts';
import { version } from '../../src/version.ts';

const NOW = Date.parse('2027-03-01T12:00:00Z');
const metricsWith = (options: Partial<MetricsOptions> = {}) =>
  createMetrics({
    policy: () => layerPolicy({ deprecatedAt: NOW, sunsetAt: NOW + 36 * 3_600_000 }),
    lagSeconds: () => 1.5,
    arePicturesAvailable: () => true,
    slotsInUse: () => 0,
    openBodies: () => 0,
    ping: () => Promise.resolve('PONG'),
    now: () => NOW,
    ...options,
  });

/** Series with their values, without comments. */
async function read(metrics: ReturnType<typeof metricsWith>): Promise<Map<string, number>> {
  const lines = (await metrics.text()).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(lines.map((line) => [line.replace(/ \S+$/, ''), Number(/\S+$/.exec(line)?.[0])]));
}

describe('the metrics', () => {
  test('time requests by operation and status, and count them by operation and organization', async () => {
    const metrics = metricsWith();
    const call = { organizationId: 'acme', keyId: 'k_1', operation: 'getProfile', status: 200 };
    metrics.observe({ ...call, seconds: 0.002 });
    metrics.observe({ ...call, seconds: 0.2 });
    // Anybody can claim an organization.
    metrics.observe({ ...call, keyId: undefined, status: 401, seconds: 0.001 });
    const series = await read(metrics);
    const duration = 'profile_bridge_request_duration_seconds';
    expect(series.get(`${duration}_bucket{le="0.0025",operation="getProfile",status="200"}`)).toBe(1);
    expect(series.get(`${duration}_bucket{le="0.25",operation="getProfile",status="200"}`)).toBe(2);
    expect(series.get(`${duration}_sum{operation="getProfile",status="200"}`)).toBeCloseTo(0.202);
    expect(series.get(`${duration}_count{operation="getProfile",status="200"}`)).toBe(2);
    const requests = 'profile_bridge_deprecated_requests_total';
    expect(series.get(`${requests}{operation="getProfile",organization="acme"}`)).toBe(2);
    expect(series.get(`${requests}{operation="getProfile",organization="unattributed"}`)).toBe(1);
  });

  test('include the running version', async () => {
    const labels = `version="${version}",node="${process.version}"`;
    expect((await read(metricsWith())).get(`profile_bridge_build_info{${labels}}`)).toBe(1);
  });

  test('count requests slower than the last bucket, and are cumulative', async () => {
    const metrics = metricsWith();
    const slow = { operation: 'putProfile', status: 200, seconds: 60, organizationId: 'acme', keyId: 'k_1' };
    metrics.observe(slow);
    await read(metrics);
    metrics.observe(slow);
    const series = await read(metrics);
    const duration = 'profile_bridge_request_duration_seconds';
    expect(series.get(`${duration}_bucket{le="3",operation="putProfile",status="200"}`)).toBe(0);
    expect(series.get(`${duration}_bucket{le="+Inf",operation="putProfile",status="200"}`)).toBe(2);
    const requests = 'profile_bridge_deprecated_requests_total';
    expect(series.get(`${requests}{operation="putProfile",organization="acme"}`)).toBe(2);
  });

  test('have a series for each of the first 100 organizations, and count the rest as other', async () => {
    const metrics = metricsWith();
    for (let i = 0; i < 150; i += 1) {
      const key = { organizationId: `org-${i}`, keyId: 'k_1' };
      metrics.observe({ ...key, operation: 'getProfile', status: 200, seconds: 0 });
    }
    const series = await read(metrics);
    const requests = 'profile_bridge_deprecated_requests_total';
    expect([...series.keys()].filter((name) => name.startsWith(requests))).toHaveLength(101);
    expect(series.get(`${requests}{operation="getProfile",organization="other"}`)).toBe(50);
  });

  test('include phase, days to the sunset, flush lag, Redis, event loop and process', async () => {
    const begun = performance.now();
    const series = await read(metricsWith());
    const seconds = (performance.now() - begun) / 1000;
    expect(series.get('profile_bridge_days_to_sunset')).toBe(1.5);
    expect(series.get('profile_bridge_deprecation_phase{phase="announced"}')).toBe(1);
    expect(series.get('profile_bridge_deprecation_phase{phase="sunset"}')).toBe(0);
    expect(series.get('profile_bridge_ledger_flush_lag_seconds')).toBe(1.5);
    expect(series.get('profile_bridge_redis_up')).toBe(1);
    expect(series.get('profile_bridge_redis_latency_seconds')).toBeLessThanOrEqual(seconds);
    expect(series.has('nodejs_eventloop_lag_seconds')).toBe(true);
    expect(series.has('process_resident_memory_bytes')).toBe(true);
  });

  test('omit the days to the sunset if none is set', async () => {
    const series = await read(metricsWith({ policy: () => layerPolicy() }));
    expect(series.has('profile_bridge_days_to_sunset')).toBe(false);
  });

  test('report Redis as down if it refuses connections', async () => {
    const series = await read(
      metricsWith({ ping: () => Promise.reject(new Error('Connection is closed.')) }),
    );
    expect(series.get('profile_bridge_redis_up')).toBe(0);
  });

  test('report Redis as down if it does not answer within a second', async () => {
    const series = await read(metricsWith({ ping: () => new Promise(() => {}) }));
    expect(series.get('profile_bridge_redis_up')).toBe(0);
    expect(series.get('profile_bridge_redis_latency_seconds')).toBeGreaterThan(0.9);
  });
});
