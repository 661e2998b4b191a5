import { textOf } from '../../lib/utf8.ts';
import type { Extent, Workspace } from './workspace.ts';

/** The number of partitions: of a hundred million lines, one partition fits into memory. */
export const partitionCount = 256;

/** The partition for lines about a key. */
export function partitionFor(key: string): number {
  let hash = 0;
  for (let at = 0, { length } = key; at < length; at += 1)
    hash = Math.imul(hash ^ String.prototype.charCodeAt.call(key, at), 0x01000193);
  return (hash ^ (hash >>> 15)) & (partitionCount - 1);
}

/** Bytes of a partition that are held in memory. */
const blockSize = 16 * 1024;

/** Lines by partition, in memory or on disk. Lines hold no line feed and are well-formed Unicode. */
export interface Partitions {
  /** `partition` is from 0 up to `partitionCount`. */
  add: (partition: number, line: string) => void;
  /** The lines of one partition after the other, in the order in which they were added. */
  all: () => Generator<string[]>;
}

/** No lines yet. What a partition holds in memory is outside the heap, since it is kept for long without being read. */
export function createPartitions(workspace: Workspace): Partitions {
  const partitions = Array.from({ length: partitionCount }, () => createPartition(workspace));
  return {
    add: (partition, line) => partitions[partition]?.add(line),
    all: function* () {
      for (const partition of partitions) {
        const lines = partition.lines();
        if (lines.length > 0) yield lines;
      }
    },
  };
}

const lineFeed = 10;

function createPartition(workspace: Workspace) {
  const extents: Extent[] = [];
  let block: Buffer | undefined;
  let used = 0;
  return {
    add: (line: string): void => {
      // A character takes three bytes at most.
      const most = line.length * 3 + 1;
      if (block !== undefined && used + most > blockSize) {
        extents.push(workspace.append(block.subarray(0, used)));
        used = 0;
      }
      if (most > blockSize) {
        extents.push(workspace.append(Buffer.from(`${line}\n`)));
        return;
      }
      block ??= Buffer.allocUnsafeSlow(blockSize);
      used += block.write(line, used);
      block[used] = lineFeed;
      used += 1;
    },
    lines: (): string[] => {
      const parts = extents.map((extent) => workspace.read(extent));
      if (block !== undefined) parts.push(block.subarray(0, used));
      const lines = textOf(Buffer.concat(parts)).split('\n');
      lines.pop();
      return lines;
    },
  };
}
