export const minuteMs = 60_000;
export const hourMs = 3_600_000;
export const dayMs = 86_400_000;

/** How long the ledger remembers a call: the most that can be asked for. */
export const ledgerDays = 400;

/** The number of the UTC day that holds an instant (ms), counted from the epoch. */
export function dayOf(ms: number): number {
  return Math.floor(ms / dayMs);
}

/** A day number as YYYY-MM-DD. */
export function dayName(day: number): string {
  return new Date(day * dayMs).toISOString().slice(0, 10);
}
