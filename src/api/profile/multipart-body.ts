import multer from 'multer';
import type { Request, Response } from 'express';
import { problem, ProblemError } from '../../contract/problems.ts';
import { readWithin } from '../middleware/body-size.ts';

/** The largest picture file a client may send, in bytes: this very size still passes. */
const maxPictureBytes = 5 * 1024 * 1024;

/** The largest body around it: what surrounds the file is small. */
const maxUploadBytes = maxPictureBytes + 2 * 1024 * 1024;

/** A picture file and the text parts that came with it. */
export interface Upload {
  file: Buffer;
  fields: Record<string, unknown>;
}

/** The text parts that mean something; what else a client sends is ignored. */
const textParts = [
  'username',
  'profilePicture',
  'profilePictureObjectDefinitionId',
  'avatarObjectDefinitionId',
];

const receive = multer({
  storage: multer.memoryStorage(),
  defParamCharset: 'utf8',
  limits: {
    // Whether a file of the very limit passes has changed between releases of the parser: see below.
    fileSize: maxPictureBytes + 1,
    files: 1,
    fields: 16,
    parts: 17,
    fieldNameSize: 100,
    fieldSize: 64 * 1024,
    headerPairs: 100,
  },
}).any();

/**
 * Reads a multipart body with exactly one file, under any field name, into memory (contract 4.2). Refuses with
 * `payload-too-large` or `invalid-multipart`.
 */
export async function readUpload(request: Request, response: Response): Promise<Upload> {
  const read = (): Promise<void> =>
    new Promise((resolve, reject) => {
      receive(request, response, (error?: unknown) => {
        if (error === undefined || error === null) resolve();
        else reject(toUploadProblem(error));
      });
    });
  await readWithin(request, maxUploadBytes, tooLarge, read);
  const [file] = (request.files ?? []) as Express.Multer.File[];
  if (file === undefined) throw invalid('The multipart body holds no file.');
  if (file.size > maxPictureBytes) throw tooLarge();
  return { file: file.buffer, fields: readFields((request.body ?? {}) as Record<string, unknown>) };
}

function readFields(body: Record<string, unknown>): Record<string, unknown> {
  const fields: Record<string, unknown> = {};
  for (const name of textParts) {
    if (!Object.hasOwn(body, name)) continue;
    const text = body[name];
    fields[name] = name.endsWith('Id') && typeof text === 'string' ? parsePart(name, text) : text;
  }
  if (fields['profilePictureObjectDefinitionId'] !== undefined) {
    throw invalid('A file and profilePictureObjectDefinitionId both set the picture: send one of them.');
  }
  return fields;
}

function parsePart(name: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw invalid(`The part ${name} is not well-formed JSON.`);
  }
}

function toUploadProblem(error: unknown): unknown {
  if (error instanceof multer.MulterError) {
    if (error.code === 'LIMIT_FILE_SIZE') return tooLarge();
    if (error.code === 'LIMIT_FILE_COUNT') return invalid('The multipart body holds more than one file.');
    return invalid(`The multipart body is not usable: ${error.message}.`);
  }
  // The parser beneath multer throws plain errors for a body it cannot read.
  return error instanceof Error && !('syscall' in error) ? invalid('The multipart body is broken.') : error;
}

function tooLarge(): ProblemError {
  return new ProblemError(
    problem('payload-too-large', `The picture is larger than ${maxPictureBytes} bytes.`),
  );
}

function invalid(detail: string): ProblemError {
  return new ProblemError(problem('invalid-multipart', detail));
}
