import { createLineList } from './line-list.ts';
import type { Workspace } from './workspace.ts';

/** The number of partitions: of a hundred million lines, one partition fits into memory. */
export const partitionCount = 256;

/** The partition for lines about a key. */
export function partitionFor(key: string): number {
  let hash = 0;
  for (let at = 0, { length } = key; at < length; at += 1)
    hash = Math.imul(hash ^ String.prototype.charCodeAt.call(key, at), 0x01000193);
  return (hash ^ (hash >>> 15)) & (partitionCount - 1);
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
