import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
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

/** A line or record of a file longer than this is an invalid row, so that memory stays flat. */
export const maxRowBytes = 1024 * 1024;

const chunkBytes = 64 * 1024;

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

/** The file's uncompressed bytes; `progress` says what share of the file is read. */
export function openBytes(file: DataFile): { chunks: AsyncIterable<Buffer>; progress: () => number } {
  const { size } = file;
  const stream = createReadStream(file.path, { highWaterMark: chunkBytes });
  const progress = (): number => (size === 0 ? 1 : Math.min(1, stream.bytesRead / size));
  if (file.format !== 'ndjson.gz') return { chunks: readAll(file, stream), progress };
  const gunzip = createGunzip({ chunkSize: chunkBytes });
  stream.on('error', (error) => gunzip.destroy(error));
  gunzip.on('close', () => stream.destroy());
  return { chunks: readAll(file, stream.pipe(gunzip)), progress };
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
      if (isFirst && isGzip(chunk)) {
        throw new SourceError(
          `${file.name} is compressed by gzip: decompress it, or let its name end in .ndjson.gz`,
        );
      }
      isFirst = false;
      yield chunk;
    }
  } catch (error) {
    throw unreadable(file, error);
  }
}

const byteOrderMark = Buffer.from('\uFEFF');

/** As `openBytes`, but without a byte order mark. */
export function openText(file: DataFile): ReturnType<typeof openBytes> {
  const { chunks, progress } = openBytes(file);
  return { chunks: withoutMark(chunks), progress };
}

async function* withoutMark(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let isFirst = true;
  for await (const chunk of chunks) {
    const isMarked = isFirst && chunk.subarray(0, byteOrderMark.length).equals(byteOrderMark);
    yield isMarked ? chunk.subarray(byteOrderMark.length) : chunk;
    isFirst = false;
  }
}

/** Whether text begins with UTF-16's byte order mark, or has a zero in every other byte as ASCII then does. */
function isUtf16([a = 1, b = 1, c = 1, d = 1]: Buffer): boolean {
  if ((a === 0xff && b === 0xfe) || (a === 0xfe && b === 0xff)) return true;
  return (a === 0) !== (b === 0) && (a === 0) === (c === 0) && (b === 0) === (d === 0);
}

function isGzip([a, b]: Buffer): boolean {
  return a === 0x1f && b === 0x8b;
}

function unreadable(file: NamedFile, error: unknown): unknown {
  const code = (error as NodeJS.ErrnoException).code ?? '';
  if (code.startsWith('Z_')) {
    return new SourceError(`${file.name} is not a whole gzip file (${code}): copy or compress it again`);
  }
  if (code === '') return error;
  return new SourceError(`cannot read ${file.name} (${code}): check that it exists and may be read`);
}
