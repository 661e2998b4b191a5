import cluster from 'node:cluster';
import {
  AggregatorRegistry,
  collectDefaultMetrics,
  Counter,
  Gauge,
  Histogram,
  Registry,
  type Aggregator,
} from 'prom-client';
import { dayMs } from '../lib/days.ts';
import { version } from '../version.ts';
import { phaseAt, type DeprecationPolicy, type Phase } from './policy/policy.ts';

/** One answered call of the contract. */
interface Observed {
  operation: string;
  status: number;
  seconds: number;
  /** Only if the call was authenticated, so that nobody else can add values to the label. */
  organizationId?: string | undefined;
  /** Of the problem that it was refused with. */
  code?: string | undefined;
}

/** What `/metrics` shows. */
export interface MetricsText {
  /** Measures the latency of Redis first, which takes a second at most. */
  text: () => Promise<string>;
  /** What `text` is, for the Content-Type header. */
  contentType: string;
}

export interface Metrics extends MetricsText {
  /** Counts one answered call in memory, in about a microsecond. */
  observe: (call: Observed) => void;
}

export interface MetricsOptions {
  policy: () => DeprecationPolicy;
  /** Of the ledger. */
  lagSeconds: () => number;
  /** Resolves when Redis has answered; rejects if it is unavailable. */
  ping: () => Promise<unknown>;
  arePicturesAvailable: () => boolean;
  /** Requests that this process works on just now. */
  slotsInUse: () => number;
  /** Bodies that it is receiving. */
  openBodies: () => number;
  /** ms */
  now?: () => number;
}

const phases = ['none', 'announced', 'brownout', 'sunset'] as const satisfies Phase[];
/** Organizations with a series of their own; calls of further ones are counted as `other`. */
const mostOrganizations = 100;
const durationBuckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 3];
const pingTimeoutMs = 1000;

/**
 * The metrics of all workers of this process as one: counts are summed; of what all of them see (the phase, the state of
 * Redis) one value is taken, the worst.
 */
export function workersMetrics(): MetricsText {
  const registry = new AggregatorRegistry();
  return { text: () => registry.clusterMetrics(), contentType: registry.contentType };
}

/**
 * The metrics of this process in Prometheus' format; those of a worker also reach its parent's `workersMetrics`. No
 * label has a key, a user or a client. Calls that were not authenticated have the organization `unattributed`.
 */
