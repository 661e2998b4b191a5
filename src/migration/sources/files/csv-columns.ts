import { fieldNames, requiredFields, unknownField } from '../../records/parse.ts';
import type { Entity } from '../../records/records.ts';
import type { DataFile } from './file.ts';
import { SourceError } from '../source.ts';

/** Which record field each column of a file gives; undefined for a column that is not read. */
export type CsvColumns = readonly (string | undefined)[];

/**
 * What a CSV file's columns give, by the names in its first line: the record field of the same name, or with a
 * mapping's `fields` the one that names the column. Every mistake is a SourceError that names the column.
 */
export function columnsOf(
  file: DataFile,
  names: readonly string[],
  fields: ReadonlyMap<string, string> | undefined,
): CsvColumns {
  return fields === undefined ? columnsByName(file, names) : columnsByMapping(file, names, fields);
}

function columnsByName(file: DataFile, names: readonly string[]): CsvColumns {
  // A first line without a single field name is data, perhaps with an API key in it: it must not be quoted.
  const known = new Set(fieldNames(file.entity));
  if (!names.some((name) => known.has(name))) {
    throw new SourceError(
      `${file.name}: the first line must name the columns, such as ${exampleHeader(file.entity)}`,
    );
  }
  for (const [index, name] of names.entries()) {
    if (!known.has(name))
      throw new SourceError(`${file.name}: the first line names an ${unknownField(file.entity, name)}`);
    if (names.indexOf(name) < index)
      throw new SourceError(`${file.name}: the first line names ${name} twice`);
  }
  for (const group of requiredFields(file.entity)) {
    if (!group.some((field) => names.includes(field))) {
      throw new SourceError(`${file.name}: the column ${group.join(' or ')} is missing`);
    }
  }
  return names;
}

function columnsByMapping(
  file: DataFile,
  names: readonly string[],
  fields: ReadonlyMap<string, string>,
): CsvColumns {
  const columns: (string | undefined)[] = names.map(() => undefined);
  for (const [field, column] of fields) {
    const index = names.indexOf(column);
    if (index === -1) {
      throw new SourceError(
        `${file.name} has no column ${JSON.stringify(column)}, which entities.${file.entity}.fields.${field} names`,
      );
    }
    if (columns[index] !== undefined) {
      throw new SourceError(
        `entities.${file.entity}.fields gives ${columns[index]} and ${field} the same column`,
      );
    }
    columns[index] = field;
  }
  return columns;
}

function exampleHeader(entity: Entity): string {
  return requiredFields(entity)
    .map(([field]) => field)
    .join(',');
}
