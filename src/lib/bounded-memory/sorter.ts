import { createLineList } from './line-list.ts';
import type { Workspace } from './workspace.ts';

/** Separates the parts of a line, none of which may contain it. */
export const separator = '\u0001';

export const paddedLength = 16;

/** A whole number as text that sorts as the number does. */
export function pad(number: number): string {
  return String(number).padStart(paddedLength, '0');
}

/** Text held in memory before it goes to disk, in characters. */
const memoryLimit = 4 * 1024 * 1024;
/** Sorted lists merged at once; some text of each is in memory. */
const mergeWidth = 64;

type LineList = ReturnType<typeof createLineList>;

/** Sorts lines, however many: an external merge sort. */
export function createSorter(workspace: Workspace, limit = memoryLimit) {
  let lines: string[] = [];
  let length = 0;
  const runs: LineList[] = [];

  const spill = (): void => {
    runs.push(listOf(workspace, lines.sort()));
    lines = [];
    length = 0;
  };

  return {
    add: (line: string): void => {
      lines.push(line);
      length += line.length + 16;
      if (length > limit) spill();
    },
    /** All lines in code-unit order; can be called again. Nothing may be added while they are read. */
    sorted: (): Iterable<string> => {
      if (runs.length === 0) return lines.sort();
      if (lines.length > 0) spill();
      while (runs.length > mergeWidth) {
        runs.push(listOf(workspace, merge(runs.splice(0, mergeWidth))));
      }
      return merge(runs);
    },
  };
}

function listOf(workspace: Workspace, lines: Iterable<string>): LineList {
  const list = createLineList(workspace);
  for (const line of lines) list.add(line);
  return list;
}

/** Lines of sorted lists, in order. */
function* merge(lists: readonly LineList[]): Generator<string> {
  const heads = lists.flatMap((list) => {
    const lines = linesOf(list);
    const first = lines.next();
    return first.done === true ? [] : [{ line: first.value, lines }];
  });
  for (let [least] = heads; least !== undefined; [least] = heads) {
    for (const head of heads) if (head.line < least.line) least = head;
    yield least.line;
    const next = least.lines.next();
    if (next.done === true) heads.splice(heads.indexOf(least), 1);
    else least.line = next.value;
  }
}

function* linesOf(list: LineList): Generator<string, undefined> {
  for (const lines of list.blocks()) yield* lines;
}
