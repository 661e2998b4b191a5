import type { Extent, Workspace } from './workspace.ts';

const blockSize = 16 * 1024;
const lineFeed = 10;

/**
 * Lines in the order in which they were added, in memory or on disk. They hold no line feed and are well-formed Unicode.
 * What is held in memory is outside the heap, since it is kept for long without being read.
 */
export function createLineList(workspace: Workspace) {
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
    /** The lines, some at a time. */
    blocks: function* (): Generator<string[]> {
      for (const extent of extents) yield linesOf(workspace.read(extent));
      if (block !== undefined) yield linesOf(block.subarray(0, used));
    },
  };
}

function linesOf(bytes: Buffer): string[] {
  const lines = bytes.toString().split('\n');
  lines.pop();
  return lines;
}
