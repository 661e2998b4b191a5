import { permissionsKey } from '../keys.ts';
import { script } from './script-loader.ts';
import type { RedisClient } from './client.ts';

const tryCommands = script<[], string[]>('connection/permissions');

/** Throws an Error of one line with the remedy if the Redis user lacks permissions that the bridge needs. */
export async function checkPermissions(client: RedisClient, prefix: string): Promise<void> {
  const found = await Promise.all([
    tryCommands(client, permissionsKey(prefix)).catch(refusedBy),
    // No script can call these.
    client.call('wait', 0, 1).then(() => [], refusedBy),
    client.call('cluster', 'nodes').then(() => [], refusedBy),
  ]);
  const refused = found.flat();
  if (refused.length === 0) return;
  const what = refused[0] === 'keys' ? `use keys that begin with ${prefix}` : `run ${refused.join(', ')}`;
  throw new Error(
    `the user of REDIS_URL may not ${what}: give it the permissions that src/redis/README.md lists under "Permissions"`,
  );
}

/** What an error says that the user may not run; 'keys' for the keys; nothing where it has another reason. */
function refusedBy(error: unknown): string[] {
  const { message } = error as Error;
  if (/permissions to access|can't access/.test(message)) return ['keys'];
  const command = /^NOPERM .*'([^']+)' command/.exec(message)?.[1];
  return command === undefined ? [] : [command];
}
