import { nameFault } from '../../domain/usernames.ts';
import { namesBucketKey } from '../keys.ts';
import { scanPairs } from '../connection/scan.ts';
import { normalizedName, readWriteSnapshot } from '../write-snapshot.ts';
import { chunksOf, quote, tell, type Check } from './check.ts';

export interface NamedUser {
  userId: string;
  username: string;
}

/** Proves that the index knows the names of these users, as their names alone. */
export async function checkNames(check: Check, users: readonly NamedUser[]): Promise<void> {
  check.counts.usernames += users.length;
  for (const { userId, username } of users) {
    const fault = nameFault(username);
    if (fault === undefined) continue;
    await tell(
      check,
      'username-malformed',
      `the username of user ${quote(userId)} ${fault}: give the user another`,
    );
  }
  for (const chunk of chunksOf(users)) await checkChunk(check, chunk);
}

async function checkChunk(check: Check, users: readonly NamedUser[]): Promise<void> {
  const { store, base } = check;
  const { index } = check.snapshot;
  const named = users.map((user) => ({ ...user, form: normalizedName(check.snapshot, user.username) }));
  const triples = named.flatMap(({ userId, username, form }) => [userId, username, form]);
  const reply = await store.fsckLookNames(base, index, ...triples);
  if (reply[0] === 'stale') {
    check.snapshot = await readWriteSnapshot(store, base);
    return await checkChunk(check, users);
  }
  for (const [position, verdict] of reply[1].entries()) {
    const name = named[position];
    if (name === undefined) continue;
    if (verdict[0] === 'changed') await checkBytes(check, name);
    if (verdict[0] === 'free') await tellUnindexed(check, name, '', null);
    if (verdict[0] === 'held') await tellUnindexed(check, name, verdict[1], verdict[2]);
  }
}

/** Bytes that are no UTF-8 never compare equal to what was read of them; a name that has just changed is fine. */
async function checkBytes(check: Check, { userId, username }: NamedUser): Promise<void> {
  if (!username.includes('\uFFFD')) return;
  await tell(
    check,
    'username-malformed',
    `the username of user ${quote(userId)} is not UTF-8: remove field u of the profile, or set it`,
  );
}

async function tellUnindexed(
  check: Check,
  { userId, username, form }: NamedUser & { form: string },
  rival: string,
  rivalName: string | null,
): Promise<void> {
  const { store, base, snapshot } = check;
  const isShared = rivalName !== null && normalizedName(snapshot, rivalName) === form;
  const claim = async () =>
    await store.fsckClaimName(
      base,
      snapshot.index,
      userId,
      username,
      form,
      rival,
      rivalName ?? '',
      isShared ? '1' : '',
    );
  if (isShared) {
    const detail = `users ${quote(userId)} and ${quote(rival)} have one name, ${quote(username)}: --repair lets the profile changed last keep it`;
    return await tell(check, 'username-shared', detail, claim);
  }
  const instead = rival === '' ? '' : `, which has user ${quote(rival)} instead`;
  const detail = `username ${quote(username)} of user ${quote(userId)} is not in the index${instead}`;
  await tell(check, 'username-not-indexed', detail, claim);
}

/** Proves that every entry of a bucket is some profile's name. */
export async function checkBucket(check: Check, bucket: string): Promise<void> {
  const { store, base, snapshot } = check;
  const key = namesBucketKey(base, snapshot.index, bucket);
  const type = await store.type(key);
  if (type === 'none') return;
  if (type !== 'hash') {
    // It can be rebuilt: fsck finds the names missing from the index.
    return await tell(check, 'wrong-type', `${quote(key)} is no hash`, async () =>
      store.fsckDropMisfit(base, key, 'hash'),
    );
  }
  for await (const page of scanPairs(store, key)) {
    for (const chunk of chunksOf(page)) await checkEntries(check, bucket, chunk);
  }
}

async function checkEntries(
  check: Check,
  bucket: string,
  entries: readonly (readonly [form: string, user: string])[],
): Promise<void> {
  const { store, base, snapshot } = check;
  const { index } = snapshot;
  const reply = await store.fsckLookHolders(base, index, bucket, ...entries.flat());
  // The whole generation is on its way out; the profiles are held against the next one.
  if (reply[0] === 'stale') return;
  for (const [position, verdict] of reply[1].entries()) {
    const [form = '', user = ''] = entries[position] ?? [];
    if (verdict[0] === 'changed') continue;
    const [place, username] = verdict;
    const isTheirs = username !== null && normalizedName(snapshot, username) === form;
    if (isTheirs && place === 'named') continue;
    const instead = username === null ? 'has no username' : `is ${quote(username)}`;
    const detail = `the index says ${quote(form)} is user ${quote(user)}, who ${instead}`;
    await tell(
      check,
      'index-entry-stale',
      isTheirs ? `the index has ${quote(form)} in bucket ${bucket}, where nobody finds it` : detail,
      async () =>
        await store.fsckDropEntry(base, index, bucket, form, user, username ?? '', isTheirs ? '1' : ''),
    );
  }
}
