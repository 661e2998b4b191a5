import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { encodeReference } from '../../../src/domain/profile.ts';
import { namesBucketKey, profileKey, settingsKey } from '../../../src/redis/keys.ts';
import { avatar, avatarUrl, baseOf, pictureUrl, userId, wallet } from '../load/seed.ts';
import { bucketOf, bucketsFor, command, longNameOf as nameOf } from '../pipe.ts';

export const organization = 'migrate';
export const changedAt = 1_767_323_045_678;

/** Profiles of one organization as NDJSON, with the object that they refer to; the source's folder. */
export async function writeProfiles(folder: string, count: number, padding = ''): Promise<string> {
  const object = { organizationId: organization, ...avatar, url: avatarUrl };
  return await writeSource(folder, [object], function* () {
    for (let user = 0; user < count; user += 1) yield record(organization, user, padding);
  });
}

/** The same number of profiles in many organizations, one organization after the other or in turn. */
export async function writeScattered(
  folder: string,
  { count, organizations, isSorted }: { count: number; organizations: number; isSorted: boolean },
): Promise<string> {
  return await writeSource(folder, [], function* () {
    for (let user = 0; user < count; user += 1) {
      const own = isSorted ? Math.floor((user * organizations) / count) : user % organizations;
      yield record(`org-${own}`, user);
    }
  });
}

/** The keys that `writeProfiles` becomes, as commands in Redis' protocol. */
export async function writeCommands(path: string, count: number): Promise<void> {
  const base = baseOf(organization);
  const buckets = bucketsFor(count);
  const rest = ['pu', pictureUrl, 'ar', encodeReference(avatar), 'w', wallet, 't', String(changedAt)];
  await writeText(path, function* () {
    yield command('HSET', settingsKey(base), 'n0', String(buckets));
    for (let user = 0; user < count; user += 1) {
      const [id, name] = [userId(user), nameOf(user)];
      yield command('HSET', profileKey(base, id), 'u', name, ...rest);
      yield command('HSET', namesBucketKey(base, '0', bucketOf(name, buckets)), name, id);
    }
  });
}

/** The profiles as lines of PostgreSQL's COPY, each with the bucket of its name: id, name, bucket. */
export async function writeTable(path: string, count: number): Promise<void> {
  const buckets = bucketsFor(count);
  await writeText(path, function* () {
    for (let user = 0; user < count; user += 1)
      yield `${userId(user)}\t${nameOf(user)}\t${bucketOf(nameOf(user), buckets)}\n`;
  });
}

function record(organizationId: string, user: number, padding = ''): object {
  return {
    organizationId,
    userId: userId(user),
    username: nameOf(user),
    profilePictureUrl: pictureUrl + padding,
    avatar,
    evmWalletAddress: wallet,
    evmWalletVerified: true,
    updatedAt: changedAt,
  };
}

async function writeSource(
  folder: string,
  objects: readonly object[],
  profiles: () => Generator<object>,
): Promise<string> {
  await mkdir(folder, { recursive: true });
  const linesOf = function* (records: Iterable<object>): Generator<string> {
    for (const each of records) yield `${JSON.stringify(each)}\n`;
  };
  await writeText(join(folder, 'objects.ndjson'), () => linesOf(objects));
  await writeText(join(folder, 'profiles.ndjson'), () => linesOf(profiles()));
  return folder;
}

async function writeText(path: string, parts: () => Generator<string>): Promise<void> {
  const file = createWriteStream(path);
  let block = '';
  for (const part of parts()) {
    block += part;
    if (block.length < 1_000_000) continue;
    if (!file.write(block)) await once(file, 'drain');
    block = '';
  }
  file.end(block);
  await once(file, 'close');
}
