import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { createGunzip } from 'node:zlib';
import type { Entity } from '../records/records.ts';
import { SourceError } from './source.ts';
import type { Position } from './source.ts';

export interface DataFile {
  readonly path: string;
  /** The name without folders, for positions in reports. */
  readonly name: string;
  readonly entity: Entity;
  readonly format: 'ndjson' | 'ndjson.gz' | 'csv';
}

/** A line or record of a file longer than this is an invalid row, so that memory stays flat. */
export const maxRowBytes = 1024 * 1024;

const chunkBytes = 256 * 1024;

/** A place in a file: bytes (uncompressed) and lines before it. Only good for the version it was taken from. */
export interface Place {
  readonly offset: number;
  readonly line: number;
}

/** What tells one state of a file from another. */
export interface FileVersion {
  readonly size: number;
  readonly modified: number;
}

/** The file's version now. */
export async function fileVersion(file: DataFile): Promise<FileVersion> {
  try {
    const { size, mtimeMs } = await stat(file.path);
    return { size, modified: Math.floor(mtimeMs) };
  } catch (error) {
    throw unreadable(file, error);
  }
}

/** A place as a resumable position. */
export function toPosition(place: Place, version: FileVersion): Position {
  return JSON.stringify([place.offset, place.line, version.size, version.modified]);
}

/** The place to go on from: the position's, or the beginning if there is none or the file has changed since. */
export function fromPosition(position: Position | undefined, version: FileVersion): Place {
  if (position === undefined) return { offset: 0, line: 0 };
  const [offset = 0, line = 0, size, modified] = JSON.parse(position) as number[];
  return size === version.size && modified === version.modified ? { offset, line } : { offset: 0, line: 0 };
}

/** The file's uncompressed bytes from the offset on; `consumed` tells how many bytes of the file itself are read. */
export function openBytes(
  file: DataFile,
  offset: number,
): { chunks: AsyncIterable<Buffer>; consumed: () => number } {
  const start = file.format === 'ndjson.gz' ? 0 : offset;
  const stream = createReadStream(file.path, { start, highWaterMark: chunkBytes });
  const consumed = (): number => start + stream.bytesRead;
  if (file.format !== 'ndjson.gz') return { chunks: readAll(file, stream), consumed };
  const gunzip = createGunzip({ chunkSize: chunkBytes });
  stream.on('error', (error) => gunzip.destroy(error));
  gunzip.on('close', () => stream.destroy());
  return { chunks: skip(readAll(file, stream.pipe(gunzip)), offset), consumed };
}

async function* readAll(file: DataFile, stream: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  try {
    yield* stream;
  } catch (error) {
    throw unreadable(file, error);
  }
}

async function* skip(chunks: AsyncIterable<Buffer>, count: number): AsyncGenerator<Buffer> {
  let left = count;
  for await (const chunk of chunks) {
    if (left < chunk.length) yield left === 0 ? chunk : chunk.subarray(left);
    left = Math.max(0, left - chunk.length);
  }
}

function unreadable(file: DataFile, error: unknown): unknown {
  const code = (error as NodeJS.ErrnoException).code ?? '';
  if (code.startsWith('Z_')) {
    return new SourceError(`${file.name} is not a whole gzip file (${code}): copy or compress it again`);
  }
  if (code === '') return error;
  return new SourceError(`cannot read ${file.name} (${code}): check that it exists and may be read`);
}
