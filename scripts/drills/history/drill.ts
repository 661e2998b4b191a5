import { writeFile } from 'node:fs/promises';
import { formatNumber } from '../../../src/lib/numbers.ts';
import { table } from '../../../src/lib/system/terminal.ts';
import { openDeployment, type Deployment, type DeploymentOptions } from './deployment.ts';
import type { Fault } from './fault.ts';
import { noResult, runRound, type RoundResult } from './round.ts';

export interface DrillOptions {
  rounds: number;
  seed: number;
  say: (line: string) => void;
}

/** The result of all rounds of one fault. */
export interface FaultResult extends RoundResult {
  fault: Fault;
  rounds: number;
}

/** Drills the faults one after another, each with its share of the rounds. */
export async function drillHistories(
  faults: readonly Fault[],
  { rounds, seed, say }: DrillOptions,
): Promise<FaultResult[]> {
  const results: FaultResult[] = [];
  const deployments = createDeployments();
  const attemptRound = async (fault: Fault, roundSeed: number): Promise<RoundResult> => {
    try {
      return await runRound(await deployments.open(fault), fault, roundSeed);
    } catch (error) {
      await deployments.close();
      const message = `the round could not be carried out: ${String(error)}`;
      return { ...noResult(), violations: [{ message, history: [] }] };
    }
  };
  try {
    for (const [index, fault] of faults.entries()) {
      const share = Math.floor(rounds / faults.length) + (index < rounds % faults.length ? 1 : 0);
      const result: FaultResult = { fault, rounds: share, ...noResult() };
      for (let round = 0; round < share; round++) {
        const roundSeed = seed + index * 1000 + round;
        const found = await attemptRound(fault, roundSeed);
        add(result, found);
        say(
          `${fault.name}: round ${round + 1} of ${share} (--fault '^${fault.name}$' --rounds 1 --seed ${roundSeed}), ${formatNumber(found.operations)} operations`,
        );
        for (const [at, violation] of found.violations.entries()) {
          say(await describeViolation(`drill-${roundSeed}-${at}.json`, violation));
        }
        if (fault.breaksDeployment === true) await deployments.close();
      }
      if (share > 0) results.push(result);
    }
  } finally {
    await deployments.close();
  }
  return results;
}

const figures = ['operations', 'answered', 'unavailable', 'unanswered', 'lostWrites'] as const;

function add(sum: RoundResult, found: RoundResult): void {
  for (const figure of figures) sum[figure] += found[figure];
  sum.violations.push(...found.violations);
}

/** Keeps one deployment open for as long as it is of the kind that is wanted. */
function createDeployments() {
  let current: { kind: string; deployment: Deployment } | undefined;
  const close = async (): Promise<void> => {
    await current?.deployment.close();
    current = undefined;
  };
  return {
    open: async ({ store, environment }: DeploymentOptions): Promise<Deployment> => {
      const kind = JSON.stringify([store, environment]);
      if (current?.kind !== kind) {
        await close();
        current = { kind, deployment: await openDeployment({ store, environment }) };
      }
      return current.deployment;
    },
    close,
  };
}

async function describeViolation(
  file: string,
  { message, history }: RoundResult['violations'][number],
): Promise<string> {
  if (history.length === 0) return `VIOLATION: ${message}`;
  await writeFile(file, JSON.stringify(history, null, 1));
  return `VIOLATION: ${message}\nThe history is in ${file}.`;
}

export function describeResults(results: readonly FaultResult[]): string {
  const headings = ['rounds', 'operations', 'answered', '503', 'no answer', 'lost writes', 'violations'];
  return table(
    ['fault', ...headings],
    results.map((result) => [
      result.fault.name,
      formatNumber(result.rounds),
      ...figures.map((figure) => formatNumber(result[figure])),
      formatNumber(result.violations.length),
    ]),
    headings,
  );
}
