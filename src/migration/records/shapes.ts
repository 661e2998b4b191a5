import { getOrInsert } from '../../lib/collections/get-or-insert.ts';
import { InvalidValue, type Rule } from './values.ts';

export type Fields = Record<string, unknown>;
type Rules = Record<string, Rule | Shape>;

interface Field {
  readonly key: string;
  readonly parent?: string;
  readonly rule: Rule;
}

/** The fields that an object may have, with their rules. */
export interface Shape<Value = unknown> {
  /** By every name under which they may be given, the dotted ones of nested fields included. */
  readonly fields: ReadonlyMap<string, Field>;
  readonly required: readonly string[];
  /**
   * Reads an object: null, undefined and "" count as absent; the first broken rule refuses the whole object. Only names
   * the shape knows ever become properties, so `__proto__` is an unknown field like any other.
   */
  readonly read: (raw: Fields) => Value | InvalidValue;
}

/** What objects of a shape are read as. */
export type RecordIn<Of> = Of extends Shape<infer Value> ? Value : never;
type ValueIn<Of> = Of extends Rule<infer Value> ? Value : RecordIn<Of>;
type Values<Required extends Rules, Optional extends Rules> = {
  [Name in keyof Required]: ValueIn<Required[Name]>;
} & { [Name in keyof Optional]?: ValueIn<Optional[Name]> | undefined };

const nothing = new InvalidValue('has no fields');

/** A shape of required and optional fields; nested shapes may be given whole, or by dotted names. */
export function defineShape<Required extends Rules, Optional extends Rules>(
  required: Required,
  optional: Optional,
): Shape<Values<Required, Optional>> {
  const fields = new Map<string, Field>();
  for (const [key, rule] of Object.entries<Rule | Shape>({ ...required, ...optional })) {
    if (typeof rule === 'function') {
      fields.set(key, { key, rule });
      continue;
    }
    fields.set(key, { key, rule: (value) => readNested(rule, value) });
    for (const inner of rule.fields.values()) fields.set(`${key}.${inner.key}`, { ...inner, parent: key });
  }
  const shape = { fields, required: Object.keys(required) };
  const read = (raw: Fields): Fields | InvalidValue => readWhole(shape, raw) ?? readOneByOne(shape, raw);
  return { ...shape, read: read as Shape<Values<Required, Optional>>['read'] };
}

type Names = Pick<Shape, 'fields' | 'required'>;

/** The usual case at half the cost: no field is empty, dotted or invalid, and few are changed by reading. */
function readWhole(of: Names, raw: Fields): Fields | undefined {
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

function readOneByOne(of: Names, given: Fields): Fields | InvalidValue {
  const raw = withParts(of, given);
  if (raw instanceof InvalidValue) return raw;
  const record: Fields = {};
  for (const name in raw) {
    const read = of.fields.get(name)?.rule(raw[name]);
    if (read instanceof InvalidValue)
      return new InvalidValue(`${name}${read.reason.startsWith('.') ? '' : ' '}${read.reason}`);
    if (read !== undefined) record[name] = read;
  }
  const missing = missingIn(of, record);
  if (missing === undefined) return record;
  return Object.keys(record).length === 0 ? nothing : new InvalidValue(`${missing} is missing`);
}

/** The fields that are present, those under dotted names as the objects that they are parts of. */
function withParts(of: Names, given: Fields): Fields | InvalidValue {
  const raw: Fields = {};
  const byParts = new Map<string, Fields>();
  for (const name in given) {
    const value = given[name];
    const field = of.fields.get(name);
    if (field === undefined) return new InvalidValue(unknownIn(of, name));
    if (value === null || value === undefined || value === '') continue;
    if (field.parent === undefined) raw[field.key] = value;
    else getOrInsert<string, Fields>(byParts, field.parent, () => ({}))[field.key] = value;
  }
  for (const [parent, parts] of byParts) {
    const isWhole = raw[parent] !== undefined && of.fields.get(parent)?.rule(raw[parent]) !== undefined;
    if (isWhole) return new InvalidValue(`${parent} is given both whole and by its parts`);
    raw[parent] = parts;
  }
  return raw;
}

/** A nested object, or the JSON text of one; one without any value counts as absent. */
function readNested(of: Shape, value: unknown): unknown {
  const fields = typeof value === 'string' ? parseJson(value) : value;
  if (fields === null) return undefined;
  if (!isFields(fields)) return new InvalidValue('must be an object, or the JSON text of one');
  const read = of.read(fields);
  if (!(read instanceof InvalidValue)) return read;
  if (read === nothing) return undefined;
  return new InvalidValue(read.reason.startsWith('unknown') ? `has an ${read.reason}` : `.${read.reason}`);
}

function missingIn(of: Names, record: Fields): string | undefined {
  for (const key of of.required) if (record[key] === undefined) return key;
  return undefined;
}

/** Names a field the shape does not have, with the one that was probably meant. */
export function unknownIn(of: Names, given: string): string {
  const meant = [...of.fields.keys()].find((field) => plain(field) === plain(given));
  const hint = meant === undefined ? '' : ` (is ${meant} meant?)`;
  return `unknown field ${JSON.stringify(given.length > 64 ? `${given.slice(0, 64)}…` : given)}${hint}`;
}

function plain(field: string): string {
  return field.toLowerCase().replaceAll(/[^a-z0-9]/g, '');
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
