/** How long the ledger remembers a call: the longest period a report can cover. */
export const ledgerDays = 400;

/** The operator's policy. README.md beside this file has the table of all keys of this folder. */
export function policyKey(prefix: string): string {
  return `${prefix}deprecation:policy`;
}

/** Organization id → day number of its latest call. */
export function activeOrganizationsKey(prefix: string): string {
  return `${prefix}deprecation:orgs`;
}

/** The counters that were alive on a UTC day; all days share a slot, to be read in one go. */
export function coverageKey(prefix: string, day: string): string {
  return `${prefix}deprecation:{coverage}:${day}`;
}

/** Stands in for an organization's base where the call named none, or one nobody knows. No id meets it. */
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
