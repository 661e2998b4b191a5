/** Text that comes from outside, made harmless for a terminal: what would steer it or hide is written out. */
export function printable(text: string): string {
  return text.replaceAll(
    /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu,
    (character) => `\\u{${character.codePointAt(0)?.toString(16) ?? ''}}`,
  );
}

/**
 * Rows as aligned columns under their headings; what has no value is a dash. The columns of these `numbers`, by
 * their headings, stand to the right.
 */
export function table(
  headings: readonly string[],
  rows: readonly (readonly (string | undefined)[])[],
  numbers: readonly string[] = [],
): string {
  const cells = [headings, ...rows.map((row) => row.map((cell) => printable(cell ?? '') || '-'))];
  const widths = headings.map((_, column) =>
    cells.reduce((most, row) => Math.max(most, width(row[column] ?? '')), 0),
  );
  return cells
    .map((row) =>
      row
        .map((cell, column) => {
          const space = ' '.repeat((widths[column] ?? 0) - width(cell));
          return numbers.includes(headings[column] ?? '') ? space + cell : cell + space;
        })
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

/** Names and values, one pair a line. */
export function list(pairs: readonly (readonly [string, string | undefined])[]): string {
  const longest = Math.max(...pairs.map(([name]) => width(name)));
  return pairs.map(([name, value]) => `${name.padEnd(longest)}  ${printable(value ?? '') || '-'}`).join('\n');
}

function width(text: string): number {
  return Array.from(text).length;
}
