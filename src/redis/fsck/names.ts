import { isUtf8 } from 'node:buffer';
import { nameFault } from '../../domain/usernames.ts';
import { yieldingChunks } from '../../lib/time-slices.ts';
import { scanPairs } from '../connection/scan.ts';
import { namesBucketKey, profileKey, settingsKey } from '../keys.ts';
import { normalizedName, readWriteSnapshot } from '../write-snapshot.ts';
import { script } from '../connection/script-loader.ts';
import { hasType, namesAtOnce, quote, type Check, type RepairReply } from './check.ts';

/** A row in the reply of lua/fsck/look_names.lua. */
type SeenName = [
  username: string | null,
  holder: string | null,
  holderUsername: string | null,
  place: 'found' | 'misplaced' | null,
];

const lookNames = script<string[], ['stale'] | ['seen', SeenName[], buckets: string | null]>(
  'fsck/look_names',
);

const claimName = script<string[], RepairReply | 'staged'>('fsck/claim_name');

export interface NamedUser {
  userId: string;
  username: string;
}

/** Checks that the index knows the names of these users, as theirs alone. */
export async function checkNames(check: Check, users: readonly NamedUser[]): Promise<void> {
  check.counts.usernames += users.length;
  const readable: NamedUser[] = [];
  for (const user of users) {
    const fault = nameFault(user.username);
    const detail = `the username of user ${quote(user.userId)}`;
    if (fault !== undefined) {
      await check.report('username-malformed', `${detail} ${fault}: give the user another`);
    }
    if (await isUnreadable(check, user)) {
      const remedy = 'remove field u of the profile, or set it';
      await check.report('username-malformed', `${detail} is not UTF-8: ${remedy}`);
    } else readable.push(user);
  }
  for await (const chunk of yieldingChunks(readable, namesAtOnce)) await checkChunk(check, chunk);
}

/** Bytes that are not UTF-8 are read as the replacement character, which a name may have, too. */
async function isUnreadable({ store, base }: Check, { userId, username }: NamedUser): Promise<boolean> {
  if (!username.includes('\uFFFD')) return false;
  const bytes = await store.hgetBuffer(profileKey(base, userId), 'u');
  return bytes !== null && !isUtf8(bytes);
}

async function checkChunk(check: Check, users: readonly NamedUser[]): Promise<void> {
  const { store, base, snapshot } = check;
  const named = users.map((user) => ({ ...user, form: normalizedName(snapshot, user.username) }));
  const pairs = named.flatMap(({ userId, form }) => [userId, form]);
  const reply = await lookNames(store, base, snapshot.index, '', ...pairs);
  if (reply[0] === 'stale') {
    check.snapshot = await readWriteSnapshot(store, base);
    return await checkChunk(check, users);
  }
  for (const [position, [current, holder, holderUsername]] of reply[1].entries()) {
    const name = named[position];
    if (name === undefined) continue;
    // A name that has just changed is fine.
    if (current !== name.username || holder === name.userId) continue;
    await reportUnindexed(check, name, holder ?? '', holderUsername);
  }
}

async function reportUnindexed(
  { store, base, snapshot, report }: Check,
  { userId, username, form }: NamedUser & { form: string },
  rival: string,
  rivalName: string | null,
): Promise<void> {
  const isShared = rivalName !== null && normalizedName(snapshot, rivalName) === form;
  const known = [snapshot.index, userId, username, form, rival, rivalName ?? '', isShared ? '1' : ''];
  const claim = async () => await claimName(store, base, ...known);
  if (isShared) {
    const detail = `users ${quote(userId)} and ${quote(rival)} have the same name, ${quote(username)}: with --repair the profile that was changed last keeps it`;
    return await report('username-shared', detail, claim);
  }
  const instead = rival === '' ? '' : `, which has user ${quote(rival)} instead`;
  const detail = `username ${quote(username)} of user ${quote(userId)} is not in the index${instead}`;
  await report('username-not-indexed', detail, claim);
}

/** Checks that every entry of a bucket is the name of its user, and where lookups find it. */
export async function checkBucket(check: Check, bucket: string): Promise<void> {
  const { store, base, snapshot } = check;
  const { index } = snapshot;
  const key = namesBucketKey(base, index, bucket);
  const type = await store.type(key);
  // fsck finds the names that are missing from the index then.
  const remove = { generation: index, expect: [[type, 'type', key] as const], commands: [['unlink', key]] };
  if (!(await hasType(check, key, 'hash', remove))) return;
  for await (const page of scanPairs(store, key)) {
    for await (const chunk of yieldingChunks(page, namesAtOnce)) await checkEntries(check, bucket, chunk);
  }
}

async function checkEntries(
  { store, base, snapshot, report }: Check,
  bucket: string,
  entries: readonly (readonly [form: string, user: string])[],
): Promise<void> {
  const { index } = snapshot;
  const pairs = entries.flatMap(([form, user]) => [user, form]);
  const reply = await lookNames(store, base, index, bucket, ...pairs);
  // The whole generation has been replaced; the profiles are compared with the next one.
  if (reply[0] === 'stale') return;
  const [, rows, buckets] = reply;
  const key = namesBucketKey(base, index, bucket);
  for (const [position, [username, , , place]] of rows.entries()) {
    const [form = '', user = ''] = entries[position] ?? [];
    if (place === null) continue;
    const isTheirs = username !== null && normalizedName(snapshot, username) === form;
    if (isTheirs && place === 'found') continue;
    const instead = username === null ? 'has no username' : `is ${quote(username)}`;
    const detail = isTheirs
      ? `the index has ${quote(form)} in bucket ${bucket}, where no lookup finds it`
      : `the index gives ${quote(form)} to user ${quote(user)}, who ${instead}`;
    await report('index-entry-stale', detail, {
      generation: index,
      expect: [
        [user, 'hget', key, form],
        [username ?? false, 'hget', profileKey(base, user), 'u'],
        // With another number of buckets it may be where lookups go.
        ...(isTheirs ? [[buckets ?? false, 'hget', settingsKey(base), `n${index}`] as const] : []),
      ],
      commands: [['hdel', key, form]],
    });
  }
}
