import type { Source } from '../../migration/sources/source.ts';

/** Says which files of the source's folder are not read: one may be misspelt. */
export function noteIgnored({ ignored }: Source): string[] {
  return ignored.length === 0
    ? []
    : [`Not read, for their names are those of no entity: ${ignored.join(', ')}`];
}
