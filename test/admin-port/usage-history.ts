import { dayMs } from '../../src/lib/days.ts';
import { createLedger } from '../../src/deprecation/ledger/ledger.ts';
import type { Call } from '../../src/deprecation/ledger/tally.ts';
import { createLog } from '../../src/log.ts';
import { organizationsKey } from '../../src/redis/keys.ts';
import type { RedisClient } from '../../src/redis/connection/client.ts';

/** A call, and how often it was made at that time. */
export type PastCall = Partial<Call> & { at: number; times?: number };

/**
 * Writes what ledgers would have written of these calls: one ledger for each stretch of time (ms), the last of which is
 * still running at its end. Nobody counts the calls outside of all stretches.
 */
export async function writeHistory(
  client: RedisClient,
  prefix: string,
  stretches: readonly (readonly [start: number, end: number])[],
  calls: readonly PastCall[],
): Promise<void> {
  const organizations = new Set(calls.flatMap(({ organizationId }) => organizationId ?? []));
  if (organizations.size > 0) await client.sadd(organizationsKey(prefix), ...organizations);
  for (const [start, end] of stretches) {
    let now = start;
    const options = { log: createLog('silent'), now: () => now, flushMs: 1_000_000_000 };
    const ledger = createLedger(client, prefix, options);
    for (const { at, times = 1, ...call } of calls) {
      if (at < start || at >= end) continue;
      now = at;
      const whole = { operation: 'getProfile', status: 200, ...call };
      for (let i = 0; i < times; i += 1) ledger.record(whole);
    }
    now = end;
    // The last one keeps running: a page opened next sees it measuring.
    if (start === stretches.at(-1)?.[0]) await ledger.flush();
    else await ledger.close();
  }
}

/** Some clients calling every day in their own rhythm, some of them falling silent on the way. */
export function everydayCalls(options: {
  now: number;
  days: number;
  clients: number;
  organizations?: number;
  /** Calls a day of a busy client. */
  volume?: number;
}): PastCall[] {
  const { now, days, clients, organizations = 3, volume = 40 } = options;
  const today = Math.floor(now / dayMs);
  const operations = ['getProfile', 'getProfile', 'putProfile', 'banUsernames'];
  return Array.from({ length: clients }, (_, c) => c).flatMap((c) => {
    const lastDay = c % 4 === 3 ? (c * 7) % days : days;
    return Array.from({ length: lastDay }, (_each, d) => d).flatMap((d) => {
      const at = Math.min((today - days + 1 + d) * dayMs + ((c * 3571) % 1440) * 60_000, now - 1000 - c);
      const weekend = (today - days + 1 + d) % 7 >= 5 ? 0.6 : 1;
      const fading = c % 3 === 0 ? 1 - d / (days * 1.25) : 1;
      return operations.slice(0, 1 + (c % 4)).map((operation, o) => ({
        at,
        organizationId: ['acme', 'globex', 'initech'][c % organizations] ?? `org-${c % organizations}`,
        keyId: `k_${String(c).padStart(12, '0')}`,
        client: ['ios', 'android', 'web', 'unity'][c % 4] + `-${1 + (c % 5)}.${Math.floor(c / 4)}`,
        userAgent: `Game/${1 + (c % 5)} (device ${c % 9})`,
        operation,
        times: Math.max(
          1,
          Math.round(((volume * weekend * fading) / (o + 1)) * (1 + ((d * (c + 3)) % 5) / 10)),
        ),
      }));
    });
  });
}

/** Names that would inject markup, hide or reorder text, or push other text away. */
export const hostileNames = [
  '<script>document.title="hacked"</script>',
  '"><img src=x onerror=\'document.title="hacked"\'>',
  '</script><script>document.title="hacked"</script>',
  "'&amp;",
  '</script><!--',
  'gpj.\u202etxt\u2066',
  'x'.repeat(200),
  '👩‍👩‍👧🎮',
  'two  spaces',
];

/** Calls shortly before `now` (ms), in each of which everything has such a name. */
export function hostileCalls(now: number): PastCall[] {
  return hostileNames.map((text, i) => ({
    at: now - 5000 - i,
    organizationId: text,
    keyId: `k_${i}`,
    client: text,
    userAgent: text,
    operation: text,
    times: i + 1,
  }));
}
