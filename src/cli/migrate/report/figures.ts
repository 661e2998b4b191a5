import { formatNumber, totalOf } from '../../../lib/numbers.ts';
import { table } from '../../../lib/system/terminal.ts';
import type { Tally } from '../../../migration/context/outcomes.ts';
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

/** The actual or planned outcomes of the rows that were read: their sum, and as a table and JSON by entity. */
export function figuresOf({ read }: Reading, { tallies, issues }: MigrationContext) {
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
  const sum = Object.fromEntries(
    names.map((name) => [name, totalOf([...all.values()].map((figures) => figures[name]))]),
  ) as Figures;
  // Of the rows that are records.
  const organizations = [...tallies.byOrganization()].map(([id, tally]) => [id, countsOf(tally)] as const);
  const json = { entities: Object.fromEntries(all), organizations: Object.fromEntries(organizations) };
  return { sum, table: tableOf(all, sum), json };
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

/** A table of figures; columns that are zero throughout are left out. */
function tableOf(all: ReadonlyMap<Entity, Figures>, sum: Figures): string {
  const always = new Set<keyof Figures>(['read', 'created', 'updated', 'unchanged']);
  const shown = names.filter((name) => always.has(name) || sum[name] > 0);
  const rows: [string, Figures][] = all.size > 1 ? [...all, ['all', sum]] : [...all];
  return table(
    ['', ...shown],
    rows.map(([title, figures]) => [title, ...shown.map((name) => formatNumber(figures[name]))]),
    shown,
  );
}
