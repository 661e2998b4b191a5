import { setTimeout as sleep } from 'node:timers/promises';
import type { Profile as ProfileView } from '../../contract/types.gen.ts';
import { encodeReference } from '../../domain/profile.ts';
import { comparisonForm, type UsernameComparison } from '../../domain/usernames.ts';
import { profileKey } from '../../redis/keys.ts';
import { shownByLegacy } from '../compare/compare.ts';
import { differingFields, type Shown } from '../compare/fields.ts';
import type { AdoptionFailure } from '../compare/findings.ts';
import { bodyOf } from '../forward/content.ts';
import type { Legacy } from '../forward/legacy.ts';
import type { RedisClient } from '../../redis/connection/client.ts';
import { drawAdoption, settleChange, storeAdopted } from '../scripts.ts';

/** Whom to adopt, and how to read their profile from the legacy service. */
export interface AdoptedUser {
  base: string;
  userId: string;
  epoch: number;
  /** The headers that a GET of the profile needs: a name, its value, the next name … */
  headers: readonly string[];
}

/**
 * `absent`: the legacy service has no profile of the user; what is here stays, and counts as a difference. Where an
 * adoption fails, marks of unsettled changes stay.
 */
export type AdoptionOutcome =
  | 'adopted'
  | 'superseded'
  | 'conflict'
  | 'absent'
  | Extract<AdoptionFailure, 'profile-not-shown' | 'overtaken'>;

interface AdoptionOptions {
  store: RedisClient;
  legacy: Legacy;
  /** Ends the waiting of a service that stops. */
  signal: AbortSignal;
}

/** How often an adoption starts anew before it gives up, and reads until two reads agree. */
const attempts = 8;
const reads = 10;
/** Between two reads of a legacy service whose reads lag behind its writes, in ms. */
const readPause = 1000;
const lookPause = 100;
const retryPause = 200;
/** How soon, and how often at most, an adoption reads again that a denylist change has overtaken. */
const overtakenPause = 25;
const mostOvertaken = 400;

/**
 * Makes Redis say of the user what the legacy service says. `settles` is the number of the change to which it belongs.
 * `isExpected` tells whether a read shows the change already; where one does not, reads go on until two of them, a
 * second apart, agree.
 */
export async function adoptProfile(
  options: AdoptionOptions,
  user: AdoptedUser,
  settles: number | undefined,
  isExpected: (shown: Shown) => boolean,
): Promise<AdoptionOutcome> {
  let [failures, overtaken] = [0, 0];
  let failure: AdoptionOutcome = 'overtaken';
  while (failures < attempts && overtaken < mostOvertaken) {
    const outcome = await adoptOnce(options, user, settles, isExpected);
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
  user: AdoptedUser,
  settles: number | undefined,
  isExpected: (shown: Shown) => boolean,
): Promise<Exclude<AdoptionOutcome, AdoptionFailure> | 'stale' | 'frozen' | 'again' | 'unreadable'> {
  const { store } = options;
  const { base, userId } = user;
  const drawn = await drawAdoption(store, base, userId);
  const shown = await readSettled(options, user, drawn[0], isExpected);
  if (shown === 'unreadable') return shown;
  if (shown === undefined || shown === 'superseded') {
    if (settles !== undefined) await settleChange(store, base, userId, settles, 0);
    return shown ?? 'absent';
  }
  const [outcome] = await apply(store, user, settles, drawn, shown);
  return outcome;
}

/** Reads until the change is shown, or two reads agree; `superseded` where a later adoption was applied meanwhile. */
async function readSettled(
  options: AdoptionOptions,
  user: AdoptedUser,
  number: number,
  isExpected: (shown: Shown) => boolean,
): Promise<Shown | 'unreadable' | 'superseded'> {
  let before: Shown | 'unreadable' = 'unreadable';
  for (let read = 0; read < reads; read++) {
    const shown = await readFromLegacy(options.legacy, user);
    if (shown === 'unreadable' || isExpected(shown)) return shown;
    if (before !== 'unreadable' && differingFields(before, shown).length === 0) return shown;
    before = shown;
    if (await isSuperseded(options, user, number)) return 'superseded';
  }
  return before;
}

/** Looks, from one read to the next, whether an adoption that drew later was applied, as where a user goes on changing. */
async function isSuperseded(
  { store, signal }: AdoptionOptions,
  { base, userId }: AdoptedUser,
  number: number,
): Promise<boolean> {
  const until = performance.now() + readPause;
  while (performance.now() < until) {
    await sleep(lookPause, undefined, { signal });
    if (Number(await store.hget(profileKey(base, userId), 'as')) >= number) return true;
  }
  return false;
}

/** The user's profile as the legacy service shows it now; `unreadable` where it does not. */
export async function readFromLegacy(
  legacy: Legacy,
  { headers }: Pick<AdoptedUser, 'headers'>,
): Promise<Shown | 'unreadable'> {
  try {
    const response = await legacy.send({ method: 'GET', path: '/api/profile/', headers: [...headers] });
    return await shownByLegacy({ ...response, body: await bodyOf(response) });
  } catch {
    return 'unreadable';
  }
}

async function apply(
  store: RedisClient,
  { base, userId, epoch }: AdoptedUser,
  settles: number | undefined,
  [number, time, index, comparison, username]: Awaited<ReturnType<typeof drawAdoption>>,
  shown: ProfileView,
): Promise<Awaited<ReturnType<typeof storeAdopted>>> {
  const form = (name: string): string => comparisonForm(name, (comparison || 'exact') as UsernameComparison);
  const name = text(shown.username);
  const avatar = text(shown.avatar?.datasourceId) && text(shown.avatar?.objectDefinitionId);
  const reference =
    avatar === false ? false : encodeReference(shown.avatar as Required<NonNullable<ProfileView['avatar']>>);
  const profile = {
    name,
    form: name === false ? false : form(name),
    picture: text(shown.profilePictureUrl),
    avatar: reference,
    avatarUrl: text(shown.avatar?.url),
    wallet: text(shown.evmLinkedWalletAddress),
  };
  return await storeAdopted(
    store,
    base,
    epoch,
    index === false ? '0' : index,
    userId,
    number,
    time,
    settles ?? '',
    username === false ? '' : username,
    username === false ? '' : form(username),
    JSON.stringify(profile),
  );
}

/** Empty and absent are the same (compare/fields.ts). */
function text(value: unknown): string | false {
  return typeof value === 'string' && value !== '' ? value : false;
}
