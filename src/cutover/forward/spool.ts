import { randomUUID } from 'node:crypto';
import { open, rm, type FileHandle } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';

/** What was received of a body. It can be read as often as wanted, until it is discarded. */
export interface SpooledBody {
  bytes: number;
  /** From its beginning. */
  parts: () => AsyncGenerator<Buffer, void>;
  /** For sending: the bytes themselves, or a stream of them. */
  toSend: () => Buffer | Readable;
  discard: () => Promise<void>;
}

/** This much of a body is kept in memory; the rest goes to a file. */
const inMemory = 1024 * 1024;

/**
 * Receives a body, and throws `tooLarge` beyond `limit` bytes. Most of a long one goes to a temporary file, which is
 * unlinked once it is open, so that a kill leaves nothing behind.
 */
export async function spool(
  source: AsyncIterable<Buffer>,
  limit: number,
  tooLarge: () => Error,
): Promise<SpooledBody> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  let file: FileHandle | undefined;
  try {
    for await (const chunk of source) {
      bytes += chunk.length;
      if (bytes > limit) throw tooLarge();
      if (file === undefined) {
        chunks.push(chunk);
        if (bytes <= inMemory) continue;
        file = await openUnnamed();
        for (const part of chunks.splice(0)) await file.appendFile(part);
      } else {
        await file.appendFile(chunk);
      }
    }
  } catch (error) {
    await file?.close();
    throw error;
  }
  return file === undefined ? inBuffer(Buffer.concat(chunks, bytes)) : inFile(file, bytes);
}

function inBuffer(buffer: Buffer): SpooledBody {
  return {
    bytes: buffer.length,
    parts: async function* () {
      if (buffer.length > 0) yield buffer;
    },
    toSend: () => buffer,
    discard: () => Promise.resolve(),
  };
}

function inFile(file: FileHandle, bytes: number): SpooledBody {
  return {
    bytes,
    parts: () => partsOf(file, bytes),
    toSend: () => Readable.from(partsOf(file, bytes), { objectMode: false }),
    discard: () => file.close(),
  };
}

/** By position, so that several readers do not disturb each other. */
async function* partsOf(file: FileHandle, bytes: number): AsyncGenerator<Buffer, void> {
  for (let position = 0; position < bytes;) {
    const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(64 * 1024), 0, 64 * 1024, position);
    if (bytesRead === 0) throw new Error('the temporary file of a body is shorter than the body');
    position += bytesRead;
    yield buffer.subarray(0, bytesRead);
  }
}

async function openUnnamed(): Promise<FileHandle> {
  const path = join(tmpdir(), `profile-bridge-${randomUUID()}`);
  const file = await open(path, 'wx+', 0o600);
  await rm(path);
  return file;
}
