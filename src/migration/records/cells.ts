import type { Fields, Shape } from './shapes.ts';
import { InvalidValue } from './values.ts';

/** A value of a row, as text; null and "" are none. */
export type Cell = string | null;

/** The record field that each column gives, a nested one by its dotted name; undefined for a column that is not read. */
export type Columns = readonly (string | undefined)[];

/** The cells as an object, by the names of their columns. */
export function objectOf(cells: readonly Cell[], columns: Columns): Fields {
  const row: Fields = {};
  for (const [at, name] of columns.entries()) if (name !== undefined) row[name] = cells[at];
  return row;
}

/** The length of the cells, in characters. */
export function widthOf(cells: readonly Cell[]): number {
  let width = 0;
  for (const cell of cells) width += cell?.length ?? 0;
  return width;
}

const nothing = new InvalidValue('has no fields');
const unusual = new InvalidValue('has to be read as an object');

/**
 * Reads cells as the shape reads `objectOf` them, at half the cost. What the shape may refuse is an InvalidValue: only the
 * shape knows the reason.
 */
export function createCellReader(
  { fields, required }: Shape,
  columns: Columns,
): (cells: readonly Cell[]) => Fields | InvalidValue {
  const readers: { name: string; read: (cells: readonly Cell[]) => unknown }[] = [];
  for (const [name, { rule, parent, shape }] of fields) {
    if (parent !== undefined) continue;
    const at = columns.indexOf(name);
    const parts = columns.map((column) => partOf(name, column));
    const isWhole = parts.every((part) => part === undefined);
    if (isWhole || shape === undefined) {
      if (at !== -1) readers.push({ name, read: (cells) => cells[at] && rule(cells[at]) });
      continue;
    }
    const readParts = createCellReader(shape, parts);
    const read = (cells: readonly Cell[]): unknown => {
      const value = readParts(cells);
      return value === nothing ? undefined : value;
    };
    // Both may be given, though not in one row.
    readers.push({ name, read: at === -1 ? read : () => unusual });
  }
  return (cells) => {
    const record: Fields = {};
    let isEmpty = true;
    for (const { name, read } of readers) {
      const value = read(cells);
      if (value === undefined || value === null || value === '') continue;
      if (value instanceof InvalidValue) return unusual;
      record[name] = value;
      isEmpty = false;
    }
    for (const name of required) if (record[name] === undefined) return isEmpty ? nothing : unusual;
    return record;
  };
}

/** The name of a nested field without that of its object. */
function partOf(parent: string, column: string | undefined): string | undefined {
  return column?.startsWith(`${parent}.`) === true ? column.slice(parent.length + 1) : undefined;
}
