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
const maxInMemory = 512 * 1024;

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
  let inMemory = 0;
  let inFile = 0;
  let file: FileHandle | undefined;
  try {
    for await (const chunk of source) {
      if (inMemory + inFile + chunk.length > limit) throw tooLarge();
      if (file === undefined && inMemory + chunk.length <= maxInMemory) {
        chunks.push(chunk);
        inMemory += chunk.length;
      } else {
        file ??= await openUnnamed();
        await file.appendFile(chunk);
        inFile += chunk.length;
      }
    }
  } catch (error) {
    await file?.close();
    throw error;
  }
  const beginning = Buffer.concat(chunks, inMemory);
  async function* parts(): AsyncGenerator<Buffer, void> {
    if (inMemory > 0) yield beginning;
    if (file !== undefined) yield* partsOf(file, inFile);
  }
  return {
    bytes: inMemory + inFile,
    parts,
    toSend: () => (file === undefined ? beginning : Readable.from(parts(), { objectMode: false })),
    discard: async () => await file?.close(),
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
