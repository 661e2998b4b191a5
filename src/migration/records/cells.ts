import type { Fields } from './shapes.ts';

/** A value of a row, as text; null and "" are none. */
export type Cell = string | null;

/** The record field that each column gives, a nested one by its dotted name; undefined for a column that is not read. */
export type Columns = readonly (string | undefined)[];

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
