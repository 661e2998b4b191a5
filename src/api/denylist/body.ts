import type { Request, Response } from 'express';
import { problem, ProblemError } from '../../contract/problems.ts';
import {
  maxErrors,
  validateReplacements,
  validateUsernames,
  type Validated,
} from '../../contract/schemas.ts';
import type { BodyError } from '../../contract/types.gen.ts';
import { createSketch } from '../../lib/sketch.ts';
import { yieldingChunks } from '../../lib/time-slices.ts';
import { NotFlat, stringsIn } from './flat-json.ts';
import { createBodyReader, parseJson } from '../middleware/json-body.ts';

/** Reads the bodies of the denylist operations. What they resolve to can be gone through again and again. */
export interface ListReader {
  usernames: (request: Request, response: Response) => Promise<Iterable<string>>;
  /** Each name once, in the order in which they stand in the body, which decides who gets what two want. */
  replacements: (request: Request, response: Response) => Promise<Iterable<readonly [string, string]>>;
}

/**
 * Reads lists of at most `limit` bytes. A list stays in memory as the bytes that came, and is read from them in turns
 * as often as it is needed: to parse 200,000 properties at one go would stop every other request for 0.2 to 0.9 s,
 * and to hand them over from another thread would cost that thread's memory, and a protocol. Only what is no list of
 * strings, or both wrong and given twice, is left to the plain parser, which says what it is.
 */
export function createListReader(limit: number): ListReader {
  const readBytes = createBodyReader(limit);
  return {
    usernames: async (request, response) => {
      const bytes = await readBytes(request, response);
      const names = { [Symbol.iterator]: () => stringsIn(bytes, '[') };
      const errors = await ifFlat(errorsAmong(names));
      if (errors === undefined) return accept(validateUsernames(parseJson(bytes)));
      return errors.length === 0 ? names : accept({ ok: false, errors });
    },
    replacements: async (request, response) => {
      const bytes = await readBytes(request, response);
      const pairs = { [Symbol.iterator]: () => pairsIn(bytes) };
      const wrong = await ifFlat(wrongAmong(pairs));
      const twice = wrong !== undefined && (await hasTwice(pairs));
      if (wrong?.length === 0) return twice ? await toMap(pairs) : pairs;
      // The order of the errors is that of an object's properties.
      const object: unknown = wrong === undefined || twice ? parseJson(bytes) : Object.fromEntries(wrong);
      return Object.entries(accept(validateReplacements(object)));
    },
  };
}

function* pairsIn(bytes: Uint8Array): Generator<[string, string], void> {
  let name: string | undefined;
  for (const string of stringsIn(bytes, '{')) {
    if (name === undefined) {
      name = string;
    } else {
      yield [name, string];
      name = undefined;
    }
  }
}

/** Undefined where the text turns out to be anything else than one list of strings. */
async function ifFlat<Result>(reading: Promise<Result>): Promise<Result | undefined> {
  try {
    return await reading;
  } catch (error) {
    if (error instanceof NotFlat) return undefined;
    throw error;
  }
}

async function errorsAmong(names: Iterable<string>): Promise<BodyError[]> {
  const errors: BodyError[] = [];
  let position = 0;
  for await (const chunk of yieldingChunks(names)) {
    const checked = validateUsernames(chunk);
    for (const { path, message } of checked.ok ? [] : checked.errors) {
      if (errors.length < maxErrors) errors.push({ path: `/${position + Number(path.slice(1))}`, message });
    }
    position += chunk.length;
  }
  return errors;
}

async function wrongAmong(
  pairs: Iterable<readonly [string, string]>,
): Promise<(readonly [string, string])[]> {
  const wrong: (readonly [string, string])[] = [];
  for await (const chunk of yieldingChunks(pairs)) {
    if (!validateUsernames(chunk.flat()).ok) {
      wrong.push(...chunk.filter((pair) => !validateUsernames(pair).ok));
    }
  }
  return wrong;
}

/** Whether a property is given twice; it may seem so by chance. */
async function hasTwice(pairs: Iterable<readonly [string, string]>): Promise<boolean> {
  const seen = createSketch();
  for await (const chunk of yieldingChunks(pairs)) if (chunk.some(([name]) => seen.add(name))) return true;
  return false;
}

/** A property given twice counts once, by its last value. */
async function toMap(pairs: Iterable<readonly [string, string]>): Promise<Map<string, string>> {
  const map = new Map<string, string>();
  for await (const chunk of yieldingChunks(pairs)) for (const [name, value] of chunk) map.set(name, value);
  return map;
}

function accept<Value>(checked: Validated<Value>): Value {
  if (checked.ok) return checked.value;
  throw new ProblemError(
    problem('invalid-body', 'The body does not follow the contract.', { errors: checked.errors }),
  );
}
