import { isUtf8 } from 'node:buffer';
import { Tokenizer, TokenParser, TokenType } from '@streamparser/json';
import { ProblemError } from '../../contract/problems.ts';
import { maxErrors, nameErrors, replacementErrors } from '../../contract/schemas.ts';
import type { BodyError } from '../../contract/types.gen.ts';
import { yieldingChunks } from '../../lib/time-slices.ts';
import { invalidBody, receiveJson } from '../middleware/json-body.ts';
import { bodyProblem, type BodyReader } from '../middleware/receive-body.ts';

/** The memory that a parsed list takes per byte of its text, measured with two million names of five letters. */
const memoryPerByte = 11;

/**
 * The body of a denylist operation, of at most `limit` bytes, read by one of the functions below. They parse it in time
 * slices: parsing 200,000 properties in one go would block all other requests for up to 0.9 s. They stop at the
 * twentieth error.
 */
export function listBody<List>(parse: (bytes: Buffer) => Promise<List>, limit: number): BodyReader<List> {
  return {
    read: async (request, response, reserve) => {
      const bytes = await receiveJson(request, response, limit);
      reserve?.(bytes.length * memoryPerByte);
      return await parse(bytes);
    },
    maxBytes: () => limit,
  };
}

/** Parses a JSON array of names (contract 4.4 and 4.5). */
export async function parseUsernames(bytes: Buffer): Promise<readonly string[]> {
  const names: string[] = [];
  const errors: BodyError[] = [];
  await readMembers(bytes, 'array', (index, name) => {
    const found = nameErrors(name, `/${index}`);
    if (found.length === 0) names.push(name as string);
    else if (errors.push(...found) >= maxErrors) throw invalidBody(errors);
  });
  if (errors.length > 0) throw invalidBody(errors);
  return names;
}

/**
 * Parses a JSON object of names and their replacements (contract 4.3); their order decides between two bans with the
 * same replacement. A property that is given twice counts once: at its first position, with its last value, as in
 * JSON.parse.
 */
export async function parseReplacements(bytes: Buffer): Promise<ReadonlyMap<string, string>> {
  const replacements = new Map<string, string>();
  const errors = new Map<string, BodyError[]>();
  await readMembers(bytes, 'object', (name, replacement) => {
    const found = replacementErrors(name as string, replacement);
    // An invalid value keeps the position: a later one may replace it.
    replacements.set(name as string, found.length === 0 ? (replacement as string) : '');
    if (found.length > 0) errors.set(name as string, found);
    else if (errors.size > 0) errors.delete(name as string);
    if (errors.size >= maxErrors) throw invalidBody([...errors.values()].flat());
  });
  if (errors.size > 0) throw invalidBody([...errors.values()].flat());
  return replacements;
}

/** Bytes parsed at a time: well below a millisecond's work. */
const sliceBytes = 2048;

/** Longer strings are collected in parts, since a huge one would otherwise take many times its size in memory. */
const stringBufferSize = 2048;

/** No member of a list may be an array or object; one with more tokens than this is not read to its end. */
const maxNestedTokens = 1000;

/**
 * Calls `onMember` for each member of a JSON array or object, in order. Throws an `invalid-json` problem for text that
 * is not JSON (RFC 8259), and `invalid-body` for JSON of another type.
 */
async function readMembers(
  bytes: Buffer,
  type: 'array' | 'object',
  onMember: (key: string | number, value: unknown) => void,
): Promise<void> {
  if (!isUtf8(bytes)) throw bodyProblem('invalid-json', 'is not well-formed UTF-8');
  const wrongType = { path: '', message: `must be an ${type} of strings` };
  const start = type === 'array' ? TokenType.LEFT_BRACKET : TokenType.LEFT_BRACE;
  let isWanted: boolean | undefined;
  let depth = 0;
  let nestedTokens = 0;

  const parser = new TokenParser({ paths: ['$.*'], keepStack: false });
  parser.onValue = ({ key, value }) => {
    if (isWanted && key !== undefined) onMember(key, value);
  };
  const tokenizer = createTokenizer();
  tokenizer.onToken = (token) => {
    isWanted ??= token.token === start;
    if (token.token === TokenType.LEFT_BRACKET || token.token === TokenType.LEFT_BRACE) depth++;
    if (depth > 1 && ++nestedTokens > maxNestedTokens) throw invalidBody([wrongType]);
    parser.write(token);
    if (token.token === TokenType.RIGHT_BRACKET || token.token === TokenType.RIGHT_BRACE) depth--;
  };

  try {
    for await (const [slice] of yieldingChunks(slicesOf(bytes), 1)) if (slice) tokenizer.write(slice);
    tokenizer.end();
  } catch (error) {
    throw error instanceof ProblemError ? error : bodyProblem('invalid-json', 'is not well-formed JSON');
  }
  if (!parser.isEnded) throw bodyProblem('invalid-json', 'is not well-formed JSON');
  if (!isWanted) throw invalidBody([wrongType]);
}

function createTokenizer(): Tokenizer {
  const tokenizer = new Tokenizer({ stringBufferSize, numberBufferSize: stringBufferSize });
  // Its own decoder drops a byte order mark at the start of a string: one user's name would be taken for another's.
  const { bufferedString } = tokenizer as unknown as { bufferedString: object };
  Object.assign(bufferedString, { decoder: new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }) });
  return tokenizer;
}

function* slicesOf(bytes: Buffer): Generator<Buffer, void> {
  for (let at = 0; at < bytes.length; at += sliceBytes) yield bytes.subarray(at, at + sliceBytes);
}
