import type { Batch } from '../../sources/source.ts';
import type { Extent, Workspace } from '../../analysis/workspace.ts';

/**
 * Where the rows of a source stand, by the number of rows before each. They wait on disk, and only those that are asked
 * for are put into words.
 */
export function createPlaces(workspace: Workspace) {
  const blocks: { first: number; extent: Extent; describe: Batch['describe'] }[] = [];
  return {
    /** Adds those of a batch's rows; `first`: rows of the source before it. Batches come in the order of the reading. */
    add: (first: number, { places, describe }: Batch): void => {
      blocks.push({ first, extent: workspace.append(Buffer.from(JSON.stringify(places))), describe });
    },
    /** For people: the place of a row that was added. */
    where: (seq: number): string => {
      // There is a block for each batch, and a question for each row that is contested or denied.
      let [low, high] = [0, blocks.length];
      while (high - low > 1) {
        const middle = (low + high) >>> 1;
        if ((blocks[middle]?.first ?? 0) <= seq) low = middle;
        else high = middle;
      }
      const block = blocks[low];
      if (block === undefined) throw new RangeError(`no place was added for row ${seq}`);
      const places = JSON.parse(workspace.read(block.extent).toString()) as unknown[];
      return block.describe(places[seq - block.first]);
    },
  };
}
