import { getOrInsert } from '../../../lib/collections/get-or-insert.ts';
import { bucketOf, nameHash, nameHashLength } from '../../../redis/keys.ts';
import { createPartitions, partitionCount } from '../../analysis/partitions.ts';
import { separator } from '../../analysis/sorter.ts';
import type { MigrationContext } from '../context.ts';
import type { Organization } from '../organizations.ts';
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
  userId: string;
  /** Rows of the source before the record. */
  seq: number;
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
  const add = ({ number }: Organization, hash: string, name: string, rest: string): void =>
    lines.add(partitionOf(hash), number + separator + name + separator + hash + rest);
  return {
    add: ({ organization, name, userId, seq, isWritten }: NameClaim): void => {
      added += 1;
      // Records without a name are spread as well.
      const hash = nameHash(name === '' ? userId : name);
      const state = isWritten ? written : setAside;
      add(organization, hash, name, state + userId + separator + seq);
    },
    deny: (organization: Organization, name: string): void => add(organization, nameHash(name), name, denied),
    /**
     * Writes the index, without the names that several users want and those of records that `isContested`. Gives what is
     * contested, and what is on the denylist, some at a time.
     */
    write: async function* (isContested: (claim: NameClaim) => boolean) {
      const owners = organizations.all();
      let count = 0;
      for (const own of lines.all()) {
        const denylisted: NameClaim[] = [];
        const contested: NameClaim[] = [];
        const buckets = new Map<Organization, Map<number, string[]>>();
        let found = 0;
        for (const { name, hash, isDenied, claims } of namesIn(own, owners)) {
          const isShared = name !== '' && claims.some(({ userId }) => userId !== claims[0]?.userId);
          for (const claim of claims) {
            if (isDenied) denylisted.push(claim);
            if (isShared || isContested(claim)) contested.push(claim);
            else if (name !== '') putInBucket(buckets, claim, hash);
          }
          found += claims.length;
        }
        for (const [organization, rows] of buckets)
          for (const row of rows.values()) sender.add(organization, row);
        yield { denylisted, contested };
        count += found;
        progress.advance('writing the name index', found, count / added);
        await sender.room();
      }
      await sender.flush();
    },
  };
}

function putInBucket(
  buckets: Map<Organization, Map<number, string[]>>,
  { organization, name, userId }: NameClaim,
  hash: string,
): void {
  const rows = getOrInsert(buckets, organization, () => new Map<number, string[]>());
  const bucket = bucketOf(hash, bucketCount(organization.namesToCome));
  getOrInsert(rows, bucket, () => [String(bucket)]).push(name, userId);
}

// What a line says about a name.
const [denied, setAside, written] = ['d', 'a', 'w'];

interface IndexedName {
  /** Normalized; '' for all records without one. */
  name: string;
  hash: string;
  isDenied: boolean;
  claims: NameClaim[];
}

/** Groups the lines about one name. */
function namesIn(lines: readonly string[], owners: readonly Organization[]): Iterable<IndexedName> {
  const names = new Map<string, IndexedName>();
  for (const line of lines) {
    const numberEnd = line.indexOf(separator);
    const nameEnd = line.indexOf(separator, numberEnd + 1);
    const hashEnd = nameEnd + 1 + nameHashLength;
    const name = line.slice(numberEnd + 1, nameEnd);
    const found = getOrInsert(names, line.slice(0, nameEnd), () => {
      return { name, hash: line.slice(nameEnd + 1, hashEnd), isDenied: false, claims: [] };
    });
    const state = line[hashEnd];
    const organization = owners[Number(line.slice(0, numberEnd))];
    if (state === denied) found.isDenied = true;
    else if (organization !== undefined) {
      const userEnd = line.indexOf(separator, hashEnd);
      const userId = line.slice(hashEnd + 1, userEnd);
      const seq = Number(line.slice(userEnd + 1));
      found.claims.push({ organization, name, userId, seq, isWritten: state === written });
    }
  }
  return names.values();
}

/** The partition of a hash: where an index has more buckets than there are partitions, none is in two. */
function partitionOf(hash: string): number {
  return Number.parseInt(hash.slice(-2), 16) % partitionCount;
}
