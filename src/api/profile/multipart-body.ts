import { isUtf8 } from 'node:buffer';
import type { Writable } from 'node:stream';
import { promisify } from 'node:util';
import multer from 'multer';
import type { Request, Response } from 'express';
import { ProblemError } from '../../contract/problems.ts';
import { receiveBody, tooLarge, utf8Charset, type BodyRules } from '../middleware/receive-body.ts';

/** The largest picture file that a client may send, in bytes. */
const maxPictureBytes = 5 * 1024 * 1024;

/** The longest body: its other parts are small. */
export const maxUploadBytes = maxPictureBytes + 2 * 1024 * 1024;

const rules: BodyRules = {
  limit: maxUploadBytes,
  tooLargeDetail: `The body is larger than ${maxUploadBytes} bytes; the picture in it may have at most ${maxPictureBytes}.`,
  unreadable: 'invalid-multipart',
};

/** The longest text part, in bytes. */
const maxTextBytes = 64 * 1024;

/** The text parts that are read; all others are ignored. */
const textParts = [
  'username',
  'profilePicture',
  'profilePictureObjectDefinitionId',
  'avatarObjectDefinitionId',
];

/**
 * Reads a multipart body with exactly one file, under any field name (contract 4.2), and the text parts that came with
 * it, if any. Throws `payload-too-large` or `invalid-multipart`.
 */
export async function readUpload(request: Request, response: Response) {
  const body = await receiveBody(request, response, rules);
  // Empty parameters are allowed (RFC 9110 §5.6.6), but busboy takes them for malformed.
  request.headers['content-type'] = request.headers['content-type']?.replaceAll(/;\s*(?=;|$)/g, '');
  const boundary = boundaryOf(request);
  const parts = await parse(request, response, body);
  // Multer reads no body whose Content-Type it cannot parse.
  if (request.files === undefined && body.length > 0) throw invalid('The Content-Type is malformed.');
  const texts = readTexts(body, boundary, parts);
  const [file, another] = (request.files ?? []) as Express.Multer.File[];
  if (file === undefined) throw invalid('The multipart body holds no file; a file needs a filename.');
  if (another !== undefined) throw invalid('The multipart body holds more than one file.');
  return { file: file.buffer, fields: readFields(texts) };
}

/** RFC 2046 §5.1.1. Searching for a long boundary whose beginning occurs in the body many times would be slow. */
const maxBoundaryLength = 70;

/** The boundary that separates the parts (RFC 2046 §5.1.1). */
function boundaryOf({ headers }: Request): string {
  const [, quoted, plain] = /;\s*boundary=(?:"([^"]+)"|([^;\s]+))/i.exec(headers['content-type'] ?? '') ?? [];
  const boundary = quoted ?? plain;
  if (boundary === undefined) throw invalid('The Content-Type has no boundary.');
  if (boundary.length > maxBoundaryLength) {
    throw invalid(`The boundary in the Content-Type has more than ${maxBoundaryLength} characters.`);
  }
  return boundary;
}

/** What the headers of a part say. */
interface PartHead {
  /** Absent or empty if the part is no file. */
  filename?: string;
  /** The Content-Transfer-Encoding, in lower case. */
  encoding: string;
}

/** One part as multer read it; without text if it took the part for a file. */
type ParsedPart = PartHead & { name: string; text?: string };

/** Parses a body into the request. Returns its parts in order, without those that have no readable name. */
async function parse(request: Request, response: Response, body: Buffer): Promise<ParsedPart[]> {
  const parts: ParsedPart[] = [];
  const parser = multer({
    storage: multer.memoryStorage(),
    defParamCharset: 'utf8',
    limits: {
      fileSize: maxPictureBytes,
      // Forms may have further file inputs that were left empty.
      files: 16,
      fields: 16,
      parts: 17,
      // Multer makes arrays and objects of names such as a[1][b], also of those that are ignored.
      fieldArrayIndexLimit: 100,
      fieldNestingDepth: 8,
      // Any name: the headers of a part have at most 16 KiB.
      fieldNameSize: 16 * 1024,
      fieldSize: maxTextBytes,
      headerPairs: 100,
    },
    streamHandler: (_request: Request, stream: Writable) => {
      stream.on('file', (name: string, _file: unknown, head: PartHead) => {
        parts.push({ ...head, name });
      });
      stream.on('field', (name: string, text: string, head: PartHead) => {
        parts.push({ ...head, name, text });
      });
      stream.end(body);
    },
  } as multer.Options).any();
  await promisify(parser)(request, response).catch((error: Error) => {
    if (error instanceof multer.MulterError && error.code === 'LIMIT_FILE_SIZE') {
      throw tooLarge({ ...rules, tooLargeDetail: `The picture is larger than ${maxPictureBytes} bytes.` });
    }
    throw invalid(`The multipart body cannot be read: ${error.message}.`);
  });
  return parts;
}

