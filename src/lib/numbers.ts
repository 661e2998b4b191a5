const grouped = new Intl.NumberFormat('en');

/** A number with separators: 12,345. */
export function formatNumber(value: number): string {
  return grouped.format(value);
}

/** A count with its noun: 1 record, 12,345 records. */
export function counted(count: number, noun: string): string {
  return `${formatNumber(count)} ${noun}${count === 1 ? '' : 's'}`;
}

/** The sum of some numbers. */
export function totalOf(numbers: Iterable<number>): number {
  let total = 0;
  for (const one of numbers) total += one;
  return total;
}
