import { InvalidValue } from './values.ts';
import type { Rule } from './values.ts';

export type Fields = Record<string, unknown>;
interface Field {
  readonly key: string;
  readonly parent?: string;
  readonly rule: Rule;
}
/** The fields that an object may have, with their rules. */
export interface Shape {
  readonly fields: ReadonlyMap<string, Field>;
  readonly required: readonly string[];
  readonly nested: readonly { readonly key: string; readonly shape: Shape }[];
}

const nothing = new InvalidValue('has no fields');

/** A shape; nested shapes may be given whole, or by dotted names. */
export function defineShape(fields: Record<string, Rule | Shape>, required: readonly string[]): Shape {
  const all = new Map<string, Field>();
  const nested: { key: string; shape: Shape }[] = [];
  for (const [key, rule] of Object.entries(fields)) {
    if (typeof rule === 'function') {
      all.set(key, { key, rule });
    } else {
      nested.push({ key, shape: rule });
      all.set(key, { key, rule: (value) => readNested(rule, value) });
      for (const inner of rule.fields.values()) {
        all.set(`${key}.${inner.key}`, { key: inner.key, parent: key, rule: inner.rule });
      }
    }
  }
  return { fields: all, required, nested };
}

/**
 * Reads an object by its shape: null, undefined and "" count as absent; the first broken rule refuses the whole object. Only
 * names the shape knows ever become properties, so `__proto__` is an unknown field like any other.
 */
export function readFields(of: Shape, raw: Fields): Fields | InvalidValue {
  return readWhole(of, raw) ?? readOneByOne(of, raw);
}

/** The usual case at half the cost: no field is empty, dotted or invalid, and few are changed by reading. */
function readWhole(of: Shape, raw: Fields): Fields | undefined {
  let record = raw;
  for (const name in raw) {
    const value = raw[name];
    const field = of.fields.get(name);
    if (field === undefined || field.parent !== undefined || value == null || value === '') return undefined;
    const read = field.rule(value);
    if (read === value) continue;
    if (read === undefined || read instanceof InvalidValue) return undefined;
    if (record === raw) record = { ...raw };
    record[name] = read;
  }
  return missingIn(of, record) === undefined ? record : undefined;
}

function readOneByOne(of: Shape, raw: Fields): Fields | InvalidValue {
  const record: Fields = {};
  let byParts: Set<string> | undefined;
  for (const given in raw) {
    const value = raw[given];
    const field = of.fields.get(given);
    if (field === undefined) return new InvalidValue(unknownIn(of, given));
    if (value === null || value === undefined || value === '') continue;
    const read = field.rule(value);
    if (read instanceof InvalidValue)
      return new InvalidValue(`${given}${read.reason.startsWith('.') ? '' : ' '}${read.reason}`);
    if (field.parent === undefined) {
      if (read === undefined) continue;
      if (record[field.key] !== undefined)
        return new InvalidValue(`${field.key} is given both whole and by its parts`);
      record[field.key] = read;
    } else {
      byParts ??= new Set();
      if (record[field.parent] !== undefined && !byParts.has(field.parent))
        return new InvalidValue(`${field.parent} is given both whole and by its parts`);
      byParts.add(field.parent);
      const parent = (record[field.parent] ??= {}) as Fields;
      parent[field.key] = read;
    }
  }
  const missing = missingIn(of, record) ?? (byParts && missingInParts(of, record));
  if (missing === undefined) return record;
  return isEmpty(record) ? nothing : new InvalidValue(`${missing} is missing`);
}

/** A nested object, or the JSON text of one; one without any value counts as absent. */
function readNested(of: Shape, value: unknown): Fields | InvalidValue | undefined {
  const fields = typeof value === 'string' ? parseJson(value) : value;
  if (fields === null) return undefined;
  if (!isFields(fields)) return new InvalidValue('must be an object, or the JSON text of one');
  const read = readFields(of, fields);
  if (!(read instanceof InvalidValue)) return read;
  if (read === nothing) return undefined;
  return new InvalidValue(read.reason.startsWith('unknown') ? `has an ${read.reason}` : `.${read.reason}`);
}

function missingIn(of: Shape, record: Fields): string | undefined {
  for (const key of of.required) if (record[key] === undefined) return key;
  return undefined;
}

function missingInParts(of: Shape, record: Fields): string | undefined {
  for (const { key, shape: inner } of of.nested) {
    const parts = record[key];
    const missing = parts === undefined ? undefined : missingIn(inner, parts as Fields);
    if (missing !== undefined) return `${key}.${missing}`;
  }
  return undefined;
}

/** Names a field the shape does not have, with the one that was probably meant. */
export function unknownIn(of: Shape, given: string): string {
  const meant = [...of.fields.keys()].find((field) => plain(field) === plain(given));
  const hint = meant === undefined ? '' : ` (is ${meant} meant?)`;
  return `unknown field ${JSON.stringify(given.length > 64 ? `${given.slice(0, 64)}…` : given)}${hint}`;
}

function plain(field: string): string {
  return field.toLowerCase().replaceAll(/[^a-z0-9]/g, '');
}

/** Whether no field at all was given: the record's own required fields are missing with it. */
function isEmpty(record: Fields): boolean {
  return Object.keys(record).length === 0;
}

function parseJson(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}

/** Whether a value is an object with named fields. */
export function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
