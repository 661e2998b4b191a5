import { script } from '../redis/connection/script-loader.ts';

/** A value in a reply that travels as JSON: what is absent is false. */
type JsonText = string | false;

export const beginChange = script<[epoch: number, index: '', user: string, waitMs: number], number>(
  'cutover/adopt/begin_change',
);

export const settleChange = script<[user: string, number: number | '', due: number], 'settled'>(
  'cutover/adopt/settle_change',
);

export const drawAdoption = script<
  [user: string],
  [number: number, time: number, index: JsonText, comparison: JsonText, username: JsonText, unsettled: number]
>('cutover/adopt/draw');

export const storeAdopted = script<
  (string | number)[],
  ['stale' | 'frozen' | 'again' | 'superseded' | 'adopted' | 'conflict']
>('cutover/adopt/profile');

export const startDenylistChange = script<
  [epoch: number, index: '', token: string, leaseMs: number, waitMs: number],
  number
>('cutover/adopt/begin_denylist_change');

export const renewDenylistChange = script<[token: string, leaseMs: number], number>(
  'cutover/adopt/renew_denylist_change',
);

export const endDenylistChange = script<
  [token: string, number: number, outcome: 'settled' | 'unknown'],
  'ended' | 'lapsed'
>('cutover/adopt/end_denylist_change');

export const adoptDenylist = script<
  [
    epoch: number,
    index: string,
    token: string,
    number: number,
    what: 'ban' | 'remove' | 'stage' | 'commit',
    rows: string,
  ],
  'stale' | 'frozen' | 'lapsed' | 'applied'
>('cutover/adopt/denylist');

export const recordComparisons = script<[since: number, findings: string], 'recorded' | 'outdated'>(
  'cutover/record_comparisons',
);
