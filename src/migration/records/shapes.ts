import { InvalidValue, type Rule } from './values.ts';

/** An object as it is given or read, by field. */
export type Fields = Record<string, unknown>;
type Rules = Record<string, Rule | Shape>;

interface Field {
  readonly key: string;
  readonly parent?: string;
  readonly rule: Rule;
  /** What the rule reads, if that is an object. */
  readonly shape?: Shape;
}

/** The fields that an object may have, with their rules. */
export interface Shape<Value = unknown> {
  /** By every name under which they may be given, the dotted ones of nested fields included. */
  readonly fields: ReadonlyMap<string, Field>;
  readonly required: readonly string[];
  /**
   * Reads an object: null, undefined and "" count as absent; the first broken rule refuses the whole object. Only names
   * the shape knows ever become properties, so `__proto__` is an unknown field like any other. May change the object,
   * which may become what is read.
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
  requiredRules: Required,
  optionalRules: Optional,
): Shape<Values<Required, Optional>> {
  const fields = new Map<string, Field>();
  for (const [key, rule] of Object.entries<Rule | Shape>({ ...requiredRules, ...optionalRules })) {
    if (typeof rule === 'function') {
      fields.set(key, { key, rule });
      continue;
    }
    fields.set(key, { key, rule: (value) => readNested(rule, value), shape: rule });
    for (const inner of rule.fields.values()) fields.set(`${key}.${inner.key}`, { ...inner, parent: key });
  }
  const required: readonly string[] = Object.keys(requiredRules);
  const read = (raw: Fields): Fields | InvalidValue => readFields({ fields, required }, raw);
  return { fields, required, read: read as Shape<Values<Required, Optional>>['read'] };
}

function readFields(
  { fields, required }: Pick<Shape, 'fields' | 'required'>,
  raw: Fields,
): Fields | InvalidValue {
  // Usually the object itself can become the record, which is far quicker than a copy.
  let record = raw;
  let nested: Record<string, Fields> | undefined;
  for (const name in raw) {
    const value = raw[name];
    const field = fields.get(name);
    if (field === undefined) return new InvalidValue(unknownIn({ fields }, name));
    const isEmpty = value === null || value === undefined || value === '';
    const { parent } = field;
    if (!isEmpty && parent === undefined) {
      const read = field.rule(value);
      if (read === value && record === raw) continue;
      if (read instanceof InvalidValue) return within(name, read);
      if (read !== undefined) {
        record[name] = read;
        continue;
      }
    }
    if (record === raw) record = fieldsBefore(raw, name);
    if (!isEmpty && parent !== undefined) ((nested ??= {})[parent] ??= {})[field.key] = value;
  }
  for (const name in nested) {
    if (record[name] !== undefined) return new InvalidValue(`${name} is given both whole and by its parts`);
    const read = fields.get(name)?.rule(nested[name]);
    if (read instanceof InvalidValue) return within(name, read);
    record[name] = read;
  }
  for (const name of required) {
    if (record[name] !== undefined) continue;
    return Object.keys(record).length === 0 ? nothing : new InvalidValue(`${name} is missing`);
  }
  return record;
}

/** A copy of the object's fields that come before one of them. */
function fieldsBefore(raw: Fields, end: string): Fields {
  const before: Fields = {};
  for (const name in raw) {
    if (name === end) break;
    before[name] = raw[name];
  }
  return before;
}

function within(name: string, { reason }: InvalidValue): InvalidValue {
  return new InvalidValue(`${name}${reason.startsWith('.') ? '' : ' '}${reason}`);
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

/** Names a field the shape does not have, with the one that was probably meant. */
export function unknownIn({ fields }: Pick<Shape, 'fields'>, given: string): string {
  const meant = [...fields.keys()].find((field) => plain(field) === plain(given));
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
