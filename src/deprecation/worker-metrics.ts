import cluster, { type Worker } from 'node:cluster';
import { once } from 'node:events';
import { setTimeout } from 'node:timers/promises';
import { AggregatorRegistry, Gauge, Registry } from 'prom-client';
import { getOrInsert } from '../lib/collections/get-or-insert.ts';

/** The values of all metrics of a process. */
type Snapshot = Awaited<ReturnType<Registry['getMetricsAsJSON']>>;

/** Sent to a worker, which answers with a snapshot. There are no other messages between the processes. */
const question = 'metrics';

/** How long workers are waited for, in ms: longer than their PING to Redis may take. */
const timeoutMs = 2000;

/** Adds the gauge of silent workers. Every process has it, so that an alert can rely on it. */
export function silentWorkersGauge(registry: Registry): Gauge {
  return new Gauge({
    name: 'profile_bridge_silent_workers',
    help: 'Workers that do not report their metrics; their requests may hang, too. Always 0 with a single process.',
    registers: [registry],
  });
}

/** Makes this worker send its metrics whenever the `workersMetrics` of its parent asks for them. */
export function answerWithMetrics(registry: Registry): void {
  process.on('message', (message) => {
    if (message !== question) return;
    // The callback ignores that the parent has gone, which would otherwise be an uncaught error.
    void registry
      .getMetricsAsJSON()
      .then((metrics) => process.send?.(metrics, undefined, undefined, () => {}));
  });
}

/**
 * The metrics of all workers of this process together: counts are summed; of the lag and the states of Redis and of the
 * picture store, the worst value is shown; the phase and the days to the sunset are those of the first worker. The
 * counts of workers that have exited are kept, as they were last shown, so that a count never falls; of one that does
 * not answer, only its last known counts are shown.
 */
export function workersMetrics() {
  /** The workers to ask: those that are still starting have no metrics yet. */
  const listening = new Set<Worker>();
  cluster.on('listening', (worker) => listening.add(worker));
  cluster.on('exit', (worker) => listening.delete(worker));
  const latest = new Map<Worker, Snapshot>();
  /** Workers that have not answered yet. They are not asked again, so that their messages do not pile up. */
  const asked = new Map<Worker, Promise<void>>();
  let exitedCounts: Promise<Snapshot> = Promise.resolve([]);
  const own = new Registry();
  const silentWorkers = silentWorkersGauge(own);

  const ask = async (worker: Worker): Promise<void> => {
    const answer = await answerOf(worker);
    if (answer !== undefined) latest.set(worker, answer);
    asked.delete(worker);
  };

  return {
    text: async (): Promise<string> => {
      const workers = [...listening].filter((worker) => worker.isConnected() && !worker.isDead());
      const answers = workers.map((worker) => getOrInsert(asked, worker, () => ask(worker)));
      await Promise.race([Promise.all(answers), setTimeout(timeoutMs, undefined, { ref: false })]);
      silentWorkers.set(workers.filter((worker) => asked.has(worker)).length);
      const shown: Snapshot[] = [];
      for (const [worker, metrics] of latest) {
        if (worker.isDead()) {
          latest.delete(worker);
          exitedCounts = exitedCounts.then((before) =>
            AggregatorRegistry.aggregate([before, countsOf(metrics)]).getMetricsAsJSON(),
          );
        } else shown.push(asked.has(worker) ? countsOf(metrics) : metrics);
      }
      return await AggregatorRegistry.aggregate([
        ...shown,
        await exitedCounts,
        await own.getMetricsAsJSON(),
      ]).metrics();
    },
  };
}

/** Asks a worker for its metrics; undefined if it exits before it has answered. */
async function answerOf(worker: Worker): Promise<Snapshot | undefined> {
  const settled = new AbortController();
  const untilSettled = { signal: settled.signal };
  // A message that cannot be sent means that the worker is exiting.
  worker.send(question, () => {});
  const answered = once(worker, 'message', untilSettled).then(([metrics]) => metrics as Snapshot);
  const exited = once(worker, 'exit', untilSettled).then(() => undefined);
  try {
    return await Promise.race([answered, exited]);
  } finally {
    settled.abort();
  }
}

/** The counters and histograms: they stay true when their process no longer answers. */
function countsOf(metrics: Snapshot): Snapshot {
  // prom-client types it as a numeric enum, but it is a string.
  return metrics.filter(({ type }) => ['counter', 'histogram'].includes(String(type)));
}
