import cluster from 'node:cluster';
import { setTimeout } from 'node:timers/promises';
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry, type Aggregator } from 'prom-client';
import { dayMs } from '../lib/days.ts';
import { getOrInsert } from '../lib/collections/get-or-insert.ts';
import { version } from '../version.ts';
import type { Call } from './ledger/tally.ts';
import { phaseAt, phases, type DeprecationPolicy } from './policy/policy.ts';
import { answerWithMetrics, silentWorkersGauge } from './worker-metrics.ts';

interface Observed extends Pick<Call, 'operation' | 'status' | 'organizationId' | 'keyId'> {
  seconds: number;
  /** The code of the problem, if the call was refused. */
  code?: string | undefined;
}

/** The content of `/metrics`. */
export interface MetricsText {
  /** Sends a PING to Redis first, which takes a second at most. */
  text: () => Promise<string>;
}

/** A value, or one for each value of the label. */
export type Values = number | Readonly<Record<string, number>>;
/** Undefined while there is none. */
type Reading = () => Values | undefined | Promise<Values>;

/** What a gauge says, its label if it has one, and how the values of several workers become one. */
export type GaugeSpec = [help: string, label?: string | undefined, aggregator?: Aggregator];

/** Adds gauges, by name, that are read with the metrics; each is absent while there is no value. */
export function addGauges<Name extends string>(
  registry: Registry,
  prefix: string,
  specs: Record<Name, GaugeSpec>,
  read: (name: Name) => ReturnType<Reading>,
): void {
  for (const name of Object.keys(specs) as Name[]) {
    const [help, label, aggregator = 'sum'] = specs[name];
    const gauge: Gauge = new Gauge({
      name: prefix + name,
      help,
      aggregator,
      labelNames: label === undefined ? [] : [label],
      registers: [registry],
      collect: async () => {
        const values = await read(name);
        gauge.reset();
        // A gauge without a label is 0 after a reset.
        gauge.remove({});
        if (typeof values === 'number') gauge.set(values);
        else for (const [value, n] of Object.entries(values ?? {})) gauge.set({ [label ?? '']: value }, n);
      },
    });
  }
}

/** The values of a gauge with a label: 1 for the current state, 0 for the others. */
export function stateSet(all: readonly string[], current: string): Record<string, number> {
  return Object.fromEntries(all.map((value) => [value, Number(value === current)]));
}

export interface MetricsOptions {
  policy: () => DeprecationPolicy;
  /** How far the ledger in Redis lags behind. */
  lagSeconds: () => number;
  /** Resolves when Redis has answered; rejects if it is unavailable. */
  ping: () => Promise<unknown>;
  arePicturesAvailable: () => boolean;
  /** Requests in progress in this process. */
  slotsInUse: () => number;
  /** Request bodies being received. */
  openBodies: () => number;
  /** ms */
  now?: () => number;
}

/** Organizations with a series of their own; calls of further ones are counted as `other`. */
const maxOrganizations = 100;
const durationBuckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 3];
const pingTimeoutMs = 1000;

const gauges = {
  ledger_flush_lag_seconds: [
    'Seconds since everything counted was last written to the ledger.',
    undefined,
    'max',
  ],
  days_to_sunset: [
    'Days until the sunset, negative once it has passed; absent if none is set.',
    undefined,
    'first',
  ],
  deprecation_phase: ['1 for the current phase of the deprecation, 0 for the others.', 'phase', 'first'],
  redis_up: ['1 if Redis answered a PING just now, else 0.', undefined, 'min'],
  redis_latency_seconds: ['Round trip of that PING, or how long the bridge waited for it.', undefined, 'max'],
  pictures_up: ['1 if the latest attempt to store a picture succeeded, else 0.', undefined, 'min'],
  slots_in_use: ['Requests of the contract in progress; beyond the limit, they get 503 overloaded.'],
  open_bodies: ['Request bodies being received.'],
} satisfies Record<string, GaugeSpec>;

/**
 * The metrics of this process in Prometheus' format; those of a worker also reach its parent's `workersMetrics`. No
 * label has a key, a user or a client. Calls that were not authenticated have the organization `unattributed`.
 */
