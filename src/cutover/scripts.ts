import type { RedisClient } from '../redis/connection/client.ts';
import { loadScripts, type ScriptCommand, type ScriptFiles } from '../redis/connection/script-loader.ts';

interface TrafficScripts {
  recordComparisons: ScriptCommand<[since: number, findings: string], 'recorded' | 'outdated'>;
}

const files: ScriptFiles<TrafficScripts> = {
  recordComparisons: 'cutover/record_comparisons',
};

/** A client that knows the scripts of forwarded requests. */
export type TrafficStore = RedisClient & TrafficScripts;

/** Teaches a client these scripts; doing so again changes nothing. */
export function defineTrafficScripts<Client extends RedisClient>(client: Client): Client & TrafficScripts {
  return loadScripts<Client, TrafficScripts>(client, files);
}
