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
  const names = { fields, required };
  const read = (raw: Fields): Fields | InvalidValue => readWhole(names, raw) ?? readFields(names, raw);
  return { fields, required, read: read as Shape<Values<Required, Optional>>['read'] };
}

type Names = Pick<Shape, 'fields' | 'required'>;

/** The usual case at half the cost: no field is empty, dotted or invalid, and few are changed by reading. */
function readWhole({ fields, required }: Names, raw: Fields): Fields | undefined {
  let record = raw;
  for (const name in raw) {
    const value = raw[name];
    const field = fields.get(name);
    if (field === undefined || field.parent !== undefined || value == null || value === '') return undefined;
    const read = field.rule(value);
    if (read === value) continue;
    if (read === undefined || read instanceof InvalidValue) return undefined;
    if (record === raw) record = { ...raw };
    record[name] = read;
  }
  for (const name of required) if (record[name] === undefined) return undefined;
  return record;
}

function readFields({ fields, required }: Names, raw: Fields): Fields | InvalidValue {
  const record: Fields = {};
  let nested: Record<string, Fields> | undefined;
  for (const name in raw) {
    const value = raw[name];
    const field = fields.get(name);
    if (field === undefined) return new InvalidValue(unknownIn({ fields }, name));
    if (value === null || value === undefined || value === '') continue;
    if (field.parent !== undefined) {
      ((nested ??= {})[field.parent] ??= {})[field.key] = value;
      continue;
    }
    const read = field.rule(value);
    if (read instanceof InvalidValue) return within(name, read);
    if (read !== undefined) record[name] = read;
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
