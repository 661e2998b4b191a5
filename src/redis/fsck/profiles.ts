import { profileKey } from '../keys.ts';
import type { LookedProfile } from './scripts.ts';
import { chunksOf, quote, tell, type Check } from './check.ts';
import { checkNames, type NamedUser } from './names.ts';
import { isReference } from './references.ts';

/** Proves that these users' profiles are whole, and that the index knows their names. */
export async function checkProfiles(check: Check, users: readonly string[]): Promise<void> {
  for (const chunk of chunksOf(users)) {
    const looked = await check.store.fsckLookProfiles(check.base, ...chunk);
    const named: NamedUser[] = [];
    for (const [position, profile] of looked.entries()) {
      const userId = chunk[position];
      if (userId === undefined) continue;
      const username = await checkProfile(check, userId, profile);
      if (username !== undefined) named.push({ userId, username });
    }
    await checkNames(check, named);
  }
}

/** Returns the user's name. */
async function checkProfile(
  check: Check,
  userId: string,
  profile: LookedProfile,
): Promise<string | undefined> {
  const { store, base } = check;
  const key = profileKey(base, userId);
  if (profile[0] === 'none') {
    // Gone by now, or a key that is no UTF-8 and so was not found by what was read of it.
    if (!userId.includes('\uFFFD')) return undefined;
    await tell(check, 'wrong-type', `the bytes of key ${quote(key)} are not UTF-8: remove it`);
    return undefined;
  }
  if (profile[0] === 'wrong-type') {
    await tell(check, 'wrong-type', `${quote(key)} is no hash: remove it`);
    return undefined;
  }
  check.counts.profiles++;
  const [, username, t, file, pictureReference, avatarReference, loose] = profile;
  const mend = async () => await store.fsckMendProfile(base, userId);
  // Empty where a migration's source does not say when.
  if (t === null || !/^\d*$/.test(t)) {
    await tell(
      check,
      'profile-undated',
      `the profile of user ${quote(userId)} has no time of its last change`,
      mend,
    );
  }
  if (loose !== null) {
    const detail = `picture file ${quote(file ?? '')} of user ${quote(userId)} counts as loose and would be swept`;
    await tell(check, 'picture-loose', detail, mend);
  }
  for (const [field, reference] of [
    ['pr', pictureReference],
    ['ar', avatarReference],
  ] as const) {
    if (reference === null) continue;
    check.counts.references++;
    if (isReference(reference)) continue;
    await tell(
      check,
      'reference-unreadable',
      `${field === 'pr' ? 'picture' : 'avatar'} reference ${quote(reference)} of user ${quote(userId)} cannot be read`,
      async () => await store.fsckDrop(base, 'hash', key, field, reference),
    );
  }
  return username ?? undefined;
}
