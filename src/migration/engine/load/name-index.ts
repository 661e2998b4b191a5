import { hash } from 'node:crypto';
import { createSeen } from '../../analysis/seen.ts';
import { createSorter, separator } from '../../analysis/sorter.ts';
import { pad } from '../../analysis/spool.ts';
import { namesBucketKey } from '../../../redis/keys.ts';
import type { MigrationContext } from '../context.ts';
import type { Organization } from '../organizations.ts';

/** Names in a bucket, on average; lua/lib/names.lua has the same. */
const usualBucketSize = 36;

/** How many buckets an index of so many names has. */
export function bucketCount(names: number): number {
  return Math.max(1, Math.ceil(names / usualBucketSize));
}

/** A user who is to have a name. */
interface NameClaim {
  organization: Organization;
  form: string;
  userId: string;
  /** Rows of the source before the user's. */
  seq: number;
  /** For people: the row's place in the source. */
  where: string;
}

/** The name index of organizations that are loaded: it is written when all names are known. */
export interface NameIndex {
  add: (claim: NameClaim) => Promise<void> | undefined;
  deny: (organization: Organization, form: string) => Promise<void> | undefined;
  /** A record supersedes the user's earlier ones: what they claimed does not count. */
  supersede: (claim: Pick<NameClaim, 'organization' | 'userId' | 'seq'>) => Promise<void> | undefined;
  /** Writes the index. Of several users who want a name the first in the source gets it. */
  write: (handlers: {
    onConflict: (claim: NameClaim, holder: NameClaim) => Promise<void>;
    onDenied: (claim: NameClaim) => void;
  }) => Promise<void>;
}

const bucketsAtOnce = 64;

/** An empty index. Names wait on disk, in the order of their buckets, so that each bucket is one command. */
export function createNameIndex(context: MigrationContext): NameIndex {
  const sorter = createSorter(context.workspace);
  const superseding = createSorter(context.workspace);
  // Most users have one record: only the others' claims are looked at more closely.
  const repeated = createSeen();
  let claims = 0;
  const add = (organization: Organization, form: string, rest: string): Promise<void> | undefined =>
    sorter.add([organization.id, placeText(placeOf(form)), form, rest].join(separator));

  /** Puts a line that voids it before each claim that was superseded: the claim's own without user and place. */
  const voidSuperseded = async (): Promise<void> => {
    if (repeated.isEmpty) return;
    for await (const line of sorter.sorted()) {
      const [id = '', place, form, seq, userId] = line.split(separator);
      if (userId === undefined || !repeated.has(id, userId)) continue;
      await superseding.add([id, userId, seq, place, form].join(separator));
    }
    let last = '';
    let user = '';
    for await (const line of superseding.sorted()) {
      const [id = '', userId = '', seq, place, form] = line.split(separator);
      if (user !== id + separator + userId) last = '';
      user = id + separator + userId;
      if (place !== undefined) last = [id, place, form, seq].join(separator);
      else if (last !== '') await sorter.add(last);
    }
  };

  return {
    add: ({ organization, form, userId, seq, where }) => {
      claims += 1;
      return add(organization, form, [pad(seq), userId, where].join(separator));
    },
    // Sorts before all who want the name.
    deny: (organization, form) => add(organization, form, ''),
    supersede: ({ organization, userId, seq }) => {
      repeated.add(organization.id, userId);
      // Sorts before the record's own claim.
      return superseding.add([organization.id, userId, pad(seq)].join(separator));
    },
    write: async ({ onConflict, onDenied }) => {
      await voidSuperseded();
      const writer = createBucketWriter(context);
      let winner: NameClaim | undefined;
      let denied = '';
      let isVoid = false;
      let count = 0;
      for await (const line of sorter.sorted()) {
        const [id = '', place = '', form = '', seq = '', userId, where = ''] = line.split(separator);
        if (seq === '') denied = id + separator + form;
        const isSkipped = seq === '' || userId === undefined || isVoid;
        isVoid = seq !== '' && userId === undefined;
        if (isSkipped) continue;
        const found = context.organizations.find(id);
        const organization = found instanceof Promise ? await found : found;
        const claim: NameClaim = { organization, form, userId, seq: Number(seq), where };
        if (winner?.organization === organization && winner.form === form) {
          if (winner.userId !== userId) await onConflict(claim, winner);
          continue;
        }
        winner = claim;
        if (denied === id + separator + form) onDenied(claim);
        const adding = writer.add(claim, placeFrom(place));
        if (adding !== undefined) await adding;
        if ((count += 1) % 1000 === 0)
          context.progress.advance('writing the name index', 1000, count / claims);
      }
      await writer.finish();
    },
  };
}

/** Writes claims that come in the order of their buckets. */
function createBucketWriter({ store }: MigrationContext) {
  let buckets: { key: string; pairs: string[] }[] = [];
  let key = '';
  let base = '';
  const flush = async (): Promise<void> => {
    const own = buckets;
    buckets = [];
    if (own.length === 0) return;
    const pipeline = store.pipeline();
    // What an earlier attempt has left in a bucket is not part of it.
    for (const bucket of own) pipeline.unlink(bucket.key).hset(bucket.key, ...bucket.pairs);
    const replies = (await pipeline.exec()) ?? [];
    for (const [position, { key: bucket, pairs }] of own.entries()) {
      for (const [error] of replies.slice(position * 2, position * 2 + 2)) if (error !== null) throw error;
      if (replies[position * 2 + 1]?.[1] !== pairs.length / 2)
        throw new Error(`${bucket} was written by somebody else while it was loaded`);
    }
  };
  return {
    add: ({ organization, form, userId }: NameClaim, place: number): Promise<void> | undefined => {
      const count = bucketCount(organization.namesToCome);
      const own = namesBucketKey(organization.base, '0', String(bucketOf(place, count)));
      let flushed: Promise<void> | undefined;
      if (own !== key) {
        // A pipeline stays within one slot of a cluster.
        if (buckets.length >= bucketsAtOnce || base !== organization.base) flushed = flush();
        key = own;
        base = organization.base;
        buckets.push({ key, pairs: [] });
      }
      buckets.at(-1)?.pairs.push(form, userId);
      return flushed;
    },
    finish: flush,
  };
}

/** A form's place in the index, 0 up to 2^32. */
function placeOf(form: string): number {
  return Number.parseInt(hash('sha1', form, 'hex').slice(0, 8), 16);
}

/** The number of the bucket that has a place (linear hashing). */
function bucketOf(place: number, count: number): number {
  let range = 1;
  while (range < count) range *= 2;
  const number = place % range;
  return number < count ? number : place % (range / 2);
}

/** A place as text whose order is that of the buckets, however many there are: their number is its lowest bits. */
function placeText(place: number): string {
  return reverseBits(place).toString(16).padStart(8, '0');
}

/** The place that `placeText` wrote. */
function placeFrom(text: string): number {
  return reverseBits(Number.parseInt(text, 16));
}

function reverseBits(bits: number): number {
  let reversed = 0;
  for (let bit = 0; bit < 32; bit += 1) reversed = (reversed << 1) | ((bits >>> bit) & 1);
  return reversed >>> 0;
}
