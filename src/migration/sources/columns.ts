import { missingField } from '../records/parse.ts';
import { shapes, type Entity } from '../records/records.ts';
import { unknownIn, type Fields } from '../records/shapes.ts';
import { SourceError } from './source.ts';

/** A value of a row, as text; null and "" are none. */
export type Cell = string | null;

/** The record field that each column gives, a nested one by its dotted name; undefined for a column that is not read. */
export type Columns = readonly (string | undefined)[];

interface ColumnNames {
  readonly entity: Entity;
  /** The columns' names, as the source has them. */
  readonly names: readonly string[];
  /** What has the columns, in errors, such as "the query", and where that stands. */
  readonly what: string;
  readonly where: string;
  /** Columns that may be there without being fields. */
  readonly others?: readonly string[] | undefined;
  /** Whether the source lowers names that are not in double quotes. */
  readonly lowersNames?: boolean;
}

const lowersHint = '; PostgreSQL lowers names that are not in double quotes';

/**
 * What a source's columns give: the record field of the same name, or, with a mapping's `fields`, the one that names
 * the column. Every mistake is a SourceError that names the column.
 */
export function columnsOf(given: ColumnNames, mapped: ReadonlyMap<string, string> | undefined): Columns {
  if (mapped === undefined) return columnsByName(given);
  const { entity, names, what, lowersNames } = given;
  const columns: (string | undefined)[] = names.map(() => undefined);
  for (const [field, column] of mapped) {
    const index = indexOfColumn(names, column, `entities.${entity}.fields.${field}: ${what}`, lowersNames);
    if (columns[index] !== undefined) {
      throw new SourceError(`entities.${entity}.fields gives ${columns[index]} and ${field} the same column`);
    }
    columns[index] = field;
  }
  return columns;
}

function columnsByName({ entity, names, what, where, others = [], lowersNames }: ColumnNames): Columns {
  const twice = names.find((name, index) => names.indexOf(name) < index);
  if (twice !== undefined)
    throw new SourceError(`${where}: ${what} has the column ${JSON.stringify(twice)} twice`);
  const { fields: known } = shapes[entity];
  for (const name of names) {
    if (known.has(name) || others.includes(name)) continue;
    const isLowered = [...known.keys()].some((field) => field.toLowerCase() === name);
    const remedy = isLowered && lowersNames === true ? lowersHint : '';
    throw new SourceError(`${where}: ${what} has an ${unknownIn(shapes[entity], name)}${remedy}`);
  }
  const missing = missingField(entity, names);
  if (missing !== undefined) throw new SourceError(`${where}: ${what} has no column ${missing}`);
  return names.map((name) => (known.has(name) ? name : undefined));
}

/** The column's index; where `what` lacks it, the error has the spelling in which only case or blanks differ. */
export function indexOfColumn(
  names: readonly string[],
  name: string,
  what: string,
  lowersNames = false,
): number {
  const index = names.indexOf(name);
  if (index !== names.lastIndexOf(name))
    throw new SourceError(`${what} has the column ${JSON.stringify(name)} twice`);
  if (index !== -1) return index;
  const similar = names.find((other) => other.trim().toLowerCase() === name.trim().toLowerCase());
  const hint = similar === undefined ? '' : `, but ${JSON.stringify(similar)}`;
  const remedy = lowersNames && similar === name.toLowerCase() ? lowersHint : '';
  throw new SourceError(`${what} has no column ${JSON.stringify(name)}${hint}${remedy}`);
}

/** Reads rows with these columns as objects, which have only fields with a value. */
export function createRowReader(columns: Columns): (cells: readonly Cell[]) => Fields {
  const paths = columns.map((name) => name?.split('.') ?? []);
  const isNestedTwice = paths.some(([parent, part]) => part !== undefined && columns.includes(parent));
  const fields: { at: number; name: string }[] = [];
  const parts: { at: number; parent: string; part: string }[] = [];
  for (const [at, [parent = '', part]] of paths.entries()) {
    const name = columns[at];
    if (part !== undefined && !isNestedTwice) parts.push({ at, parent, part });
    else if (name !== undefined) fields.push({ at, name });
  }
  return (cells) => {
    const row: Fields = {};
    for (const { at, name } of fields) if (cells[at]) row[name] = cells[at];
    // A shape reads an object in a row far quicker than its parts by their dotted names.
    for (const { at, parent, part } of parts)
      if (cells[at]) ((row[parent] ??= {}) as Fields)[part] = cells[at];
    return row;
  };
}

/** The length of the cells, in characters. */
export function widthOf(cells: readonly Cell[]): number {
  let width = 0;
  for (const cell of cells) width += cell?.length ?? 0;
  return width;
}
