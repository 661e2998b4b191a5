/** Reads the query of a URL: each of these names at most once, and no others. */
export function readParameters<Name extends string>(
  url: string,
  names: readonly Name[],
): { fields: Partial<Record<Name, string>>; reasons: string[] } {
  const { searchParams } = new URL(url.replace(/^[^?]*/, ''), 'http://x/');
  const fields: Partial<Record<Name, string>> = {};
  const reasons: string[] = [];
  for (const [given, value] of searchParams) {
    const name = names.find((known) => known === given);
    if (name === undefined) reasons.push(`unknown parameter "${given}": there are only ${names.join(', ')}`);
    else if (fields[name] !== undefined) reasons.push(`${name} is given more than once`);
    else fields[name] = value;
  }
  return { fields, reasons };
}
