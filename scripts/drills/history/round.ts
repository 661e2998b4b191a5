import { setTimeout as sleep } from 'node:timers/promises';
import { checkLinearizability, type Operation } from '../checker/linearizability.ts';
import {
  mergeUnseenAvatars,
  organizationModel,
  type Input,
  type Organization,
} from '../checker/organization.ts';
import { createRandom } from '../random.ts';
import { turnsOf } from './turns.ts';
import type { Fault } from './fault.ts';
import { countLostWrites } from './lost-writes.ts';
import { createDrilledOrganization, type Seen } from './organization.ts';
import { checkStore } from './tools.ts';
import type { Deployment } from './deployment.ts';

const organizationsAtOnce = 2;
const clientsOfEach = 5;

export interface RoundResult extends Seen {
  operations: number;
  /** Acknowledged, and gone. */
  lostWrites: number;
  /** Violations of the contract, in words, with the history in which they were found. */
  violations: { message: string; history: readonly Operation<Input>[] }[];
}

export function noResult(): RoundResult {
  return { operations: 0, answered: 0, unavailable: 0, unanswered: 0, lostWrites: 0, violations: [] };
}

/** Lets clients call while the fault happens, and checks what they saw. The same seed makes the same calls. */
export async function runRound(deployment: Deployment, fault: Fault, seed: number): Promise<RoundResult> {
  const random = createRandom(seed);
  const result = noResult();
  const report = (message: string, history: readonly Operation<Input>[] = []): void =>
    void result.violations.push({ message, history });
  const fail = (error: unknown): void => report(error instanceof Error ? error.message : String(error));

  const organizations = await Promise.all(
    Array.from({ length: organizationsAtOnce }, async (_, index) => {
      const comparison = random.pick(['exact', 'case-insensitive'] as const);
      const options = { comparison, longLists: fault.longLists ?? false, onViolation: fail };
      return {
        first: comparison,
        drilled: await createDrilledOrganization(deployment, `drill-${seed}-${index}`, options),
      };
    }),
  );
  const drilled = organizations.map((organization) => organization.drilled);

  const over = new AbortController();
  const impatient = fault.impatient ?? false;
  const clients = drilled.flatMap((organization, index) =>
    Array.from({ length: clientsOfEach }, async (_, client) => {
      const turns = turnsOf(client, { seed: seed + index * clientsOfEach, impatient });
      await organization.run(turns, over.signal).catch(fail);
    }),
  );
  try {
    await sleep(random.between(300, 800));
    await fault.inject({ deployment, organizations: drilled, random });
    await sleep(random.between(300, 800));
    over.abort();
    await Promise.all(clients);
    for (const organization of drilled) await organization.settle();
    await checkStore(deployment);
  } catch (error) {
    fail(error);
  } finally {
    over.abort();
    await Promise.all(clients);
  }

  for (const {
    first,
    drilled: { history, seen, id },
  } of organizations) {
    result.operations += history.length;
    result.answered += seen.answered;
    result.unavailable += seen.unavailable;
    result.unanswered += seen.unanswered;
    result.lostWrites += countLostWrites(history);
    const verdict = checkLinearizability(organizationModel(first), mergeUnseenAvatars(history));
    if (verdict.kind === 'violation' && fault.mayLoseWrites !== true)
      report(`${id}: ${describe(verdict)}`, history);
    if (verdict.kind === 'undecided') report(`${id}: no verdict after ${verdict.states} states`, history);
  }
  return result;
}

function describe({
  explained,
  state,
  stuck,
}: {
  explained: number;
  state: Organization;
  stuck: Operation<Input>[];
}): string {
  const { comparison, profiles, denied } = state;
  const held = JSON.stringify({
    comparison,
    profiles: Object.fromEntries(profiles),
    denied: [...denied.values()],
  });
  const calls = stuck.map(({ input, outcome }) => `  ${JSON.stringify(input)} -> ${outcome}`);
  return `no order of the calls explains what clients saw: ${explained} calls lead to ${held}, where none of these fits:\n${calls.join('\n')}`;
}
