import cluster, { type Worker } from 'node:cluster';
import { once } from 'node:events';
import { setTimeout } from 'node:timers/promises';
import { AggregatorRegistry, type Registry } from 'prom-client';
import { getOrInsert } from '../lib/collections/get-or-insert.ts';

/** All metrics of a process, as prom-client gives them. */
type Snapshot = Awaited<ReturnType<Registry['getMetricsAsJSON']>>;

/** What a worker is sent. It answers with a snapshot; there are no other messages between the processes. */
const question = 'metrics';

/** How long workers are waited for, in ms: longer than their PING to Redis may take. */
const timeoutMs = 2000;

/** Makes this worker answer the questions of its parent's `workersMetrics`. */
export function answerWithMetrics(registry: Registry): void {
  process.on('message', (message) => {
    if (message !== question) return;
    // It need not be sent if the parent has gone; without a callback, that would be an uncaught error.
    void registry
      .getMetricsAsJSON()
      .then((metrics) => process.send?.(metrics, undefined, undefined, () => {}));
  });
}

/**
 * The metrics of all workers of this process together: counts are summed; of what every worker reports (the phase, the
 * state of Redis), the worst value is shown. The counts of workers that have exited are kept, as they were last shown,
 * so that a count never falls; of one that does not answer, only its last known counts are shown.
 */
export function workersMetrics() {
  const latest = new Map<Worker, Snapshot>();
  /** Workers that have not answered yet. They are not asked again, so that their messages do not pile up. */
  const asked = new Map<Worker, Promise<void>>();
  let ofExited: Promise<Snapshot> = Promise.resolve([]);

  const ask = async (worker: Worker): Promise<void> => {
    const answer = await answerOf(worker);
    if (answer !== undefined) latest.set(worker, answer);
    asked.delete(worker);
  };

  return {
    text: async (): Promise<string> => {
      const workers = Object.values(cluster.workers ?? {}).filter(isReachable);
      const answers = workers.map((worker) => getOrInsert(asked, worker, () => ask(worker)));
      await Promise.race([Promise.all(answers), setTimeout(timeoutMs, undefined, { ref: false })]);
      const shown: Snapshot[] = [];
      for (const [worker, metrics] of latest) {
        if (worker.isDead()) {
          latest.delete(worker);
          ofExited = ofExited.then((before) =>
            AggregatorRegistry.aggregate([before, countsOf(metrics)]).getMetricsAsJSON(),
          );
        } else shown.push(asked.has(worker) ? countsOf(metrics) : metrics);
      }
      return await AggregatorRegistry.aggregate([...shown, await ofExited]).metrics();
    },
    contentType: AggregatorRegistry.PROMETHEUS_CONTENT_TYPE,
  };
}

function isReachable(worker: Worker | undefined): worker is Worker {
  return worker !== undefined && worker.isConnected() && !worker.isDead();
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

/** Counters and histograms: what stays true when their process no longer answers. */
function countsOf(metrics: Snapshot): Snapshot {
  // Typed as a numeric enum, but a word.
  return metrics.filter(({ type }) => ['counter', 'histogram'].includes(String(type)));
}
