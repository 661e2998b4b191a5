import { setTimeout as sleep } from 'node:timers/promises';
import { Cluster } from 'ioredis';
import { permissionsKey } from '../keys.ts';
import { script } from './script-loader.ts';
import { mastersOf, type RedisClient } from './client.ts';

const tryCommands = script<[], string[]>('connection/permissions');

/** How long to wait for answers, in ms; the rest is not checked. A tool's commands may take far longer than its start. */
const silenceMs = 5000;

/** Throws an Error of one line with the remedy if the Redis user lacks permissions that the bridge needs. */
export async function checkPermissions(client: RedisClient, prefix: string): Promise<void> {
  // What no script can call. A master of a cluster may stay silent, or all be away; another one tells as much.
  const ask = (...command: [name: string, ...args: (string | number)[]]): Promise<string[]> =>
    Promise.any(mastersOf(client).map((master) => master.call(...command).then(() => [], refusedBy))).catch(
      () => [],
    );
  const attempts = [
    tryCommands(client, permissionsKey(prefix)).catch(refusedBy),
    // Needed only for a script that the server does not have yet, as after a restart.
    ask('eval', "#!lua\nreturn ''", 0),
    ask('wait', 0, 1),
    ...(client instanceof Cluster ? [ask('cluster', 'nodes')] : []),
  ];
  const silence = sleep(silenceMs, [], { ref: false });
  const found = await Promise.all(attempts.map((attempt) => Promise.race([attempt, silence])));
  const refused = [...new Set(found.flat())];
  if (refused.length === 0) return;
  const what = refused[0] === 'keys' ? `use keys that begin with ${prefix}` : `run ${refused.join(', ')}`;
  throw new Error(
    `the user of REDIS_URL may not ${what}: give it the permissions that src/redis/README.md lists under "Permissions" (none of these commands may be renamed)`,
  );
}

/** What an error says may not be run: the command, or 'keys' for the keys; nothing if it has another reason. */
function refusedBy(error: unknown): string[] {
  const { message } = error as Error;
  if (/permissions to access|can't access/.test(message)) return ['keys'];
  const command = /^(?:NOPERM .*|ERR unknown command )'([^']+)'/.exec(message)?.[1];
  return command === undefined ? [] : [command];
}
