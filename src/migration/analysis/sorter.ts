import { createReadStream } from 'node:fs';
import { createTextFile } from '../../lib/files/text-file.ts';
import type { Workspace } from './workspace.ts';

/** Between the parts of a line; no text of a record holds it. */
export const separator = '\u0001';

/** Text held in memory before it goes to a file, in characters. */
const memoryLimit = 4 * 1024 * 1024;
/** Files merged at once, few enough for every system's limit of open files. */
const mergeWidth = 64;

/** Sorts lines, however many: an external merge sort. Lines hold no line feed and are well-formed Unicode. */
export interface Sorter {
  /** Await it: now and then it has to wait for the disk. */
  add: (line: string) => Promise<void> | undefined;
  /** All lines in code-unit order; can be called again. Nothing may be added while they are read. */
  sorted: () => AsyncIterable<string>;
}

export function createSorter(workspace: Workspace, limit = memoryLimit): Sorter {
  let lines: string[] = [];
  let length = 0;
  let isSorted = false;
  const files: string[] = [];

  const spill = async (): Promise<void> => {
    const batch = lines.sort();
    lines = [];
    length = 0;
    files.push(await writeLines(workspace, batch));
  };

  return {
    add: (line) => {
      lines.push(line);
      isSorted = false;
      length += line.length + 16;
      return length > limit ? spill() : undefined;
    },
    sorted: async function* () {
      if (files.length === 0) {
        if (!isSorted) lines.sort();
        isSorted = true;
        yield* lines;
        return;
      }
      if (lines.length > 0) await spill();
      while (files.length > mergeWidth) {
        files.push(await writeLines(workspace, merge(files.splice(0, mergeWidth))));
      }
      yield* merge(files);
    },
  };
}

/** Whether `one` stands before `other`; the order of all exports. */
export function byCodeUnits(one: string, other: string): number {
  if (one === other) return 0;
  return one < other ? -1 : 1;
}

async function writeLines(
  workspace: Workspace,
  lines: Iterable<string> | AsyncIterable<string>,
): Promise<string> {
  const path = workspace.newFile();
  const file = createTextFile(path, 'set TMPDIR to a folder on another disk');
  for await (const line of lines) file.write(`${line}\n`);
  file.close();
  return path;
}

/** Lines of sorted files, in order. */
async function* merge(paths: readonly string[]): AsyncGenerator<string> {
  const heads: { line: string; rest: AsyncIterator<string> }[] = [];
  for (const path of paths) {
    const rest = readLines(path);
    const first = await rest.next();
    if (first.done !== true) heads.push({ line: first.value, rest });
  }
  while (heads.length > 0) {
    let least = heads[0];
    for (const head of heads) if (least === undefined || head.line < least.line) least = head;
    if (least === undefined) return;
    yield least.line;
    const next = await least.rest.next();
    if (next.done === true) heads.splice(heads.indexOf(least), 1);
    else least.line = next.value;
  }
}

async function* readLines(path: string): AsyncGenerator<string> {
  const stream = createReadStream(path, { encoding: 'utf8', highWaterMark: 64 * 1024 });
  let rest = '';
  for await (const chunk of stream) {
    const text = rest + (chunk as string);
    let from = 0;
    for (let to = text.indexOf('\n'); to !== -1; to = text.indexOf('\n', from)) {
      yield text.slice(from, to);
      from = to + 1;
    }
    rest = text.slice(from);
  }
}
