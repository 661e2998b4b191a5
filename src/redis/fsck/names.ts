import { isUtf8 } from 'node:buffer';
import { nameFault, normalizedName } from '../../domain/usernames.ts';
import { yieldingChunks } from '../../lib/time-slices.ts';
import { storeTime } from '../connection/client.ts';
import { scanPairs } from '../connection/scan.ts';
import { bucketOf, nameHash, namesBucketKey, profileKey, settingsKey } from '../keys.ts';
import { hasType, ofRightType, quote, readNaming, type Check, type Repair } from './check.ts';

/** What a profile says of its user's name. */
export interface NamedUser {
  userId: string;
  username: string;
  /** When the profile was last changed, as it is stored. */
  changedAt: string | null;
}

/** Checks that a username is valid, and that the index knows it, as this user's alone. */
export async function checkUsername(check: Check, user: NamedUser): Promise<void> {
  const { store, base, counts, report } = check;
  const { userId, username } = user;
  counts.usernames++;
  const fault = nameFault(username);
  const detail = `the username of user ${quote(userId)}`;
  if (fault !== undefined) {
    await report('username-malformed', `${detail} ${fault}: give the user another`);
  }
  // Bytes that are not UTF-8 are read as the replacement character, which a name may have, too.
  const bytes = username.includes('\uFFFD') ? await store.hgetBuffer(profileKey(base, userId), 'u') : null;
  if (bytes !== null && !isUtf8(bytes)) {
    const remedy = 'remove field u of the profile, or set it';
    await report('username-malformed', `${detail} is not UTF-8: ${remedy}`);
    return;
  }
  let current: NamedUser | undefined = user;
  for (let attempt = 1; attempt <= attempts && current !== undefined; attempt++) {
    if (await checkIndexed(check, current)) return;
    // Changed meanwhile, perhaps by another repair of this very check: it is looked at again.
    Object.assign(check, await readNaming(store, base));
    current = await readNamedUser(check, userId);
  }
}

/** Undefined for a user without a username. */
async function readNamedUser({ store, base }: Check, userId: string): Promise<NamedUser | undefined> {
  const found = await ofRightType(store.hmget(profileKey(base, userId), 'u', 't'));
  const [username = null, changedAt = null] = found ?? [];
  return username === null ? undefined : { userId, username, changedAt };
}

/** How often a name that is changing all the time is looked at. */
const attempts = 10;

/** False if it was changed meanwhile. */
async function checkIndexed(check: Check, user: NamedUser): Promise<boolean> {
  const { store, base, snapshot, report } = check;
  const { userId, username } = user;
  const { index, settings } = snapshot;
  const normalized = normalizedName(username, settings.comparison);
  const bucket = namesBucketKey(base, index, String(numberOfBucket(check, normalized)));
  const holder = (await ofRightType(store.hget(bucket, normalized))) ?? null;
  if (holder === userId) return true;
  const rival = holder === null ? undefined : await readNamedUser(check, holder);
  const repair: Repair = {
    generation: index,
    expect: [
      [username, 'hget', profileKey(base, userId), 'u'],
      [holder ?? false, 'holder', normalized],
      ...(holder === null
        ? []
        : [[rival?.username ?? false, 'hget', profileKey(base, holder), 'u'] as const]),
    ],
    claim: [normalized, userId],
    commands: [],
  };
  if (rival !== undefined && normalizedName(rival.username, settings.comparison) === normalized) {
    const detail = `users ${quote(userId)} and ${quote(rival.userId)} have the same name, ${quote(username)}: with --repair the profile that was changed last keeps it`;
    const [keeper, loser] = changeTime(user) > changeTime(rival) ? [user, rival] : [rival, user];
    const loss = await lossOfName(check, loser, keeper);
    const claim = [normalized, keeper.userId] as const;
    return await report('username-shared', detail, { ...repair, ...loss, claim });
  }
  const instead = holder === null ? '' : `, which has user ${quote(holder)} instead`;
  const detail = `username ${quote(username)} of user ${quote(userId)} is not in the index${instead}`;
  return await report('username-not-indexed', detail, repair);
}