/**
 * The text parts by name; the last of a name counts. Refuses a body that multer accepted but did not read faithfully: it
 * skips parts without a name, drops text in a charset that it does not know, and replaces bytes that are not UTF-8.
 */
function readTexts(body: Buffer, boundary: string, parsed: readonly ParsedPart[]): Map<string, string> {
  const texts = new Map<string, string>();
  const sent = [...partsOf(body, `--${boundary}`)];
  if (sent.length !== parsed.length) {
    throw invalid('A part is not readable: it needs a Content-Disposition of form-data, with a name.');
  }
  for (const [index, { headers, content }] of sent.entries()) {
    const part = parsed[index];
    if (part === undefined) continue;
    const encoding = part.encoding.trim().slice(0, 40);
    if (!/^(7bit|8bit|binary)$/.test(encoding)) {
      throw invalid(`A part has the Content-Transfer-Encoding ${encoding}; send the part unencoded.`);
    }
    if (part.filename) continue;
    // A file input that was left empty.
    if (content.length === 0 && /;\s*filename\*?=/i.test(headers)) continue;
    const charset = /^content-type:.*;\s*charset="?([^";\s]+)/im.exec(headers)?.[1];
    if (charset !== undefined && !utf8Charset.test(charset)) {
      throw invalid(`A text part is in the charset ${charset.slice(0, 40)}; send UTF-8.`);
    }
    if (!isUtf8(content)) throw invalid('A text part is not well-formed UTF-8; a file needs a filename.');
    const text = content.toString();
    // Multer takes application/octet-stream for a file even without a filename, and then skips it.
    if ((part.text ?? text) !== text) throw invalid('A text part is not readable as UTF-8 text.');
    if (content.length > maxTextBytes) throw invalid(`A text part is larger than ${maxTextBytes} bytes.`);
    texts.set(part.name, text);
  }
  return texts;
}

/** The parts of a multipart body (RFC 2046 §5.1.1), up to the final boundary. */
function* partsOf(body: Buffer, delimiter: string): Generator<{ headers: string; content: Buffer }, void> {
  const first = body.indexOf(`\r\n${delimiter}`);
  let start = body.indexOf(delimiter) === 0 ? 0 : first === -1 ? -1 : first + 2;
  while (start !== -1) {
    const begin = start + delimiter.length;
    const end = body.indexOf(`\r\n${delimiter}`, begin);
    if (end === -1 || body.toString('latin1', begin, begin + 2) === '--') return;
    const split = body.indexOf('\r\n\r\n', begin);
    const isSplit = split !== -1 && split < end;
    yield {
      headers: body.toString('latin1', begin, isSplit ? split : end),
      content: isSplit ? body.subarray(Math.min(split + 4, end), end) : Buffer.alloc(0),
    };
    start = end + 2;
  }
}

/** The text parts as a JSON body would have them; undefined if there are none. */
function readFields(texts: ReadonlyMap<string, string>): Record<string, unknown> | undefined {
  const fields: Record<string, unknown> = {};
  for (const name of textParts) {
    const text = texts.get(name);
    if (text !== undefined) fields[name] = name.endsWith('Id') ? parseJsonPart(name, text) : text;
  }
  if (Object.keys(fields).length === 0) return undefined;
  if (fields['profilePictureObjectDefinitionId'] !== undefined) {
    throw invalid('A file and profilePictureObjectDefinitionId both set the picture: send one of them.');
  }
  return fields;
}

function parseJsonPart(name: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw invalid(`The part ${name} is not well-formed JSON.`);
  }
}

function invalid(detail: string): ProblemError {
  return new ProblemError('invalid-multipart', detail);
}
