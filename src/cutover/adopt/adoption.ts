import { setTimeout as sleep } from 'node:timers/promises';
import { encodeReference } from '../../domain/profile.ts';
import { normalizedName, type UsernameComparison } from '../../domain/usernames.ts';
import type { RedisClient } from '../../redis/connection/client.ts';
import { script } from '../../redis/connection/script-loader.ts';
import { profileKey } from '../../redis/keys.ts';
import { differingFields, shownByLegacy, type Shown } from '../compare/compare.ts';
import type { AdoptionFailure } from '../compare/pending.ts';
import type { Credentials } from '../forward/calls.ts';
import { bodyOf } from '../forward/content.ts';
import type { Legacy } from '../forward/legacy.ts';
import type { MirrorOptions } from './mirrored-change.ts';

/** What an adoption begins with; a username that is unset is empty. */
interface Drawn {
  number: number;
  /** By the store's clock, ms. */
  time: number;
  /** The generation of the name index, and the comparison that it belongs to. */
  index: string;
  comparison: UsernameComparison;
  username: string;
  /** For how many ms another change of the user may be in flight; 0 if none is. */
  unsettled: number;
  /** Whether another change of the user was made at the same time: either may have come last. */
  hasRival: boolean;
}

export const drawAdoption = script<[user: string, own: number | ''], Drawn>('cutover/adopt/draw');

export const beginChange = script<
  [epoch: number, index: '', user: string, waitMs: number, form: '1' | ''],
  number
>('cutover/adopt/begin_change');

export const settleChange = script<[user: string, number: number | '', due: number], null>(
  'cutover/adopt/settle_change',
);

const storeAdopted = script<
  [
    epoch: number,
    index: string,
    user: string,
    number: number,
    time: number,
    settles: number | '',
    username: string,
    normalizedName: string,
    profile: string,
    form: '1' | '',
  ],
  'stale' | 'frozen' | 'again' | 'superseded' | 'adopted' | 'conflict'
>('cutover/adopt/profile');

export interface Adoption {
  credentials: Pick<Credentials, 'base' | 'headers'>;
  userId: string;
  epoch: number;
  /** The number of the change to which it belongs. */
  settles?: number;
  /** Whether it was sent as a form, which may have brought a picture. */
  isForm?: boolean;
  /** Whether a read already shows the change. If one does not, it reads until two reads, a second apart, agree. */
  isExpected: (shown: Shown) => boolean;
  /** Whether the user has a profile there for certain, though reads that lag behind may not show it yet. */
  exists?: boolean;
}

/**
 * `absent`: the legacy service has no such profile; what is here stays, and counts as a difference. Not of an adoption
 * that settles a change: where there is a profile here, it fails as `profile-not-shown`, and the mark stays.
 */
export type AdoptionOutcome =
  | 'adopted'
  | 'superseded'
  | 'conflict'
  | 'absent'
  | Extract<AdoptionFailure, 'profile-not-shown' | 'overtaken'>;

type AdoptionOptions = Pick<MirrorOptions, 'store' | 'legacy' | 'signal'>;

/** How often an adoption starts over before it gives up, and how often it reads until two reads agree. */
const maxAttempts = 8;
const maxReads = 10;
/** Between two reads of a legacy service whose reads lag behind its writes, in ms. */
const readPause = 1000;
const retryPause = 200;
/** How soon, and how often at most, an adoption that a denylist change has overtaken reads again. */
const overtakenPause = 25;
const maxOvertaken = 400;

/** Makes Redis agree with the legacy service about the user, starting over if something interferes. */
export async function adoptProfile(options: AdoptionOptions, adoption: Adoption): Promise<AdoptionOutcome> {
  let failures = 0;
  let overtaken = 0;
  let failure: AdoptionOutcome = 'overtaken';
  while (failures < maxAttempts && overtaken < maxOvertaken) {
    const outcome = await adoptOnce(options, adoption);
    if (outcome === 'again') {
      overtaken++;
      await sleep(overtakenPause, undefined, { signal: options.signal });
    } else if (outcome === 'stale' || outcome === 'frozen' || outcome === 'unreadable') {
      failures++;
      failure = outcome === 'unreadable' ? 'profile-not-shown' : 'overtaken';
      await sleep(retryPause * failures, undefined, { signal: options.signal });
    } else {
      return outcome;
    }
  }
  return failure;
}

