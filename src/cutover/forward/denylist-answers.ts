/** The list of strings that an answer of the legacy service has under a name. */
export function stringsIn(answer: unknown, name: string): string[] | undefined {
  const list = (answer as Record<string, unknown> | null | undefined)?.[name];
  return isStrings(list) ? list : undefined;
}

/**
 * The names that a ban could not add (contract 4.3.5), or for which an overwrite was not made (4.5.2). The contract does
 * not show the list's shape, nor the status: it is the only list, and one of strings. Without any content, there are
 * none; undefined if it cannot be told.
 */
export function namesNotAdded(answer: unknown): string[] | undefined {
  if (isEmpty(answer)) return [];
  if (isStrings(answer)) return answer;
  if (typeof answer !== 'object' || answer === null) return undefined;
  const [list, ...others] = Object.values(answer).filter(Array.isArray);
  return (
    stringsIn(answer, 'usernamesNotAdded') ?? (others.length === 0 && isStrings(list) ? list : undefined)
  );
}

/** The names that were not removed since they are in use (contract 4.4); undefined if it cannot be told. */
export function namesInUse(answer: unknown): string[] | undefined {
  return isEmpty(answer) ? [] : stringsIn(answer, 'usernamesInUse');
}

function isEmpty(answer: unknown): boolean {
  if (answer === undefined) return true;
  return typeof answer === 'object' && answer !== null && Object.keys(answer).length === 0;
}

function isStrings(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((one) => typeof one === 'string');
}
