/**
 * A row as a line of CSV (RFC 4180: CRLF, quotes where needed). A text that a spreadsheet would take for a formula,
 * because it begins with = + - @ or a control character, gets an apostrophe in front; so does what follows a `;` or a
 * tab in it, since many spreadsheets separate cells there. Numbers stay numbers; null is an empty cell.
 */
export function csvLine(row: readonly (string | number | null)[]): string {
  return `${row.map(cell).join(',')}\r\n`;
}

const formulaStart = /(?<=^|[;\t\r\n])(?=[\s\p{Cc}"]*[=+\-@])|^(?=\p{Cc})/gu;

function cell(value: string | number | null): string {
  if (value === null) return '';
  if (typeof value === 'number') return String(value);
  const text = value.replace(formulaStart, "'");
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
