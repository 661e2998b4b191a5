import { storeTime } from '../connection/client.ts';
import { script } from '../connection/script-loader.ts';
import { yieldingChunks } from '../../lib/time-slices.ts';
import { profileKey, unreferencedPicturesKey } from '../keys.ts';
import { namesAtOnce, quote, removeField, type Check } from './check.ts';
import { checkNames, type NamedUser } from './names.ts';
import { isReference } from './references.ts';

type Text = string | null;

/** A profile in the reply of lua/fsck/look_profiles.lua. */
type SeenProfile =
  | ['none' | 'wrong-type']
  | [
      'profile',
      username: Text,
      t: Text,
      pictureFile: Text,
      pictureReference: Text,
      avatarReference: Text,
      unreferencedSince: Text,
    ];

const lookProfiles = script<string[], SeenProfile[]>('fsck/look_profiles');

/** Checks that these users' profiles are whole, and that the index knows their names. */
export async function checkProfiles(check: Check, users: readonly string[]): Promise<void> {
  for await (const chunk of yieldingChunks(users, namesAtOnce)) {
    const profiles = await lookProfiles(check.store, check.base, ...chunk);
    const named: NamedUser[] = [];
    for (const [position, userId] of chunk.entries()) {
      const username = await checkProfile(check, userId, profiles[position] ?? ['none']);
      if (username !== undefined) named.push({ userId, username });
    }
    await checkNames(check, named);
  }
}

/** Returns the user's name. */
async function checkProfile(check: Check, userId: string, profile: SeenProfile): Promise<string | undefined> {
  const { store, base, counts, report } = check;
  const key = profileKey(base, userId);
  if (profile[0] !== 'profile') {
    if (profile[0] === 'wrong-type') await report('wrong-type', `${quote(key)} is not a hash: remove it`);
    // It has been removed, or its bytes are not UTF-8 and what was read of them finds nothing.
    else if (userId.includes('\uFFFD')) {
      await report('wrong-type', `the bytes of key ${quote(key)} are not UTF-8: remove it`);
    }
    return undefined;
  }
  counts.profiles++;
  const [, username, t, file, pictureReference, avatarReference, unreferencedSince] = profile;
  // Empty where a migration's source does not say when.
  if (t === null || !/^\d*$/.test(t)) {
    await report('profile-undated', `the profile of user ${quote(userId)} has no time of its last change`, {
      expect: [
        [1, 'exists', key],
        [t ?? false, 'hget', key, 't'],
      ],
      commands: [['hset', key, 't', await storeTime(store)]],
    });
  }
  if (file !== null && unreferencedSince !== null) {
    const detail = `picture file ${quote(file)} of user ${quote(userId)} is listed as unreferenced, so a sweep would remove it`;
    await report('picture-loose', detail, {
      expect: [[file, 'hget', key, 'pf']],
      commands: [['zrem', unreferencedPicturesKey(base), file]],
    });
  }
  for (const [field, reference] of [
    ['pr', pictureReference],
    ['ar', avatarReference],
  ] as const) {
    if (reference === null) continue;
    counts.references++;
    if (isReference(reference)) continue;
    const which = field === 'pr' ? 'picture' : 'avatar';
    const detail = `${which} reference ${quote(reference)} of user ${quote(userId)} cannot be read`;
    await report('reference-unreadable', detail, removeField(key, field, reference));
  }
  return username ?? undefined;
}