export function createMetrics({
  policy,
  lagSeconds,
  ping,
  arePicturesAvailable,
  slotsInUse,
  openBodies,
  now = Date.now,
}: MetricsOptions): Metrics {
  const registry = new Registry();
  const registers = [registry];
  if (cluster.isWorker) {
    AggregatorRegistry.setRegistries(registers);
    // Only an aggregator listens for the parent's questions.
    void new AggregatorRegistry();
  }
  // Event-loop lag, garbage collection, memory, CPU, file descriptors.
  collectDefaultMetrics({ register: registry });

  new Gauge({
    name: 'profile_bridge_build_info',
    help: 'Always 1; the labels tell which version runs, and on which Node.',
    labelNames: ['version', 'node'] as const,
    aggregator: 'first',
    registers,
  }).set({ version, node: process.version }, 1);
  const durations = new Histogram({
    name: 'profile_bridge_request_duration_seconds',
    help: 'Time to answer a request of the deprecated contract.',
    labelNames: ['operation', 'status'] as const,
    buckets: durationBuckets,
    registers,
  });
  /** By operation and organization, since the counter was last asked: to count there at once would make a text of the labels for every call. */
  const counted = new Map<string, Map<string, number>>();
  const requests = new Counter({
    name: 'profile_bridge_deprecated_requests_total',
    help: `Requests of the deprecated contract; organizations beyond the first ${mostOrganizations} are "other".`,
    labelNames: ['operation', 'organization'] as const,
    registers,
    collect: () => {
      for (const [operation, calls] of counted) {
        for (const [organization, count] of calls) requests.inc({ operation, organization }, count);
      }
      counted.clear();
    },
  });
  gauge(
    registry,
    'profile_bridge_ledger_flush_lag_seconds',
    'Age of the latest call surely in the ledger.',
    'max',
    (g) => g.set(lagSeconds()),
  );
  gauge(
    registry,
    'profile_bridge_days_to_sunset',
    'Days until the sunset, negative once it has passed; absent without one.',
    'first',
    (g) => {
      const { sunsetAt } = policy();
      if (sunsetAt === undefined) g.remove();
      else g.set((sunsetAt - now()) / dayMs);
    },
  );
  const phase = new Gauge({
    name: 'profile_bridge_deprecation_phase',
    help: '1 for the phase the deprecation is in, 0 for the others.',
    labelNames: ['phase'] as const,
    aggregator: 'first',
    registers,
    collect: () => {
      const current = phaseAt(policy(), now());
      for (const name of phases) phase.set({ phase: name }, name === current ? 1 : 0);
    },
  });
  let probed = Promise.resolve({ answered: false, seconds: 0 });
  gauge(registry, 'profile_bridge_redis_up', '1 where Redis answered just now, else 0.', 'min', async (g) => {
    probed = probe(ping);
    g.set((await probed).answered ? 1 : 0);
  });
  gauge(
    registry,
    'profile_bridge_redis_latency_seconds',
    'Round trip of one PING just now, or how long it was waited for in vain.',
    'max',
    async (g) => g.set((await probed).seconds),
  );

  gauge(
    registry,
    'profile_bridge_pictures_up',
    '1 if the latest attempt to store a picture succeeded, else 0.',
    'min',
    (g) => g.set(arePicturesAvailable() ? 1 : 0),
  );
  gauge(
    registry,
    'profile_bridge_slots_in_use',
    'Requests of the contract that are worked on now; beyond the limit they are refused with 503 overloaded.',
    'sum',
    (g) => g.set(slotsInUse()),
  );
  gauge(registry, 'profile_bridge_open_bodies', 'Request bodies that are being received now.', 'sum', (g) =>
    g.set(openBodies()),
  );
  const refusals = new Counter({
    name: 'profile_bridge_refusals_total',
    help: 'Requests of the deprecated contract that were refused, by problem code.',
    labelNames: ['operation', 'code'] as const,
    registers,
  });

  const named = new Set<string>();
  const nameOf = (organizationId: string | undefined): string => {
    if (organizationId === undefined) return 'unattributed';
    if (named.has(organizationId)) return organizationId;
    if (named.size >= mostOrganizations) return 'other';
    named.add(organizationId);
    return organizationId;
  };

  return {
    observe: ({ operation, status, seconds, organizationId, code }) => {
      if (code !== undefined) refusals.inc({ operation, code });
      durations.observe({ operation, status: String(status) }, seconds);
      let calls = counted.get(operation);
      if (calls === undefined) counted.set(operation, (calls = new Map<string, number>()));
      const organization = nameOf(organizationId);
      calls.set(organization, (calls.get(organization) ?? 0) + 1);
    },
    text: () => registry.metrics(),
    contentType: registry.contentType,
  };
}

function gauge(
  registry: Registry,
  name: string,
  help: string,
  aggregator: Aggregator,
  collect: (gauge: Gauge) => unknown,
): void {
  const made: Gauge = new Gauge({
    name,
    help,
    aggregator,
    registers: [registry],
    collect: async () => {
      await collect(made);
    },
  });
}

async function probe(ping: () => Promise<unknown>): Promise<{ answered: boolean; seconds: number }> {
  const began = performance.now();
  const answered = await answersInTime(ping);
  return { answered, seconds: (performance.now() - began) / 1000 };
}

async function answersInTime(ping: () => Promise<unknown>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(resolve, pingTimeoutMs, false);
  });
  try {
    return await Promise.race([ping().then(() => true), late]);
  } catch {
    return false;
  } finally {
    clearTimeout(timer);
  }
}
