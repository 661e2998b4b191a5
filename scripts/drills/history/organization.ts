import { setTimeout as sleep } from 'node:timers/promises';
import { defaultSettings } from '../../../src/domain/settings.ts';
import type { UsernameComparison } from '../../../src/domain/usernames.ts';
import { createTestOrganization } from '../../../test/support/bridge.ts';
import { createClient, type Answer, type Client } from '../../../test/support/requests/client.ts';
import type { Operation } from '../checker/linearizability.ts';
import type { Input } from '../checker/organization.ts';
import { partsOf, requestOf } from './requests.ts';
import { fillerName, lengthen, usernames, users, type Command, type Turn } from './turns.ts';
import { keyPrefix, type Deployment } from './deployment.ts';

const organizationHeader = 'x-platform-organization-id';

/** Requests by outcome, as their clients saw it. */
export interface Seen {
  /** Done, or refused for a reason of the contract's. */
  answered: number;
  unavailable: number;
  /** The connection broke, or the client had gone away. */
  unanswered: number;
}

/** An organization under test, and the history of all requests to it. */
export type DrilledOrganization = Awaited<ReturnType<typeof createDrilledOrganization>>;

export interface OrganizationOptions {
  comparison: UsernameComparison;
  /** Whether lists go over several script calls. */
  longLists: boolean;
  /** Called with every answer that the contract does not define. */
  onViolation: (error: unknown) => void;
}

/** Makes an organization with a key for each user and one for its administrator. */
export async function createDrilledOrganization(
  deployment: Deployment,
  id: string,
  { comparison, longLists, onViolation }: OrganizationOptions,
) {
  const made = await createTestOrganization('', { keyPrefix, organizationHeader }, deployment.store, id, {
    ...defaultSettings,
    comparison,
    objectImageUrlTemplate: 'https://images.example.com/{datasourceId}/{objectDefinitionId}',
  });
  const probe = 'probe';
  const keys = new Map<string | undefined, string>();
  for (const userId of [...users, probe])
    keys.set(userId, (await made.newKey({ role: 'player', userId })).apiKey);
  keys.set(undefined, (await made.newKey({ role: 'admin' })).apiKey);
  const clients = deployment.bridges.map(({ url }) => {
    const byUser = new Map<string | undefined, Client>();
    for (const [userId, apiKey] of keys) byUser.set(userId, createClient(url, { organization: id, apiKey }));
    return byUser;
  });

  const history: Operation<Input>[] = [];
  const seen: Seen = { answered: 0, unavailable: 0, unanswered: 0 };

  /** Sends a command to one of the bridges, and records the outcome. */
  const call = async (command: Command, bridge: number, timeoutMs = 15_000): Promise<Sent> => {
    const client = clients[bridge % clients.length]?.get('user' in command ? command.user : undefined);
    if (client === undefined) throw new Error('a user without a key');
    const { method, path, json } = requestOf(command);
    const sentAt = performance.now();
    const sent = await send(client, method, path, { json, timeoutMs }, onViolation);
    if (sent === 'not sent') return sent;
    const answer = sent === 'no answer' ? undefined : sent;
    const answeredAt = performance.now();
    if (answer === undefined) seen.unanswered++;
    else if (answer.status === 503) seen.unavailable++;
    else seen.answered++;
    for (const { input, outcome } of partsOf(command, answer)) {
      history.push({ input, outcome, sentAt, answeredAt: outcome === undefined ? Infinity : answeredAt });
    }
    return sent;
  };

  /** Until the outcome is known. Each failed attempt is a part of the history. */
  const insist = async (command: Command, bridge?: number): Promise<void> => {
    for (let attempt = 0; attempt < 40; attempt++) {
      if (isKnown(await call(command, bridge ?? attempt))) return;
      await untilReady(deployment);
      await sleep(250);
    }
    throw new Error(`${command.kind} was not answered after the drill`);
  };

  return {
    id,
    /** What holds for all keys of the organization: it says where in a cluster they are. */
    base: made.base,
    comparison,
    history,
    seen,
    /** Takes turns until they are used up, or the drill is over. */
    run: async (turns: readonly Turn[], over: AbortSignal): Promise<void> => {
      let failures = 0;
      for (const { pause, timeoutMs, command } of turns) {
        // Continuing after a failure would only add unknown outcomes.
        await sleep(pause + 200 * failures);
        if (over.aborted) return;
        const sent = await call(longLists ? lengthen(command) : command, pause, timeoutMs);
        if (sent === 'not sent') continue;
        if (!isKnown(sent)) {
          failures++;
          await untilReady(deployment);
        } else if (command.kind !== 'read') {
          // Reads may be answered again while writes still wait for replicas.
          failures = 0;
        }
      }
    },
    /** Reads everything once all is quiet. */
    settle: async (): Promise<void> => {
      await untilReady(deployment);
      // Whether writes work is tested with an unrelated name, which leaves nothing in the history.
      for (const bridge of clients.keys()) await insist({ kind: 'remove', usernames: [fillerName] }, bridge);
      for (const user of users) await insist({ kind: 'read', user });
      for (const username of usernames) await insist({ kind: 'remove', usernames: [username] });
      // Every name that nobody has can be claimed.
      for (const username of usernames) await insist({ kind: 'put', user: probe, username });
      for (const user of users) await insist({ kind: 'read', user });
    },
  };
}

type Sent = Answer | 'not sent' | 'no answer';

function isKnown(sent: Sent): boolean {
  return typeof sent !== 'string' && sent.status !== 503;
}

async function send(
  client: Client,
  method: string,
  path: string,
  options: { json: unknown; timeoutMs: number },
  onViolation: (error: unknown) => void,
): Promise<Sent> {
  try {
    return await client.request(method, path, options);
  } catch (error) {
    const { code, name } = error as NodeJS.ErrnoException;
    if (code === 'ECONNREFUSED') return 'not sent';
    // Any other answer is not documented in openapi.yaml, and says nothing about what was done.
    if (code === undefined && name !== 'TimeoutError' && name !== 'AbortError') onViolation(error);
    return 'no answer';
  }
}

/** Resolves once both bridges answer, and say that they can reach the store. */
async function untilReady({ bridges }: Deployment, milliseconds = 120_000): Promise<void> {
  const deadline = performance.now() + milliseconds;
  for (const { url } of bridges) {
    while (!(await isReady(url))) {
      if (performance.now() > deadline) throw new Error(`${url} is not ready after ${milliseconds} ms`);
      await sleep(20);
    }
  }
}

async function isReady(url: string): Promise<boolean> {
  try {
    return (await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(1000) })).ok;
  } catch {
    return false;
  }
}
