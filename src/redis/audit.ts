import { pairsOf } from '../lib/collections/pairs.ts';
import { auditKey } from './keys.ts';
import type { RedisClient } from './connection/client.ts';

/** One entry of an organization's audit trail (lua/lib/store.lua). */
export interface AuditEntry {
  /** ms */
  at: number;
  operation: string;
  /** Public id of the API key, or `operator` for the command line. */
  by: string;
  /** What the operation was about, such as `username`, `from`, `to`. */
  details: Record<string, string>;
}

const pageSize = 500;

/** The organization's audit trail, oldest first, in pages. Redis keeps about the last 100,000 entries. */
export async function* readAudit(store: RedisClient, base: string): AsyncGenerator<AuditEntry[]> {
  let from = '-';
  for (;;) {
    const page = await store.xrange(auditKey(base), from, '+', 'COUNT', pageSize);
    yield page.map(([id, fields]) => toEntry(id, fields));
    const last = page.at(-1);
    if (last === undefined || page.length < pageSize) return;
    from = `(${last[0]}`;
  }
}

function toEntry(id: string, fields: readonly string[]): AuditEntry {
  const { op = '', key = '', ...rest } = Object.fromEntries(pairsOf(fields));
  return { at: Number(id.split('-')[0]), operation: op, by: key, details: rest };
}
