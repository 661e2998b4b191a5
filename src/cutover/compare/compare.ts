import { toGetView, type MediaUrl } from '../../contract/views.ts';
import type { ReadOutcome } from '../../redis/api-keys/callers.ts';
import { profileKey } from '../../redis/keys.ts';
import type { RedisClient } from '../../redis/connection/client.ts';
import { readJson } from '../forward/content.ts';
import { differingFields, type Shown } from './fields.ts';
import type { Comparison, KeyFinding } from './findings.ts';

/** What the legacy service answered to a GET of a profile. */
export interface LegacyAnswer {
  status: number;
  headers: readonly string[];
  /** Undefined where it was too long or broke off. */
  body: Buffer | undefined;
}

/** How the two services judge an API key, by what the legacy service answered; undefined where that does not tell. */
export function judgeKey(status: number, here: { kind: string }): KeyFinding | undefined {
  const isKnownHere = here.kind !== 'unknown' && here.kind !== 'no-user';
  if (status < 300 || status === 404) return isKnownHere ? 'agreed' : 'unmapped';
  return status === 401 && isKnownHere ? 'refused' : undefined;
}

/** The profile that the legacy service shows; `unreadable` where its response is no profile. */
export async function shownByLegacy({ status, headers, body }: LegacyAnswer): Promise<Shown | 'unreadable'> {
  if (status === 404) return undefined;
  const value = status === 200 ? await readJson({ headers: [...headers] }, body) : undefined;
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  return isObject ? value : 'unreadable';
}

/** Compares a profile as the legacy service shows it with the one stored here, as GET would show it. */
export async function compare(
  { store, base, mediaUrl }: { store: RedisClient; base: string; mediaUrl: MediaUrl },
  legacy: Shown | 'unreadable',
  here: Exclude<ReadOutcome, { kind: 'unknown' }>,
): Promise<Comparison | undefined> {
  const { userId } = here.caller;
  if (userId === undefined) return undefined;
  if (legacy === 'unreadable') return { kind: 'unreadable' };
  const profile = here.kind === 'profile' ? here.profile : undefined;
  const view = profile && toGetView(profile, mediaUrl);
  let fields = differingFields(legacy, view);
  if (fields.includes('profilePictureUrl') && profile?.picture?.kind === 'file') {
    const copiedFrom = await store.hget(profileKey(base, userId), 'po');
    fields = differingFields(legacy, view, copiedFrom ?? undefined);
  }
  return fields.length === 0 ? { kind: 'same', userId } : { kind: 'different', userId, fields };
}
