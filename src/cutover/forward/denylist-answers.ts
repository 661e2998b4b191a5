/** The list of strings that an answer of the legacy service has under a name. */
export function stringsIn(answer: unknown, name: string): string[] | undefined {
  const list = (answer as Record<string, unknown> | null | undefined)?.[name];
  return isStrings(list) ? list : undefined;
}

/**
 * The names that a ban could not add (contract 4.3.5), or for which an overwrite was not made (4.5.2). The contract does
 * not show the list's shape, nor the status: it is any one list of strings. Without a body, there are none.
 */
export function namesNotAdded(answer: unknown): string[] | undefined {
  if (answer === undefined) return [];
  if (isStrings(answer)) return answer;
  if (typeof answer !== 'object' || answer === null) return undefined;
  const [list, ...others] = Object.values(answer).filter(isStrings);
  return stringsIn(answer, 'usernamesNotAdded') ?? (others.length === 0 ? list : undefined);
}

function isStrings(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((one) => typeof one === 'string');
}
