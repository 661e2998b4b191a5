/** Control, format and separator characters: they could hide or reorder what is printed. */
const unprintable = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** Makes text from outside safe to print: control, format and separator characters become `\u{…}` escapes. */
export function printable(text: string): string {
  // Faster for printable ASCII, as most text is.
  if (/^[ -~]*$/.test(text)) return text;
  return text.replaceAll(unprintable, (character) => `\\u{${character.codePointAt(0)?.toString(16) ?? ''}}`);
}

/** Well-formed text without line breaks as one word for a POSIX shell, in printable characters. */
export function shellWord(text: string): string {
  if (/^[\w@%+=:,./-]+$/.test(text)) return text;
  if (printable(text) === text) return quoted(text);
  const octal = (character: string): string =>
    Array.from(Buffer.from(character), (byte) => `\\${byte.toString(8).padStart(3, '0')}`).join('');
  const format = text.replaceAll(/[\\%]/g, '$&$&').replaceAll(unprintable, octal);
  return `"$(printf -- ${quoted(format)})"`;
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** Rows as aligned columns under their headings, `-` for no value. Columns named in `numbers` are right-aligned. */
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

/** Names and values, one pair on each line. */
export function list(pairs: readonly (readonly [string, string | undefined])[]): string {
  const longest = Math.max(...pairs.map(([name]) => width(name)));
  return pairs.map(([name, value]) => `${name.padEnd(longest)}  ${printable(value ?? '') || '-'}`).join('\n');
}

function width(text: string): number {
  return Array.from(text).length;
}
