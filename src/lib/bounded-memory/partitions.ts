import { crc32 } from 'node:zlib';
import { createLineList } from './line-list.ts';
import type { Workspace } from './workspace.ts';

/** The number of partitions: of a hundred million lines, one partition fits into memory. */
export const partitionCount = 256;

/** The partition for lines about a key. */
export function partitionFor(key: string): number {
  return crc32(key) % partitionCount;
}

/** Lines by partition, in memory or on disk. */
export function createPartitions(workspace: Workspace) {
  const partitions = Array.from({ length: partitionCount }, () => createLineList(workspace));
  return {
    /** `partition` is from 0 up to `partitionCount`. */
    add: (partition: number, line: string): void => partitions[partition]?.add(line),
    /** The lines of one partition after the other, in the order in which they were added. */
    all: function* (): Generator<string[]> {
      for (const partition of partitions) {
        const lines = ([] as string[]).concat(...partition.blocks());
        if (lines.length > 0) yield lines;
      }
    },
  };
}
