import { dayMs } from '../../lib/days.ts';

/** How long the ledger remembers a call: the longest period a report can cover. */
export const ledgerDays = 400;

/** When the keys of a day expire, in seconds since the epoch. */
export function expiryOf(day: number): number {
  return ((day + 1 + ledgerDays) * dayMs) / 1000;
}

/** The operator's policy. All keys of the ledger are documented in src/deprecation/README.md. */
export function policyKey(prefix: string): string {
  return `${prefix}deprecation:policy`;
}

/** Organization id → day number of its latest call. */
export function activeOrganizationsKey(prefix: string): string {
  return `${prefix}deprecation:orgs`;
}

/** The instances that were counting on a UTC day; all days are in one slot, so that one pipeline reads them. */
export function coverageKey(prefix: string, day: string): string {
  return `${prefix}deprecation:{coverage}:${day}`;
}

/** In place of an organization's base, for calls that named none or an unknown one. No organization has it. */
export function unknownOrganizationBase(prefix: string): string {
  return `${prefix}deprecation:{unknown}:`;
}

/** The counts of one organization on one UTC day (YYYY-MM-DD). */
export function dayKey(base: string, day: string): string {
  return `${base}use:${day}`;
}

/** When the organization's keys were last used. */
export function usedKeysKey(base: string): string {
  return `${base}use:keys`;
}

/** The number of an instance's last batch for the organization. */
export function lastBatchKey(base: string, instance: string): string {
  return `${base}use:flush:${instance}`;
}

/** Of one API key: label, first and last use per operation, user agents. */
export function usedKeyKey(base: string, keyId: string): string {
  return `${base}use:key:${keyId}`;
}
