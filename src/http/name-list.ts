import type { Request, Response } from 'express';
import { problem, ProblemError } from '../contract/problems.ts';
import { validateReplacements, validateUsernames, type Validated } from '../contract/schemas.ts';
import { createSketch } from '../domain/sketch.ts';
import { inTurns } from '../turns.ts';
import { stringsIn } from './flat-json.ts';
import { createBodyReader, parseJson } from './json-body.ts';

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
 * valid names, each given once, is left to the plain parser, which knows what is wrong with it.
 */
export function createListReader(limit: number): ListReader {
  const readBytes = createBodyReader(limit);
  return {
    usernames: async (request, response) => {
      const bytes = await readBytes(request, response);
      const names = { [Symbol.iterator]: () => stringsIn(bytes, '[') };
      return (await areNames(names)) ? names : accept(validateUsernames(parseJson(bytes)));
    },
    replacements: async (request, response) => {
      const bytes = await readBytes(request, response);
      const pairs = { [Symbol.iterator]: () => pairsIn(bytes) };
      if (!(await areNames(stringsIn(bytes, '{')))) {
        return Object.entries(accept(validateReplacements(parseJson(bytes))));
      }
      return (await hasTwice(pairs)) ? await toMap(pairs) : pairs;
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

async function areNames(strings: Iterable<string>): Promise<boolean> {
  try {
    for await (const chunk of inTurns(strings)) if (!validateUsernames(chunk).ok) return false;
    return true;
  } catch {
    // Whatever cannot be read: the plain parser says why.
    return false;
  }
}

/** Whether a property is given twice; it may seem so by chance. */
async function hasTwice(pairs: Iterable<readonly [string, string]>): Promise<boolean> {
  const seen = createSketch();
  for await (const chunk of inTurns(pairs)) if (chunk.some(([name]) => seen.add(name))) return true;
  return false;
}

/** A property given twice counts once, by its last value. */
async function toMap(pairs: Iterable<readonly [string, string]>): Promise<Map<string, string>> {
  const map = new Map<string, string>();
  for await (const chunk of inTurns(pairs)) for (const [name, value] of chunk) map.set(name, value);
  return map;
}

function accept<Value>(checked: Validated<Value>): Value {
  if (checked.ok) return checked.value;
  throw new ProblemError(
    problem('invalid-body', 'The body does not follow the contract.', { errors: checked.errors }),
  );
}
