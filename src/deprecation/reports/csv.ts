/**
 * Rows as CSV (RFC 4180: CRLF, quoted where need be). Text that a spreadsheet would take for a formula (it begins
 * with = + - @ or a control character) gets an apostrophe in front; numbers stay numbers; null is an empty cell.
 */
export function toCsv(rows: readonly (readonly (string | number | null)[])[]): string {
  return rows.map((row) => `${row.map(cell).join(',')}\r\n`).join('');
}

function cell(value: string | number | null): string {
  if (value === null) return '';
  if (typeof value === 'number') return String(value);
  const text = /^[\s\p{Cc}]*[=+\-@]|^\p{Cc}/u.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
