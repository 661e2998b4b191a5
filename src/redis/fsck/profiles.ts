import { storeTime } from '../connection/client.ts';
import { profileKey, unreferencedPicturesKey } from '../keys.ts';
import { hasType, isStoredTime, ofRightType, quote, removeField, type Check } from './check.ts';
import { checkUsername } from './names.ts';
import { checkReference } from './references.ts';

/** Checks that a user's profile is whole, and that the index knows the name. */
export async function checkProfile(check: Check, userId: string): Promise<void> {
  const { store, base, counts } = check;
  const key = profileKey(base, userId);
  if (!(await hasType(check, key, 'hash'))) return;
  counts.profiles++;
  const found = await store.hmget(key, 'u', 't', 'pf', 'pr', 'ar', 'b', 'as', 'at');
  const [username = null, t = null, file = null, picture = null, avatar = null, ...marks] = found;
  const user = `user ${quote(userId)}`;
  await checkTime(check, key, user, t);
  for (const [position, field] of ['b', 'as', 'at'].entries())
    await checkMark(check, { key, user, field, mark: marks[position] ?? null });
  if (file !== null) await checkPicture(check, key, user, file);
  for (const [field, which, reference] of [
    ['pr', 'picture', picture],
    ['ar', 'avatar', avatar],
  ] as const) {
    if (reference === null) continue;
    const what = `${which} reference ${quote(reference)} of ${user}`;
    await checkReference(check, reference, what, removeField(key, field, reference));
  }
  if (username !== null) await checkUsername(check, { userId, username, changedAt: t });
}

async function checkTime(
  { store, report }: Check,
  key: string,
  user: string,
  t: string | null,
): Promise<void> {
  // Empty where a migration's source does not say when.
  if (t === '' || (t !== null && isStoredTime(t))) return;
  await report('profile-undated', `the profile of ${user} has no time of its last change`, {
    expect: [
      [1, 'exists', key],
      [t ?? false, 'hget', key, 't'],
    ],
    commands: [['hset', key, 't', await storeTime(store)]],
  });
}

async function checkMark(
  { report }: Check,
  { key, user, field, mark }: { key: string; user: string; field: string; mark: string | null },
): Promise<void> {
  if (mark === null || isStoredTime(mark)) return;
  const detail = `field ${field} of the profile of ${user} is ${quote(mark)}, which is not a number`;
  await report('profile-mark-unreadable', detail, {
    ...removeField(key, field, mark),
    commands: [['hset', key, field, 0]],
  });
}

/** No file of a profile may be on the list of those that a sweep removes. */
async function checkPicture(
  { store, base, report }: Check,
  key: string,
  user: string,
  file: string,
): Promise<void> {
  const unreferenced = unreferencedPicturesKey(base);
  const since = await ofRightType(store.zscore(unreferenced, file));
  if (typeof since !== 'string') return;
  const detail = `picture file ${quote(file)} of ${user} is listed as unreferenced, so a sweep would remove it`;
  await report('picture-loose', detail, {
    expect: [
      [file, 'hget', key, 'pf'],
      [since, 'zscore', unreferenced, file],
    ],
    commands: [['zrem', unreferenced, file]],
  });
}
