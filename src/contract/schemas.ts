import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import { nameFault } from '../domain/usernames.ts';
import { contractDocument } from './document.ts';
import type { BodyError, ProfileChange, Replacements, Usernames } from './types.gen.ts';

/** What came of holding a body against its schema. The errors are at least one and at most 20. */
export type Validated<T> = { ok: true; value: T } | { ok: false; errors: BodyError[] };

/** The greatest number of errors that one answer tells of. */
export const maxErrors = 20;
const maxPointerPart = 64;

function compilerOf(options: { allErrors: boolean }): <T>(name: string) => ValidateFunction<T> {
  const ajv = new Ajv2020({ ...options, verbose: true, strict: true, validateSchema: false });
  formats.default(ajv);
  // The document itself is no schema; its schemas are reached through it.
  ajv.addVocabulary(Object.keys(contractDocument));
  ajv.addSchema(contractDocument, 'contract');
  return <T>(name: string) => ajv.compile<T>({ $ref: `contract#/components/schemas/${name}` });
}

// Whole lists stop at the first fault; only then are their parts gone through one by one, up to the cap.
const whole = compilerOf({ allErrors: false });
const thorough = compilerOf({ allErrors: true });

const isProfileChange = thorough<ProfileChange>('ProfileChange');
const isUsername = thorough<string>('Username');
const isUsernames = whole<Usernames>('Usernames');
const isReplacements = whole<Replacements>('Replacements');

/** Holds a JSON body of PUT profile (contract 4.2), or the text parts of an upload, against its schema. */
export function validateProfileChange(body: unknown): Validated<ProfileChange> {
  if (isProfileChange(body)) return { ok: true, value: body };
  return { ok: false, errors: bodyErrors(isProfileChange.errors ?? []).slice(0, maxErrors) };
}

/** Holds the body of ban and replace (contract 4.3) against its schema. Every own property is a name. */
export function validateReplacements(body: unknown): Validated<Replacements> {
  if (isReplacements(body)) return { ok: true, value: body };
  if (!isObject(body)) return { ok: false, errors: bodyErrors(isReplacements.errors ?? []) };
  const errors: BodyError[] = [];
  for (const [banned, replacement] of Object.entries(body)) {
    const path = `/${pointerPart(banned)}`;
    errors.push(...nameErrors(banned, path).map((error) => ({ path, message: `its name ${error.message}` })));
    errors.push(...nameErrors(replacement, path));
    if (errors.length >= maxErrors) break;
  }
  return { ok: false, errors: errors.slice(0, maxErrors) };
}

/** Holds a list of usernames (contract 4.4 and 4.5) against its schema. */
export function validateUsernames(body: unknown): Validated<Usernames> {
  if (isUsernames(body)) return { ok: true, value: body };
  if (!Array.isArray(body)) return { ok: false, errors: bodyErrors(isUsernames.errors ?? []) };
  const errors: BodyError[] = [];
  for (const [index, name] of body.entries()) {
    errors.push(...nameErrors(name, `/${index}`));
    if (errors.length >= maxErrors) break;
  }
  return { ok: false, errors: errors.slice(0, maxErrors) };
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** One fault is enough for one name. */
function nameErrors(name: unknown, path: string): BodyError[] {
  if (isUsername(name)) return [];
  return bodyErrors(isUsername.errors ?? [])
    .slice(0, 1)
    .map(({ message }) => ({ path, message }));
}

function bodyErrors(errors: ErrorObject[]): BodyError[] {
  // The contract's only alternatives are "this object, or null": the branches' complaints about the type say less.
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
      return `must be at most ${String(params.limit)} characters long`;
    case 'pattern':
      return nameFault(String(data)) ?? 'must have the documented form';
    default:
      return message ?? 'must have the documented form';
  }
}

/** A property name as part of a JSON pointer (RFC 6901 §3), cut short so that no answer echoes megabytes. */
function pointerPart(name: string): string {
  const short = name.length > maxPointerPart ? `${name.slice(0, maxPointerPart)}…` : name;
  return short.toWellFormed().replaceAll('~', '~0').replaceAll('/', '~1');
}
