/** Rows as aligned columns under their headings; what has no value is a dash. */
export function table(
  headings: readonly string[],
  rows: readonly (readonly (string | undefined)[])[],
): string {
  const cells = [headings, ...rows.map((row) => row.map((cell) => printable(cell ?? '') || '-'))];
  const widths = headings.map((_, column) => Math.max(...cells.map((row) => width(row[column] ?? ''))));
  return cells
    .map((row) =>
      row
        .map((cell, column) => cell + ' '.repeat((widths[column] ?? 0) - width(cell)))
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

/** Text from the store, made harmless for a terminal. */
export function printable(text: string): string {
  return text.replaceAll(
    /[\p{Cc}\p{Cf}]/gu,
    (character) => `\\u{${character.codePointAt(0)?.toString(16) ?? ''}}`,
  );
}

function width(text: string): number {
  return Array.from(text).length;
}
