import type { Fields } from '../../records/shapes.ts';
import { SourceError } from '../source.ts';

/** The place in a row of each record field that a mapping names. */
export type Pointers = readonly {
  readonly field: string;
  readonly pointer: string;
  readonly path: readonly string[];
}[];

/** Reads the JSON pointers (RFC 6901) of a mapping's `fields`. */
export function parsePointers(fields: ReadonlyMap<string, string>, where: string): Pointers {
  return [...fields].map(([field, pointer]) => ({
    field,
    pointer,
    path: parsePointer(pointer, `${where}.fields.${field}`),
  }));
}

/**
 * Makes records of rows: each field is what its pointer finds in the row, or absent; what is not mapped is left out.
 * `warnings` names the pointers that have found nothing in any row.
 */
export function createProjection(pointers: Pointers) {
  let isUsed = false;
  const unused = new Set(pointers);
  const project = (row: Fields): Fields => {
    isUsed = true;
    const record: Fields = {};
    for (const place of pointers) {
      const found = resolve(row, place.path);
      if (found === undefined) continue;
      record[place.field] = found;
      unused.delete(place);
    }
    return record;
  };
  const warnings = (): string[] =>
    [...(isUsed ? unused : [])].map(
      ({ field, pointer }) =>
        `no row has ${pointer}, which the mapping names for ${field}: check its spelling`,
    );
  return { project, warnings };
}

function parsePointer(pointer: string, where: string): readonly string[] {
  if (!pointer.startsWith('/') || /~(?![01])/.test(pointer)) {
    throw new SourceError(
      `${where} must be a JSON pointer such as /user/id (RFC 6901), not ${JSON.stringify(pointer)}`,
    );
  }
  return pointer
    .slice(1)
    .split('/')
    .map((token) => token.replaceAll('~1', '/').replaceAll('~0', '~'));
}

function resolve(row: unknown, path: readonly string[]): unknown {
  let value = row;
  for (const token of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, token)) return undefined;
    value = (value as Fields)[token];
  }
  return value;
}
