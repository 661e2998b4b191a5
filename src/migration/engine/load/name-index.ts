import { hash } from 'node:crypto';
import { createSorter, separator } from '../../analysis/sorter.ts';
import type { MigrationContext } from '../context.ts';
import type { Organization } from '../organizations.ts';
import type { RowSender } from './row-sender.ts';

/** Names in a bucket, on average; lua/lib/names.lua has the same. */
const usualBucketSize = 36;

/** How many buckets an index of so many names has. */
export function bucketCount(names: number): number {
  return Math.max(1, Math.ceil(names / usualBucketSize));
}

/** A record of a user, who is to have a name or none. */
export interface NameClaim {
  organization: Organization;
  /** '' for none. */
  form: string;
  userId: string;
  /** Rows of the source before the record. */
  seq: number;
  /** For people: the record's place in the source. */
  where: string;
  /** Whether the profile is written; otherwise it is set aside already. */
  isWritten: boolean;
}

/** The name index of organizations that are loaded: it is written when all names are known. */
export interface NameIndex {
  add: (claim: NameClaim) => void;
  deny: (organization: Organization, form: string) => void;
  /** Writes the index, without the names that several users want and those of records that `isContested`. */
  write: (handlers: {
    isContested: (claim: NameClaim) => boolean;
    /** Gets what is left out. */
    onContested: (claim: NameClaim) => Promise<void> | undefined;
    onDenied: (claim: NameClaim) => void;
  }) => Promise<void>;
}

/** Names between two reports of progress. */
const shownEvery = 1000;

/** An empty index. Names wait on disk, in the order of their buckets, so that each bucket is written once. */
export function createNameIndex(
  { workspace, progress }: Pick<MigrationContext, 'workspace' | 'progress'>,
  sender: RowSender,
): NameIndex {
  const sorter = createSorter(workspace);
  const owners = new Map<string, Organization>();
  let added = 0;
  return {
    add: ({ organization, form, userId, seq, where, isWritten }) => {
      if (!owners.has(organization.id)) owners.set(organization.id, organization);
      added += 1;
      const state = isWritten ? written : setAside;
      sorter.add([organization.id, placeOf(form), form, state, userId, seq, where].join(separator));
    },
    deny: (organization, form) => sorter.add([organization.id, placeOf(form), form, denied].join(separator)),
    write: async ({ isContested, onContested, onDenied }) => {
      const buckets = createBucketWriter(sender);
      let [count, shown] = [0, 0];
      for (const { place, form, isDenied, claims } of namesIn(sorter.sorted(), owners)) {
        const isShared = form !== '' && claims.some(({ userId }) => userId !== claims[0]?.userId);
        for (const claim of claims) {
          if (isDenied) onDenied(claim);
          if (isShared || isContested(claim)) await onContested(claim);
          else if (form !== '') buckets.add(claim, place);
        }
        count += claims.length;
        if (count - shown < shownEvery) continue;
        progress.advance('writing the name index', count - shown, count / added);
        shown = count;
        await sender.room();
      }
      buckets.finish();
      await sender.flush();
    },
  };
}

// What a line says of a name, in the order in which such lines sort.
const [denied, setAside, written] = ['', 'a', 'w'];

interface Name {
  id: string;
  place: string;
  /** '' for none: then each record is by itself. */
  form: string;
  isDenied: boolean;
  claims: NameClaim[];
}

/** Puts the lines about one name together. */
function* namesIn(lines: Iterable<string>, owners: ReadonlyMap<string, Organization>): Generator<Name> {
  let name: Name | undefined;
  for (const line of lines) {
    const [id = '', place = '', form = '', state = '', userId = '', seq, where = ''] = line.split(separator);
    if (name === undefined || form === '' || form !== name.form || id !== name.id) {
      if (name !== undefined) yield name;
      name = { id, place, form, isDenied: false, claims: [] };
    }
    const organization = owners.get(id);
    if (organization === undefined || state === denied) name.isDenied = true;
    else
      name.claims.push({ organization, form, userId, seq: Number(seq), where, isWritten: state === written });
  }
  if (name !== undefined) yield name;
}

/** Writes names that come in the order of their buckets. */
function createBucketWriter(sender: RowSender) {
  let row: string[] = [];
  let owner: Organization | undefined;
  let [bucket, count] = [0, 0];
  const finish = (): void => {
    if (owner !== undefined) sender.add(owner, row);
  };
  return {
    add: ({ organization, form, userId }: NameClaim, place: string): void => {
      if (organization !== owner) count = bucketCount(organization.namesToCome);
      const own = bucketOf(place, count);
      if (organization !== owner || own !== bucket) {
        finish();
        [owner, bucket] = [organization, own];
        row = [String(own)];
      }
      row.push(form, userId);
    },
    finish,
  };
}

// Keeps places at ten digits; with the lowest 29 bits, they stay small integers, which turn into text faster.
const firstPlace = 1_000_000_000;

/**
 * The place of a form in the index, as text that sorts by bucket however many there are: the number of a bucket is the
 * lowest bits of the place, so its bits are in reverse order.
 */
function placeOf(form: string): string {
  const place = Number.parseInt(hash('sha1', form).slice(0, 8), 16);
  return String(firstPlace + (reverseBits(place) >>> 3));
}

/** The number of the bucket that has a place (linear hashing). */
function bucketOf(place: string, count: number): number {
  const digest = reverseBits((Number(place) - firstPlace) << 3);
  const mask = count === 1 ? 0 : 0xffffffff >>> Math.clz32(count - 1);
  const number = (digest & mask) >>> 0;
  return number < count ? number : (digest & (mask >>> 1)) >>> 0;
}

function reverseBits(bits: number): number {
  let reversed = ((bits >>> 1) & 0x55555555) | ((bits & 0x55555555) << 1);
  reversed = ((reversed >>> 2) & 0x33333333) | ((reversed & 0x33333333) << 2);
  reversed = ((reversed >>> 4) & 0x0f0f0f0f) | ((reversed & 0x0f0f0f0f) << 4);
  reversed = ((reversed >>> 8) & 0x00ff00ff) | ((reversed & 0x00ff00ff) << 8);
  return ((reversed >>> 16) | (reversed << 16)) >>> 0;
}
