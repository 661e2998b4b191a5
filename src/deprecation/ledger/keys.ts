import { dayMs } from '../../lib/days.ts';

/** How long the ledger remembers a call: the longest period a report can cover. */
export const ledgerDays = 400;

/** When the keys of a day expire, in seconds since the epoch. */
export function expiryOf(day: number): number {
  return ((day + 1 + ledgerDays) * dayMs) / 1000;
}

/** The operator's policy. All keys of the ledger are documented in src/deprecation/README.md. */
export const policyKey = (prefix: string): string => `${prefix}deprecation:policy`;

/** Organization id → day number of its latest call. */
export const activeOrganizationsKey = (prefix: string): string => `${prefix}deprecation:orgs`;

/** The instances that were counting on a UTC day; all days are in one slot, so that one pipeline reads them. */
export const coverageKey = (prefix: string, day: string): string => `${prefix}deprecation:{coverage}:${day}`;

/** Stands for an organization's base, for calls that named none or an unknown one. No organization has it. */
export const unknownOrganizationBase = (prefix: string): string => `${prefix}deprecation:{unknown}:`;

/** The counts of one organization on one UTC day (YYYY-MM-DD). */
export const dayKey = (base: string, day: string): string => `${base}use:${day}`;

/** When the organization's keys were last used. */
export const usedKeysKey = (base: string): string => `${base}use:keys`;

/** The number of an instance's last batch for the organization. */
export const lastBatchKey = (base: string, instance: string): string => `${base}use:flush:${instance}`;

/** What is known of one API key: its label, first and last use per operation, user agents. */
export const usedKeyKey = (base: string, keyId: string): string => `${base}use:key:${keyId}`;
