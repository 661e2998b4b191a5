import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { createGunzip } from 'node:zlib';
import type { Entity } from '../../records/records.ts';
import { SourceError } from '../source.ts';
import type { Position } from '../source.ts';

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
  /** Size, time of the last change and inode. */
  readonly token: string;
}

/** The file's version now. */
export async function fileVersion(file: DataFile): Promise<FileVersion> {
  try {
    const { size, mtimeNs, ino } = await stat(file.path, { bigint: true });
    return { size: Number(size), token: `${size}-${mtimeNs}-${ino}` };
  } catch (error) {
    throw unreadable(file, error);
  }
}

/** A place as a resumable position. */
export function toPosition({ offset, line }: Place, { token }: FileVersion): Position {
  return JSON.stringify([offset, line, token]);
}

/** The place to go on from: the position's, or the beginning if there is none or the file has changed since. */
export function fromPosition(position: Position | undefined, { token }: FileVersion): Place {
  if (position === undefined) return { offset: 0, line: 0 };
  const [offset, line, own] = JSON.parse(position) as [number, number, string];
  return own === token ? { offset, line } : { offset: 0, line: 0 };
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
  let isFirst = true;
  try {
    for await (const chunk of stream) {
      if (isFirst && isUtf16(chunk)) {
        throw new SourceError(
          `${file.name} is UTF-16: convert it to UTF-8 first, such as by iconv -f UTF-16 -t UTF-8`,
        );
      }
      isFirst = false;
      yield chunk;
    }
  } catch (error) {
    throw unreadable(file, error);
  }
}

/** Whether text begins with UTF-16's byte order mark, or has a zero in every other byte as ASCII then does. */
function isUtf16([a = 1, b = 1, c = 1, d = 1]: Buffer): boolean {
  if ((a === 0xff && b === 0xfe) || (a === 0xfe && b === 0xff)) return true;
  return (a === 0) !== (b === 0) && (a === 0) === (c === 0) && (b === 0) === (d === 0);
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
