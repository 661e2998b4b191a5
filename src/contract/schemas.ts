import { Ajv2020, type ErrorObject } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import { maxNameLength, nameFault } from '../domain/usernames.ts';
import { contractDocument } from './document.ts';
import type { BodyError } from './types.gen.ts';

/** The most errors that a response lists. */
export const maxErrors = 20;
const maxPointerPart = 64;

const ajv = new Ajv2020({ allErrors: true, verbose: true, strict: true, validateSchema: false });
formats.default(ajv);
// The document itself is not a schema; its schemas are reached through it.
ajv.addVocabulary(Object.keys(contractDocument()));
ajv.addSchema(contractDocument(), 'contract');
const isProfileChange = ajv.compile({ $ref: 'contract#/components/schemas/ProfileChange' });
const isUsername = ajv.compile({ $ref: 'contract#/components/schemas/Username' });

/** What is wrong with a JSON body of PUT profile (contract 4.2), or the text parts of an upload. */
export function profileChangeErrors(body: unknown): BodyError[] {
  if (isProfileChange(body)) return [];
  return bodyErrors(isProfileChange.errors ?? []);
}

/** What is wrong with a name of a list (contract 4.4 and 4.5) at `path` of the body; empty if it is valid. */
export function nameErrors(name: unknown, path: string): BodyError[] {
  return nameFaults(name).map((message) => ({ path, message }));
}

/** What is wrong with one property of a ban (contract 4.3): its name, its value, or both. */
export function replacementErrors(banned: string, replacement: unknown): BodyError[] {
  const messages = [...nameFaults(banned).map((fault) => `its name ${fault}`), ...nameFaults(replacement)];
  return messages.map((message) => ({ path: `/${pointerPart(banned)}`, message }));
}

/** What is wrong with one name: one fault at most. */
function nameFaults(name: unknown): string[] {
  // The schema's pattern takes more than 100 ms to match a name of 15 MB. A code point is at most two code units.
  if (typeof name === 'string' && name.length > 2 * maxNameLength) return [lengthMessage(maxNameLength)];
  if (isUsername(name)) return [];
  return bodyErrors(isUsername.errors ?? [])
    .slice(0, 1)
    .map(({ message }) => message);
}

function lengthMessage(limit: number): string {
  return `must be at most ${limit} characters long`;
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function bodyErrors(errors: ErrorObject[]): BodyError[] {
  // The contract's only alternatives are "this object, or null", so errors about the type in one branch say little.
  const alternatives = new Set(errors.filter((e) => e.keyword === 'anyOf').map((e) => e.instancePath));
  return errors.flatMap((error) => {
    if (error.keyword === 'type' && alternatives.has(error.instancePath)) return [];
    if (error.keyword === 'anyOf' && isObject(error.data)) return [];
    return [{ path: pathOf(error), message: messageOf(error) }];
  });
}

function pathOf(error: ErrorObject): string {
  if (error.keyword !== 'required') return error.instancePath;
  return `${error.instancePath}/${pointerPart(String(error.params.missingProperty))}`;
}

const typeNames: Record<string, string> = { string: 'a string', object: 'an object', array: 'an array' };

function messageOf({ keyword, params, data, message }: ErrorObject): string {
  switch (keyword) {
    case 'type':
      return `must be ${typeNames[String(params.type)] ?? String(params.type)}`;
    case 'anyOf':
      return 'must be an object or null';
    case 'required':
      return 'must be present';
    case 'not':
      return 'must not be set';
    case 'minLength':
      return 'must not be empty';
    case 'maxLength':
      return lengthMessage(Number(params.limit));
    case 'pattern':
      return nameFault(String(data)) ?? 'must have the documented form';
    default:
      return message ?? 'must have the documented form';
  }
}

/** A property name as part of a JSON pointer (RFC 6901 §3), truncated so that no response echoes megabytes. */
function pointerPart(name: string): string {
  const short = name.length > maxPointerPart ? `${name.slice(0, maxPointerPart)}…` : name;
  return short.toWellFormed().replaceAll('~', '~0').replaceAll('/', '~1');
}
