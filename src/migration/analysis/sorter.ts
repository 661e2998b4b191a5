import { textOf } from '../../lib/utf8.ts';
import type { Extent, Workspace } from './workspace.ts';

/** Separates the parts of a line; no text of a record contains it. */
export const separator = '\u0001';

/** Text held in memory before it goes to disk, in characters. */
const memoryLimit = 4 * 1024 * 1024;
/** Runs merged at once; some text of each is in memory. */
const mergeWidth = 64;
const blockLength = 64 * 1024;

/** Sorts lines, however many: an external merge sort. Lines hold no line feed and are well-formed Unicode. */
export interface Sorter {
  add: (line: string) => void;
  /** All lines in code-unit order; can be called again. Nothing may be added while they are read. */
  sorted: () => Iterable<string>;
}

/** Sorted lines on disk. */
type Run = readonly Extent[];

export function createSorter(workspace: Workspace, limit = memoryLimit): Sorter {
  let lines: string[] = [];
  let length = 0;
  let isSorted = false;
  const runs: Run[] = [];

  const spill = (): void => {
    runs.push(writeRun(workspace, lines.sort()));
    lines = [];
    length = 0;
  };

  return {
    add: (line) => {
      lines.push(line);
      isSorted = false;
      length += line.length + 16;
      if (length > limit) spill();
    },
    sorted: () => {
      if (runs.length === 0) {
        if (!isSorted) lines.sort();
        isSorted = true;
        return lines;
      }
      if (lines.length > 0) spill();
      while (runs.length > mergeWidth) {
        runs.push(writeRun(workspace, merge(workspace, runs.splice(0, mergeWidth))));
      }
      return merge(workspace, runs);
    },
  };
}

/** Whether `one` sorts before `other`; the order of all exports. */
export function byCodeUnits(one: string, other: string): number {
  if (one === other) return 0;
  return one < other ? -1 : 1;
}

function writeRun(workspace: Workspace, lines: Iterable<string>): Run {
  const run: Extent[] = [];
  let block = '';
  for (const line of lines) {
    block += `${line}\n`;
    if (block.length < blockLength) continue;
    run.push(workspace.append(Buffer.from(block)));
    block = '';
  }
  if (block !== '') run.push(workspace.append(Buffer.from(block)));
  return run;
}

/** Lines of sorted runs, in order. */
function* merge(workspace: Workspace, runs: readonly Run[]): Generator<string> {
  const heads = runs.flatMap((run) => {
    const lines = readRun(workspace, run);
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

function* readRun(workspace: Workspace, run: Run): Generator<string, undefined> {
  for (const extent of run) {
    const lines = textOf(workspace.read(extent)).split('\n');
    lines.pop();
    yield* lines;
  }
}
