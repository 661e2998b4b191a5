import type { Row } from './section.ts';

/** The rows as a table for people. */
export function table(rows: readonly Row[]): string {
  const head = ['', 'result', 'min..max', 'aim', '', 'absolute (noise)'];
  const cells = rows.map((row) => [
    row.what,
    row.result,
    row.spread ?? '',
    row.aim ?? '',
    row.met === undefined ? '' : row.met ? 'met' : 'MISSED',
    row.noise ?? '',
  ]);
  const all = [head, ...cells];
  const widths = head.map((_, column) => Math.max(...all.map((line) => line[column]?.length ?? 0)));
  return all
    .map((line) =>
      line
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}
