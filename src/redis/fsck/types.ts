import * as keys from '../keys.ts';
import { hasType, type Check, type KeyType } from './check.ts';

/** What follows the prefix, or an organization's base, where `*` stands for anything; the first that fits counts. */
type Types = readonly (readonly [key: string, type: KeyType])[];

const ledgerTypes: Types = [
  ['use:keys', 'zset'],
  ['use:key:*', 'hash'],
  ['use:flush:*', 'string'],
  ['use:*', 'hash'],
];

/** Of the keys of an organization, those of which only the type is checked. */
const organizationTypes: Types = [
  [keys.auditKey(''), 'stream'],
  [keys.stageKey(''), 'hash'],
  [keys.stageOwnerKey(''), 'string'],
  [keys.rebuildKey(''), 'string'],
  [keys.localWritesKey(''), 'set'],
  [keys.denylistWritesKey(''), 'hash'],
  [keys.claimsKey(''), 'hash'],
  [keys.loadingKey(''), 'string'],
  [keys.pendingRenamesKey(''), 'hash'],
  [keys.requestCountKey('', '*'), 'string'],
  [keys.comparisonsKey(''), 'hash'],
  [keys.differingUsersKey(''), 'hash'],
  [keys.unmappedKeysKey(''), 'hash'],
  [keys.refusedKeysKey(''), 'hash'],
  [keys.adoptionsKey(''), 'hash'],
  [keys.unsettledKey(''), 'hash'],
  [keys.failedAdoptionsKey(''), 'hash'],
  [keys.denylistChangeKey(''), 'string'],
  [keys.lostNamesKey(''), 'hash'],
  [keys.gapsKey(''), 'hash'],
  [keys.replayKey(''), 'stream'],
  [keys.replaySendersKey(''), 'hash'],
  [keys.replayAsideKey(''), 'hash'],
  [keys.replayListKey('', '*'), 'list'],
  ['cutover:replay-files', 'set'],
  ['cutover:replay-refusals', 'hash'],
  ...ledgerTypes,
];

/** Of the keys outside the organizations, all but `layout` and `orgs`, without which no tool starts. */
const outsideTypes: Types = [
  [keys.sweepKey(''), 'string'],
  [keys.authFailuresKey('', '*'), 'string'],
  [keys.cutoverKey(''), 'hash'],
  [keys.forwardedOrganizationsKey(''), 'set'],
  [keys.legacyPicturesKey(''), 'string'],
  [keys.legacyPicturesDueKey(''), 'string'],
  [keys.replayOrganizationsKey(''), 'hash'],
  [keys.replayRestoreDueKey(''), 'string'],
  [keys.replayerKey(''), 'string'],
  [keys.replayPauseKey(''), 'string'],
  [keys.replaySecretKey(''), 'hash'],
  ['deprecation:policy', 'string'],
  ['deprecation:orgs', 'zset'],
  ['deprecation:{coverage}:*', 'hash'],
  ...ledgerTypes.map(([key, type]) => [`deprecation:{unknown}:${key}`, type] as const),
  ['migration:runs', 'set'],
  ['migration:run:*:organizations', 'set'],
  ['migration:run:*:loading', 'set'],
  ['migration:run:*', 'hash'],
  ['migration:lock:*', 'string'],
  ['migration:token', 'string'],
];

/** Checks that a key of an organization has its type. */
export const checkType = typeCheck(organizationTypes);

/** Checks that a key outside the organizations has its type; `base` is the prefix. */
export const checkTypeOutside = typeCheck(outsideTypes);

function typeCheck(types: Types) {
  const patterns = types.map(([key, type]) => {
    const [start = '', end] = key.split('*');
    return { start, end, type };
  });
  return async (check: Pick<Check, 'store' | 'base' | 'report'>, key: string): Promise<void> => {
    const rest = key.slice(check.base.length);
    const known = patterns.find(({ start, end }) =>
      end === undefined ? rest === start : rest.startsWith(start) && rest.endsWith(end),
    );
    if (known !== undefined) await hasType(check, key, known.type);
  };
}
