import { getOrInsert } from '../../../lib/collections/get-or-insert.ts';
import { bucketOf, nameHash, nameHashLength } from '../../../redis/keys.ts';
import { createPartitions, partitionCount } from '../../../lib/bounded-memory/partitions.ts';
import { separator } from '../../../lib/bounded-memory/sorter.ts';
import type { MigrationContext } from '../../context/context.ts';
import type { Organization } from '../../context/organizations.ts';
import type { RowSender } from './row-sender.ts';

/** Names in a bucket, on average; lua/lib/names.lua has the same. */
const namesPerBucket = 36;

/** How many buckets an index of this many names has. */
export function bucketCount(names: number): number {
  return Math.max(1, Math.ceil(names / namesPerBucket));
}

/** A record of a user with the name, if any, that the user is to have. */
export interface NameClaim {
  organization: Organization;
  /** Normalized; '' for none. */
  name: string;
  /** Of the name; of the user where there is none, so that such records are spread as well. */
  hash: string;
  userId: string;
  /** Rows of the source before the record. */
  seq: number;
  /** Its place in the source, for people. */
  where: string;
  /** Whether the profile is written; otherwise it is set aside already. */
  isWritten: boolean;
}

/**
 * The name index of organizations that are loaded: it is written when all names are known. Until then these wait on
 * disk, partitioned by their hash, so that a bucket is written in few pieces.
 */
export function createNameIndex(
  { workspace, progress, organizations }: Pick<MigrationContext, 'workspace' | 'progress' | 'organizations'>,
  sender: RowSender,
) {
  const lines = createPartitions(workspace);
  let added = 0;
  return {
    add: ({ organization, name, userId, seq, where, isWritten }: Omit<NameClaim, 'hash'>): void => {
      added += 1;
      const hash = nameHash(name === '' ? userId : name);
      const key = organization.number + separator + name + separator + hash;
      const state = isWritten ? written : setAside;
      lines.add(partitionOf(hash), key + state + userId + separator + seq + separator + where);
    },
    /**
     * Writes the index, without the names of records that are set aside. Gives those that are yet to be set aside, some
     * at a time: several users want their names, or they are `isContested`.
     */
    write: async function* (isContested: (claim: NameClaim) => boolean) {
      const owners = organizations.all();
      let count = 0;
      for (const own of lines.all()) {
        const contested: NameClaim[] = [];
        const buckets = new Map<Organization, Map<number, string[]>>();
        for (const claims of claimsByName(own, owners)) {
          const [first] = claims;
          const isShared = first.name !== '' && claims.some(({ userId }) => userId !== first.userId);
          for (const claim of claims) {
            if (!claim.isWritten) continue;
            if (isShared || isContested(claim)) contested.push(claim);
            else if (claim.name !== '') putInBucket(buckets, claim);
          }
        }
        for (const [organization, rows] of buckets)
          for (const row of rows.values()) sender.add(organization, row);
        yield contested;
        count += own.length;
        progress.advance('writing the name index', own.length, count / added);
        await sender.room();
      }
      await sender.flush();
    },
  };
}

function putInBucket(
  buckets: Map<Organization, Map<number, string[]>>,
  { organization, name, hash, userId }: NameClaim,
): void {
  const rows = getOrInsert(buckets, organization, () => new Map<number, string[]>());
  const bucket = bucketOf(hash, bucketCount(organization.namesToCome));
  getOrInsert(rows, bucket, () => [String(bucket)]).push(name, userId);
}

// What a line says about a record.
const [setAside, written] = ['a', 'w'];

/** Reads lines of one partition; the records of an organization with the same name, or without one, are together. */
function claimsByName(
  lines: readonly string[],
  owners: readonly Organization[],
): Iterable<[NameClaim, ...NameClaim[]]> {
  const names = new Map<string, NameClaim[]>();
  for (const line of lines) {
    const numberEnd = line.indexOf(separator);
    const nameEnd = line.indexOf(separator, numberEnd + 1);
    const hashEnd = nameEnd + 1 + nameHashLength;
    const userEnd = line.indexOf(separator, hashEnd);
    const seqEnd = line.indexOf(separator, userEnd + 1);
    const organization = owners[Number(line.slice(0, numberEnd))];
    if (organization === undefined) continue;
    getOrInsert(names, line.slice(0, nameEnd), () => []).push({
      organization,
      name: line.slice(numberEnd + 1, nameEnd),
      hash: line.slice(nameEnd + 1, hashEnd),
      userId: line.slice(hashEnd + 1, userEnd),
      seq: Number(line.slice(userEnd + 1, seqEnd)),
      where: line.slice(seqEnd + 1),
      isWritten: line[hashEnd] === written,
    });
  }
  return names.values() as Iterable<[NameClaim, ...NameClaim[]]>;
}

/** The partition of a hash: where an index has more buckets than there are partitions, none is in two. */
function partitionOf(hash: string): number {
  return Number.parseInt(hash.slice(-2), 16) % partitionCount;
}
