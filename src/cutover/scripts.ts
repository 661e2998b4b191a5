import type { RedisClient } from '../redis/connection/client.ts';
import { loadScripts, type ScriptCommand, type ScriptFiles } from '../redis/connection/script-loader.ts';

/** A value in a reply that travels as JSON: what is absent is false. */
type JsonText = string | false;

interface TrafficScripts {
  beginChange: ScriptCommand<[epoch: number, index: '', user: string, waitMs: number], number>;
  settleChange: ScriptCommand<[user: string, number: number | '', due: number], 'settled'>;
  drawAdoption: ScriptCommand<
    [user: string],
    [
      number: number,
      time: number,
      index: JsonText,
      comparison: JsonText,
      username: JsonText,
      unsettled: number,
    ]
  >;
  adoptProfile: ScriptCommand<
    (string | number)[],
    ['stale' | 'frozen' | 'again' | 'superseded' | 'adopted' | 'conflict']
  >;
  beginDenylistChange: ScriptCommand<
    [epoch: number, index: '', token: string, leaseMs: number, waitMs: number],
    number
  >;
  renewDenylistChange: ScriptCommand<[token: string, leaseMs: number], number>;
  endDenylistChange: ScriptCommand<
    [token: string, number: number, outcome: 'settled' | 'unknown'],
    'ended' | 'lapsed'
  >;
  adoptDenylist: ScriptCommand<
    [
      epoch: number,
      index: string,
      token: string,
      number: number,
      what: 'ban' | 'remove' | 'stage' | 'commit',
      rows: string,
    ],
    'stale' | 'frozen' | 'lapsed' | 'applied'
  >;
  recordComparisons: ScriptCommand<[since: number, findings: string], 'recorded' | 'outdated'>;
}

const files: ScriptFiles<TrafficScripts> = {
  beginChange: 'cutover/adopt/begin_change',
  settleChange: 'cutover/adopt/settle_change',
  drawAdoption: 'cutover/adopt/draw',
  adoptProfile: 'cutover/adopt/profile',
  beginDenylistChange: 'cutover/adopt/begin_denylist_change',
  renewDenylistChange: 'cutover/adopt/renew_denylist_change',
  endDenylistChange: 'cutover/adopt/end_denylist_change',
  adoptDenylist: 'cutover/adopt/denylist',
  recordComparisons: 'cutover/record_comparisons',
};

/** A client that knows the scripts of forwarded requests. */
export type TrafficStore = RedisClient & TrafficScripts;

/** Teaches a client these scripts; doing so again changes nothing. */
export function defineTrafficScripts<Client extends RedisClient>(client: Client): Client & TrafficScripts {
  return loadScripts<Client, TrafficScripts>(client, files);
}
