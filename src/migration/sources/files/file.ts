import { createReadStream, type ReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { pipeline } from 'node:stream';
import { createGunzip } from 'node:zlib';
import type { Entity } from '../../records/records.ts';
import { SourceError } from '../source.ts';

export interface NamedFile {
  readonly path: string;
  /** The name without folders, for positions in reports. */
  readonly name: string;
  readonly entity: Entity;
  readonly format: 'ndjson' | 'ndjson.gz' | 'csv';
}

const chunkBytes = 1024 * 1024;

/** One state of a file. */
export interface DataFile extends NamedFile {
  readonly size: number;
  /** Identifies the state: size, time of the last change and inode. */
  readonly version: string;
}

/** The file as it is now. */
export async function lookAt(file: NamedFile): Promise<DataFile> {
  try {
    const stats = await stat(file.path, { bigint: true });
    if (!stats.isFile())
      throw new SourceError(`${file.name} is not a regular file: put the records into one`);
    const { size, mtimeNs, ino } = stats;
    return { ...file, size: Number(size), version: `${size}-${mtimeNs}-${ino}` };
  } catch (error) {
    throw unreadable(file, error);
  }
}

/**
 * The file's uncompressed bytes, without a byte order mark unless it `keepsMark`; `progress` is the share of the file that
 * was read, and stays below 1, since what was read ahead has not been handed on.
 */
export function openFile(file: DataFile, { keepsMark = false } = {}) {
  const stream = createReadStream(file.path, { highWaterMark: chunkBytes });
  const progress = (): number => Math.min(0.99, stream.bytesRead / file.size);
  const bytes = file.format === 'ndjson.gz' ? decompress(file, stream) : stream;
  return { chunks: readAll(file, bytes, keepsMark), progress };
}

async function* decompress(file: DataFile, stream: ReadStream): AsyncGenerator<Buffer> {
  const gunzip = createGunzip({ chunkSize: chunkBytes });
  yield* pipeline(stream, gunzip, () => {}) as AsyncIterable<Buffer>;
  // zlib takes a zero byte after a member for the end of the file.
  if (gunzip.bytesWritten >= file.size) return;
  throw new SourceError(
    `${file.name} has bytes after the end of its compressed data: copy or compress it again`,
  );
}

async function* readAll(
  file: DataFile,
  stream: AsyncIterable<Buffer>,
  keepsMark: boolean,
): AsyncGenerator<Buffer> {
  let isFirst = true;
  try {
    for await (const chunk of stream) {
      if (isFirst) checkStart(file, chunk);
      const isMarked = isFirst && !keepsMark && chunk.subarray(0, 3).equals(byteOrderMark);
      isFirst = false;
      yield isMarked ? chunk.subarray(3) : chunk;
    }
  } catch (error) {
    throw unreadable(file, error);
  }
}

const byteOrderMark = Buffer.from('\uFEFF');

function checkStart({ name }: DataFile, start: Buffer): void {
  if (isUtf16(start))
    throw new SourceError(
      `${name} is UTF-16: convert it to UTF-8 first, such as with iconv -f UTF-16 -t UTF-8`,
    );
  if (start[0] === 0x1f && start[1] === 0x8b)
    throw new SourceError(`${name} is compressed by gzip: decompress it, or end its name in .ndjson.gz`);
}

/** Whether text begins with UTF-16's byte order mark, or has a zero in every other byte as ASCII then does. */
function isUtf16([a = 1, b = 1, c = 1, d = 1]: Buffer): boolean {
  if ((a === 0xff && b === 0xfe) || (a === 0xfe && b === 0xff)) return true;
  return (a === 0) !== (b === 0) && (a === 0) === (c === 0) && (b === 0) === (d === 0);
}

function unreadable(file: NamedFile, error: unknown): unknown {
  const code = (error as NodeJS.ErrnoException).code ?? '';
  if (code.startsWith('Z_')) {
    return new SourceError(`${file.name} is not a whole gzip file (${code}): copy or compress it again`);
  }
  if (code === '') return error;
  return new SourceError(`cannot read ${file.name} (${code}): check that it exists and may be read`);
}
