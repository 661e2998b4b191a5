import { closeSync, openSync, readSync, writeSync } from 'node:fs';
import type { Marks } from './marks.ts';
import type { Workspace } from './workspace.ts';

const partitions = 64;
/** Fingerprints of one partition held in memory before they go to its file. */
const buffered = 8192;

interface Partition {
  buffer: Float64Array;
  length: number;
  file: number | undefined;
  spilled: number;
}

/** Many fingerprints, however many: what does not fit goes to files. */
export interface FingerprintSet {
  add: (fingerprint: number) => void;
  /** How many were added, the same ones counted again. */
  readonly size: number;
  /** Marks each fingerprint that was added more than once. */
  markRepeated: (marks: Marks) => void;
  /** Marks each one that the other set has, too. */
  markShared: (other: FingerprintSet, marks: Marks) => void;
  /** Marks each one that the other set has not, and says how many different ones these are. */
  markMissingIn: (other: FingerprintSet, marks: Marks) => number;
  /** The partition's fingerprints in ascending order; equal ones of all sets stand in the same partition. */
  sorted: (partition: number) => Float64Array;
  close: () => void;
}

/** An empty set, whose files are made in the workspace. */
export function createFingerprintSet(workspace: Workspace): FingerprintSet {
  const parts = new Map<number, Partition>();
  let size = 0;

  const add = (fingerprint: number): void => {
    const index = fingerprint % partitions;
    let part = parts.get(index);
    if (part === undefined) {
      part = { buffer: new Float64Array(64), length: 0, file: undefined, spilled: 0 };
      parts.set(index, part);
    }
    if (part.length === part.buffer.length) makeRoom(part, workspace);
    part.buffer[part.length] = fingerprint;
    part.length += 1;
    size += 1;
  };

  const sorted = (index: number): Float64Array => {
    const part = parts.get(index);
    if (part === undefined) return new Float64Array(0);
    const all = new Float64Array(part.spilled + part.length);
    if (part.file !== undefined) readWhole(part.file, all.subarray(0, part.spilled));
    all.set(part.buffer.subarray(0, part.length), part.spilled);
    return all.sort();
  };

  const markRepeated = (marks: Marks): void => {
    for (let index = 0; index < partitions; index += 1) {
      const all = sorted(index);
      for (let at = 1; at < all.length; at += 1) {
        if (all[at] === all[at - 1]) marks.add(all[at] ?? 0);
      }
    }
  };

  /** Tells of each different fingerprint whether the other set has it. */
  const compare = (other: FingerprintSet, tell: (fingerprint: number, shared: boolean) => void): void => {
    for (let index = 0; index < partitions; index += 1) {
      const mine = sorted(index);
      const theirs = other.sorted(index);
      let there = 0;
      for (let at = 0; at < mine.length; at += 1) {
        const fingerprint = mine[at] ?? 0;
        if (fingerprint === mine[at - 1]) continue;
        while (there < theirs.length && (theirs[there] ?? 0) < fingerprint) there += 1;
        tell(fingerprint, theirs[there] === fingerprint);
      }
    }
  };

  return {
    add,
    get size() {
      return size;
    },
    sorted,
    markRepeated,
    markShared: (other, marks) =>
      compare(other, (fingerprint, shared) => {
        if (shared) marks.add(fingerprint);
      }),
    markMissingIn: (other, marks) => {
      let missing = 0;
      compare(other, (fingerprint, shared) => {
        if (shared) return;
        marks.add(fingerprint);
        missing += 1;
      });
      return missing;
    },
    close: () => {
      for (const { file } of parts.values()) if (file !== undefined) closeSync(file);
      parts.clear();
    },
  };
}

function makeRoom(part: Partition, workspace: Workspace): void {
  if (part.buffer.length < buffered) {
    const larger = new Float64Array(part.buffer.length * 2);
    larger.set(part.buffer);
    part.buffer = larger;
    return;
  }
  part.file ??= openSync(workspace.newFile(), 'w+');
  const bytes = new Uint8Array(part.buffer.buffer);
  for (let done = 0; done < bytes.length;) {
    done += writeSync(part.file, bytes, done, bytes.length - done, part.spilled * 8 + done);
  }
  part.spilled += part.length;
  part.length = 0;
}

function readWhole(file: number, into: Float64Array): void {
  const bytes = new Uint8Array(into.buffer, into.byteOffset, into.byteLength);
  for (let done = 0; done < bytes.length;) {
    const read = readSync(file, bytes, done, bytes.length - done, done);
    if (read === 0) throw new Error('a temporary file was cut short');
    done += read;
  }
}
