import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { avatar, avatarUrl, pictureUrl, userId, wallet } from '../load/seed.ts';
import { bucketOf, bucketsFor, changedAt, inBlocks, longNameOf as nameOf, profileCommands } from '../pipe.ts';

export const organization = 'migrate';

/** Profiles of one organization as NDJSON, with the object that they refer to; the source's folder. */
export async function writeProfiles(folder: string, count: number, padding = ''): Promise<string> {
  await mkdir(folder, { recursive: true });
  const object = { organizationId: organization, ...avatar, url: avatarUrl };
  await writeText(join(folder, 'objects.ndjson'), [line(object)]);
  const profiles = linesOf(count, (user) => line(record(organization, user, padding)));
  await writeText(join(folder, 'profiles.ndjson'), profiles);
  return folder;
}

/** The same number of profiles in many organizations, one organization after the other or in turn. */
export async function writeScattered(
  folder: string,
  { count, organizations, isSorted }: { count: number; organizations: number; isSorted: boolean },
): Promise<string> {
  await mkdir(folder, { recursive: true });
  const profiles = linesOf(count, (user) => {
    const own = isSorted ? Math.floor((user * organizations) / count) : user % organizations;
    return line(record(`org-${own}`, user));
  });
  await writeText(join(folder, 'profiles.ndjson'), profiles);
  return folder;
}

function line(entry: object): string {
  return `${JSON.stringify(entry)}\n`;
}

/** The keys that `writeProfiles` becomes, as commands in Redis' protocol. */
export async function writeCommands(path: string, count: number): Promise<void> {
  await writeText(path, profileCommands(organization, count));
}

/** The profiles as lines of PostgreSQL's COPY, each with the bucket of its name: id, name, bucket. */
export async function writeTable(path: string, count: number): Promise<void> {
  const buckets = bucketsFor(count);
  const lineOf = (user: number): string =>
    `${userId(user)}\t${nameOf(user)}\t${bucketOf(nameOf(user), buckets)}\n`;
  await writeText(path, linesOf(count, lineOf));
}

function* linesOf(count: number, lineOf: (user: number) => string): Generator<string, void> {
  for (let user = 0; user < count; user += 1) yield lineOf(user);
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

async function writeText(path: string, texts: Iterable<string>): Promise<void> {
  await writeFile(path, inBlocks(texts));
}
