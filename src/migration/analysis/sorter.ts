import { closeSync, openSync, readSync } from 'node:fs';
import { StringDecoder } from 'node:string_decoder';
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
  add: (line: string) => void;
  /** All lines in code-unit order; can be called again. Nothing may be added while they are read. */
  sorted: () => Iterable<string>;
}

export function createSorter(workspace: Workspace, limit = memoryLimit): Sorter {
  let lines: string[] = [];
  let length = 0;
  let isSorted = false;
  const files: string[] = [];

  const spill = (): void => {
    const batch = lines.sort();
    lines = [];
    length = 0;
    files.push(writeLines(workspace, batch));
  };

  return {
    add: (line) => {
      lines.push(line);
      isSorted = false;
      length += line.length + 16;
      if (length > limit) spill();
    },
    sorted: () => {
      if (files.length === 0) {
        if (!isSorted) lines.sort();
        isSorted = true;
        return lines;
      }
      if (lines.length > 0) spill();
      while (files.length > mergeWidth) {
        files.push(writeLines(workspace, merge(files.splice(0, mergeWidth))));
      }
      return merge(files);
    },
  };
}

/** Whether `one` stands before `other`; the order of all exports. */
export function byCodeUnits(one: string, other: string): number {
  if (one === other) return 0;
  return one < other ? -1 : 1;
}

function writeLines(workspace: Workspace, lines: Iterable<string>): string {
  const path = workspace.newFile();
  const file = createTextFile(path, 'set TMPDIR to a folder on another disk');
  for (const line of lines) file.write(`${line}\n`);
  file.close();
  return path;
}

/** Lines of sorted files, in order. */
function* merge(paths: readonly string[]): Generator<string> {
  const heads: { lines: string[]; at: number; line: string; rest: Iterator<string[]> }[] = [];
  try {
    for (const path of paths) {
      const rest = readLines(path);
      const lines: string[] = rest.next().value ?? [];
      heads.push({ lines, at: 0, line: lines[0] ?? '', rest });
    }
    for (let [least] = heads; least !== undefined; [least] = heads) {
      for (const head of heads) if (head.line < least.line) least = head;
      yield least.line;
      least.at += 1;
      if (least.at === least.lines.length) {
        least.lines = (least.rest.next().value as string[] | undefined) ?? [];
        least.at = 0;
      }
      const next = least.lines[least.at];
      if (next === undefined) heads.splice(heads.indexOf(least), 1);
      else least.line = next;
    }
  } finally {
    for (const { rest } of heads) rest.return?.();
  }
}

/** Lines of a file, some at a time. */
function* readLines(path: string): Generator<string[], undefined> {
  const file = openSync(path, 'r');
  const block = Buffer.allocUnsafe(64 * 1024);
  const decoder = new StringDecoder('utf8');
  try {
    let rest = '';
    for (let read = readSync(file, block); read > 0; read = readSync(file, block)) {
      const lines = (rest + decoder.write(block.subarray(0, read))).split('\n');
      rest = lines.pop() ?? '';
      if (lines.length > 0) yield lines;
    }
  } finally {
    closeSync(file);
  }
}