const changeTime = ({ changedAt }: NamedUser): number => Number(changedAt) || 0;

async function lossOfName(
  { store, base }: Check,
  { userId, username }: NamedUser,
  keeper: NamedUser,
): Promise<Pick<Repair, 'commands' | 'audit'>> {
  const key = profileKey(base, userId);
  const epoch = await store.hget(settingsKey(base), 'epoch');
  return {
    commands: [
      ['hdel', key, 'u'],
      ['hset', key, 't', await storeTime(store), 'b', epoch ?? 0],
    ],
    audit: ['removed', 'username', 'user', userId, 'username', username, 'kept-by', keeper.userId],
  };
}

/** Checks that every entry of a bucket is the name of its user, and where lookups find it. */
export async function checkBucket(check: Check, number: string): Promise<void> {
  const key = namesBucketKey(check.base, check.snapshot.index, number);
  // The names that are missing from the index then are found by their profiles.
  const remove = (type: string): Repair => ({ expect: [[type, 'type', key]], commands: [['unlink', key]] });
  if (!(await hasType(check, key, 'hash', remove))) return;
  for await (const page of scanPairs(check.store, key)) {
    for await (const chunk of yieldingChunks(page, 50)) {
      await Promise.all(chunk.map(([normalized, user]) => checkEntry(check, number, normalized, user)));
    }
  }
}

async function checkEntry(check: Check, number: string, normalized: string, found: string): Promise<void> {
  const { store, base, snapshot } = check;
  const { index } = snapshot;
  const userIn = async (bucket: string): Promise<string | null> =>
    (await ofRightType(store.hget(namesBucketKey(base, index, bucket), normalized))) ?? null;
  let [bucket, user]: [string, string | null] = [number, found];
  for (let attempt = 1; attempt <= attempts && user !== null; attempt++) {
    if (await checkHolder(check, bucket, normalized, user)) return;
    // Changed meanwhile, perhaps since this very check has added names and the index has grown: it is looked at again.
    Object.assign(check, await readNaming(store, base));
    // Where the whole generation has been replaced, the profiles are compared with the next one.
    if (check.snapshot.index !== index) return;
    user = await userIn(bucket);
    if (user !== null) continue;
    bucket = String(numberOfBucket(check, normalized));
    user = await userIn(bucket);
  }
}

/** False if it was changed meanwhile. */
async function checkHolder(check: Check, number: string, normalized: string, user: string): Promise<boolean> {
  const { store, base, snapshot, buckets, report } = check;
  const { index } = snapshot;
  const username = (await ofRightType(store.hget(profileKey(base, user), 'u'))) ?? null;
  const isTheirs = username !== null && normalizedName(username, snapshot.settings.comparison) === normalized;
  if (isTheirs && numberOfBucket(check, normalized) === Number(number)) return true;
  const key = namesBucketKey(base, index, number);
  const instead = username === null ? 'has no username' : `is ${quote(username)}`;
  const detail = isTheirs
    ? `the index has ${quote(normalized)} in bucket ${number}, where no lookup finds it`
    : `the index gives ${quote(normalized)} to user ${quote(user)}, who ${instead}`;
  return await report('index-entry-stale', detail, {
    generation: index,
    expect: [
      [user, 'hget', key, normalized],
      [username ?? false, 'hget', profileKey(base, user), 'u'],
      // With another number of buckets, lookups may find it.
      ...(isTheirs ? [[buckets ?? false, 'hget', settingsKey(base), `n${index}`] as const] : []),
    ],
    commands: [['hdel', key, normalized]],
  });
}

/** There may be more buckets by now: `report` confirms what was seen. */
const numberOfBucket = ({ buckets }: Check, normalized: string): number =>
  bucketOf(nameHash(normalized), Number(buckets ?? 1));
