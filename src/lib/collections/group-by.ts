import { getOrInsert } from './get-or-insert.ts';

/** Groups values by key, in order; `Map.groupBy` comes with Node 21. */
export function groupBy<Value>(
  values: readonly Value[],
  keyOf: (value: Value) => string,
): Map<string, [Value, ...Value[]]> {
  const groups = new Map<string, Value[]>();
  for (const value of values) getOrInsert(groups, keyOf(value), () => []).push(value);
  return groups as Map<string, [Value, ...Value[]]>;
}
