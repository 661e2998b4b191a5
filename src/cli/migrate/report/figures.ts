import { formatNumber, totalOf } from '../../../lib/numbers.ts';
import { table } from '../../../lib/system/terminal.ts';
import type { Tallies, Tally } from '../../../migration/context/outcomes.ts';
import type { MigrationContext } from '../../../migration/context/context.ts';
import { warnings } from '../../../migration/context/issues.ts';
import type { Reading } from '../../../migration/engine/read/reading.ts';
import type { Entity } from '../../../migration/records/records.ts';

/** What they mean is in src/migration/README.md. */
const names = [
  'read',
  'created',
  'updated',
  'unchanged',
  'kept',
  'duplicates',
  'invalid',
  'conflicts',
  'refused',
  'warnings',
] as const;

/** Numbers of one entity, or of all. */
export type Figures = Record<(typeof names)[number], number>;

/** The actual or planned outcomes of the rows that were read, by entity. */
export function figuresOf({ read }: Reading, { tallies, issues }: MigrationContext): Map<Entity, Figures> {
  const all = new Map<Entity, Figures>();
  for (const [entity, rows] of read) {
    all.set(entity, {
      read: rows,
      ...countsOf(tallies.of(entity)),
      invalid: issues.count('invalid', entity),
      conflicts: issues.count('username-conflict', entity),
      warnings: issues.count(warnings, entity),
    });
  }
  return all;
}

/** What became of rows, as it is shown. */
export function countsOf(tally: Tally) {
  const { created, updated, unchanged, kept, newer, duplicate, refused, taken, invalid } = tally;
  return {
    created,
    updated,
    unchanged,
    kept: kept + newer,
    duplicates: duplicate,
    refused: refused + taken + invalid,
  };
}

/** The same for each organization, of the rows that are records. */
export function organizationFigures(tallies: Tallies): Record<string, object> {
  const all = [...tallies.byOrganization()].map(([id, tally]) => [id, countsOf(tally)] as const);
  return Object.fromEntries(all);
}

/** The sum of all entities' figures. */
export function sumOf(all: ReadonlyMap<Entity, Figures>): Figures {
  const sums = names.map((name) => {
    const own = [...all.values()].map((figures) => figures[name]);
    return [name, totalOf(own)] as const;
  });
  return Object.fromEntries(sums) as Figures;
}

/** A table of figures; columns that are zero throughout are left out. */
export function figuresTable(all: ReadonlyMap<Entity, Figures>): string {
  const sum = sumOf(all);
  const always = new Set<keyof Figures>(['read', 'created', 'updated', 'unchanged']);
  const shown = names.filter((name) => always.has(name) || sum[name] > 0);
  const rows: [string, Figures][] = all.size > 1 ? [...all, ['all', sum]] : [...all];
  return table(
    ['', ...shown],
    rows.map(([title, figures]) => [title, ...shown.map((name) => formatNumber(figures[name]))]),
    shown,
  );
}
