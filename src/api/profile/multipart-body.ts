import type { Writable } from 'node:stream';
import multer from 'multer';
import type { Request, Response } from 'express';
import { ProblemError } from '../../contract/problems.ts';
import { createBodyReceiver } from '../middleware/receive-body.ts';
import { recordParts, textPartFault } from './text-parts.ts';

/** The largest picture file that a client may send, in bytes. */
const maxPictureBytes = 5 * 1024 * 1024;

/** The largest body around it; the other parts are small. */
const maxUploadBytes = maxPictureBytes + 2 * 1024 * 1024;

/** A picture file and the text parts that came with it. */
export interface Upload {
  file: Buffer;
  fields: Record<string, unknown>;
}

/** The text parts that are read; all others are ignored. */
const textParts = [
  'username',
  'profilePicture',
  'profilePictureObjectDefinitionId',
  'avatarObjectDefinitionId',
];

/** The parser sets `body` to something else. */
type WithBytes = Request & { bytes?: Buffer; parts?: ReturnType<typeof recordParts> };

const parse = multer({
  storage: multer.memoryStorage(),
  defParamCharset: 'utf8',
  limits: {
    // Releases of the parser differ on whether a file of exactly the limit passes; the size is checked below.
    fileSize: maxPictureBytes + 1,
    files: 1,
    fields: 16,
    parts: 17,
    fieldNameSize: 100,
    fieldSize: 64 * 1024,
    headerPairs: 100,
  },
  // The whole body has been received by then.
  streamHandler: (request: WithBytes, parser: Writable) => {
    request.parts = recordParts(parser);
    parser.end(request.bytes);
  },
} as multer.Options).any();

const receive = createBodyReceiver(maxUploadBytes, {
  tooLarge,
  unreadable: (reason) => invalid(`The body ${reason}.`),
});

/**
 * Reads a multipart body with exactly one file, under any field name (contract 4.2). Throws `payload-too-large` or
 * `invalid-multipart`.
 */
export async function readUpload(request: Request, response: Response): Promise<Upload> {
  const body = await receive(request, response);
  const boundary = boundaryOf(request);
  await new Promise<void>((resolve, reject) => {
    (request as WithBytes).bytes = body;
    parse(request, response, (error?: unknown) => {
      if (error === undefined || error === null) resolve();
      else reject(toUploadProblem(error));
    });
  });
  const fault = textPartFault(body, boundary, (request as WithBytes).parts ?? []);
  if (fault !== undefined) throw invalid(fault);
  const [file] = (request.files ?? []) as Express.Multer.File[];
  if (file === undefined) throw invalid('The multipart body holds no file.');
  if (file.size > maxPictureBytes) throw tooLarge();
  return { file: file.buffer, fields: readFields((request.body ?? {}) as Record<string, unknown>) };
}

/** The boundary that separates the parts (RFC 2046 §5.1.1). */
function boundaryOf({ headers }: Request): string {
  const [, quoted, plain] = /;\s*boundary=(?:"([^"]+)"|([^;\s]+))/i.exec(headers['content-type'] ?? '') ?? [];
  const boundary = quoted ?? plain;
  if (boundary === undefined) throw invalid('The Content-Type has no boundary.');
  return boundary;
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
    switch (error.code as string) {
      case 'LIMIT_FILE_SIZE':
        return tooLarge();
      case 'LIMIT_FILE_COUNT':
        return invalid('The multipart body holds more than one file.');
      case 'MISSING_FIELD_NAME':
        return invalid('A part has no name in its Content-Disposition.');
      default:
        return invalid(`The multipart body is not accepted: ${error.message}.`);
    }
  }
  // The parser that multer uses throws plain errors for a body that it cannot read.
  if (!(error instanceof Error) || 'syscall' in error) return error;
  if (/end of (form|file)/.test(error.message)) return invalid('The multipart body has no final boundary.');
  if (error.message.includes('part header'))
    return invalid('A part of the multipart body has malformed headers.');
  return invalid('The multipart body is malformed.');
}

function tooLarge(): ProblemError {
  return new ProblemError('payload-too-large', `The picture is larger than ${maxPictureBytes} bytes.`);
}

function invalid(detail: string): ProblemError {
  return new ProblemError('invalid-multipart', detail);
}
