import type { Fields } from '../../records/shapes.ts';
import { SourceError } from '../source.ts';

export type Projection = ReturnType<typeof createProjection>;

/**
 * Makes records of rows by the JSON pointers (RFC 6901) of a mapping's `fields`: each field is what its pointer finds in
 * the row, or absent; what is not mapped is left out. `warnings` names the pointers that have found nothing in any row.
 */
export function createProjection(fields: ReadonlyMap<string, string>, where: string) {
  const places = [...fields].map(([field, pointer]) => ({
    field,
    pointer,
    path: parsePointer(pointer, `${where}.fields.${field}`),
  }));
  const unused = new Set(places);
  let isUsed = false;
  return {
    project: (row: Fields): Fields => {
      isUsed = true;
      const record: Fields = {};
      for (const place of places) {
        const found = resolve(row, place.path);
        if (found === undefined) continue;
        record[place.field] = found;
        unused.delete(place);
      }
      return record;
    },
    warnings: (): string[] =>
      [...(isUsed ? unused : [])].map(
        ({ field, pointer }) =>
          `no row has ${pointer}, which the mapping names for ${field}: check its spelling`,
      ),
  };
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
