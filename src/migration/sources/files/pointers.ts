import type { Fields } from '../../records/shapes.ts';
import { SourceError } from '../source.ts';

/**
 * Builds the projection of a mapping's `fields` for JSON rows: each record field is what its JSON pointer
 * (RFC 6901) finds in the row; what is not mapped is left out, what is not found is absent.
 */
export function projectByPointers(
  fields: ReadonlyMap<string, string>,
  where: string,
): (row: Fields) => Fields {
  const paths = [...fields].map(
    ([field, pointer]) => [field, parsePointer(pointer, `${where}.fields.${field}`)] as const,
  );
  return (row) => {
    const record: Fields = {};
    for (const [field, path] of paths) {
      const found = resolve(row, path);
      if (found !== undefined) record[field] = found;
    }
    return record;
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