async function adoptOnce(
  options: AdoptionOptions,
  adoption: Adoption,
): Promise<Awaited<ReturnType<typeof storeAdopted>> | 'absent' | 'unreadable'> {
  const { store } = options;
  const { credentials, userId, epoch, settles } = adoption;
  const { base } = credentials;
  const drawn = await drawAdoption(store, base, userId, settles ?? '');
  // The change's own adoption follows.
  if (settles === undefined && drawn.unsettled > 0) return 'superseded';
  // If the rival came last, a read that lags behind may still show what the answer to this change said.
  const reading = drawn.hasRival ? { ...adoption, isExpected: () => false } : adoption;
  const shown = await readSettled(options, reading, drawn.number);
  if (shown === 'unreadable') return shown;
  // What is here came from there: without its profile, the legacy service does not show what became of the change.
  if (shown === undefined && settles !== undefined && (await hasProfile(store, base, userId)))
    return 'unreadable';
  if (shown === undefined || shown === 'superseded') {
    if (settles !== undefined) await settleChange(store, base, userId, settles, 0);
    return shown ?? 'absent';
  }
  const normalized = (name: string): string => normalizedName(name, drawn.comparison);
  const {
    username: name,
    'avatar.datasourceId': datasourceId,
    'avatar.objectDefinitionId': objectDefinitionId,
  } = shown;
  const profile = {
    name,
    normalizedName: name && normalized(name),
    picture: shown.profilePictureUrl,
    avatar: datasourceId && objectDefinitionId && encodeReference({ datasourceId, objectDefinitionId }),
    avatarUrl: shown['avatar.url'],
    wallet: shown.evmLinkedWalletAddress,
  };
  const { index, number, time, username } = drawn;
  return await storeAdopted(
    store,
    base,
    epoch,
    index,
    userId,
    number,
    time,
    settles ?? '',
    username,
    normalized(username),
    JSON.stringify(profile),
    adoption.isForm === true ? '1' : '',
  );
}

async function hasProfile(store: RedisClient, base: string, userId: string): Promise<boolean> {
  return (await store.hexists(profileKey(base, userId), 't')) === 1;
}

/** Reads until the change is shown, or two reads agree; `superseded` if a later adoption was applied meanwhile. */
async function readSettled(
  { store, legacy, signal }: AdoptionOptions,
  { credentials, userId, isExpected, exists }: Adoption,
  number: number,
): Promise<Shown | 'unreadable' | 'superseded'> {
  let before: Shown | 'unreadable' = 'unreadable';
  for (let read = 0; read < maxReads; read++) {
    const shown = await readFromLegacy(legacy, credentials);
    if (shown === undefined && exists === true) return 'unreadable';
    if (shown === 'unreadable' || isExpected(shown)) return shown;
    if (before !== 'unreadable' && differingFields(before, shown).length === 0) return shown;
    before = shown;
    await sleep(readPause, undefined, { signal });
    // As when a user keeps making changes.
    const applied = await store.hget(profileKey(credentials.base, userId), 'as');
    if (Number(applied) >= number) return 'superseded';
  }
  return before;
}

/** The user's profile as the legacy service shows it now; `unreadable` if it does not. */
export async function readFromLegacy(
  legacy: Legacy,
  { headers }: Pick<Credentials, 'headers'>,
): Promise<Shown | 'unreadable'> {
  try {
    const response = await legacy.send({ method: 'GET', path: '/api/profile/', headers: [...headers] });
    return await shownByLegacy(response, await bodyOf(response));
  } catch {
    return 'unreadable';
  }
}