export function createMetrics({ policy, ping, now = Date.now, ...values }: MetricsOptions) {
  const registry = new Registry();
  if (cluster.isWorker) answerWithMetrics(registry);
  // Event-loop lag, garbage collection, memory, CPU, file descriptors.
  collectDefaultMetrics({ register: registry });
  // Their average over the workers, which is the default, would hide that one of them is blocked.
  for (const metric of registry.getMetricsAsArray()) {
    if (metric.name.startsWith('nodejs_eventloop_lag_') && metric.aggregator === 'average')
      metric.aggregator = 'max';
  }

  new Gauge({
    name: 'profile_bridge_build_info',
    help: 'Always 1; the labels are the version of Profile Bridge and of Node.js.',
    labelNames: ['version', 'node'] as const,
    aggregator: 'first',
    registers: [registry],
  }).set({ version, node: process.version }, 1);
  let probed = Promise.resolve({ hasAnswered: false, seconds: 0 });
  const readings: Record<keyof typeof gauges, Reading> = {
    ledger_flush_lag_seconds: values.lagSeconds,
    days_to_sunset: () => {
      const { sunsetAt } = policy();
      return sunsetAt === undefined ? undefined : (sunsetAt - now()) / dayMs;
    },
    deprecation_phase: () => stateSet(phases, phaseAt(policy(), now())),
    redis_up: async () => {
      probed = probe(ping);
      return Number((await probed).hasAnswered);
    },
    redis_latency_seconds: async () => (await probed).seconds,
    pictures_up: () => Number(values.arePicturesAvailable()),
    slots_in_use: values.slotsInUse,
    open_bodies: values.openBodies,
  };
  addGauges(registry, 'profile_bridge_', gauges, (name) => readings[name]());
  silentWorkersGauge(registry);
  return {
    observe: callCounter(registry),
    text: () => registry.metrics(),
  };
}

/** Adds the metrics of calls; the result counts one answered call in memory, in about a microsecond. */
function callCounter(registry: Registry): (call: Observed) => void {
  const registers = [registry];
  const durations = new Histogram({
    name: 'profile_bridge_request_duration_seconds',
    help: 'Time to answer a request of the deprecated contract.',
    labelNames: ['operation', 'status'] as const,
    buckets: durationBuckets,
    registers,
  });
  /**
   * Calls by operation and organization since the counter was last read. Incrementing the counter itself would cost each
   * call a microsecond.
   */
  const counted = new Map<string, Map<string, number>>();
  const requests = new Counter({
    name: 'profile_bridge_deprecated_requests_total',
    help: `Requests of the deprecated contract. Each process counts organizations beyond the first ${maxOrganizations} that it sees as "other", so a series may lack calls of its organization.`,
    labelNames: ['operation', 'organization'] as const,
    registers,
    collect: () => {
      for (const [operation, calls] of counted) {
        for (const [organization, count] of calls) requests.inc({ operation, organization }, count);
      }
      counted.clear();
    },
  });
  const refusals = new Counter({
    name: 'profile_bridge_refusals_total',
    help: 'Requests of the deprecated contract that were refused, by problem code.',
    labelNames: ['operation', 'code'] as const,
    registers,
  });

  const named = new Set<string>();
  /** Only for calls with a valid key: without one, anybody could add values to the label. */
  const nameOf = (organizationId: string): string => {
    if (named.size < maxOrganizations) named.add(organizationId);
    return named.has(organizationId) ? organizationId : 'other';
  };

  return ({ operation, status, seconds, organizationId, keyId, code }) => {
    if (code !== undefined) refusals.inc({ operation, code });
    durations.observe({ operation, status: String(status) }, seconds);
    const calls = getOrInsert(counted, operation, () => new Map());
    const isProven = keyId !== undefined && organizationId !== undefined;
    const organization = isProven ? nameOf(organizationId) : 'unattributed';
    calls.set(organization, (calls.get(organization) ?? 0) + 1);
  };
}

/** Gives up waiting for the answer after `pingTimeoutMs`. */
async function probe(ping: () => Promise<unknown>): Promise<{ hasAnswered: boolean; seconds: number }> {
  const start = performance.now();
  const timeout = setTimeout(pingTimeoutMs, false, { ref: false });
  const hasAnswered = await Promise.race([ping().then(() => true), timeout]).catch(() => false);
  return { hasAnswered, seconds: (performance.now() - start) / 1000 };
}
