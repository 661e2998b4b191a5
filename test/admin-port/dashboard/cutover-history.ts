import { createFindings } from '../../../src/cutover/compare/findings.ts';
import type { Mode } from '../../../src/cutover/modes.ts';
import { switchMode } from '../../../src/cutover/switch/coordinator.ts';
import { joinCutover, type Cutover } from '../../../src/cutover/switch/instance.ts';
import { readCutover } from '../../../src/cutover/switch/registry.ts';
import { createLog } from '../../../src/log.ts';
import type { RedisClient } from '../../../src/redis/connection/client.ts';
import { cutoverKey, legacyPicturesKey } from '../../../src/redis/keys.ts';

export interface PastMode {
  mode: Mode;
  /** ms */
  since: number;
}

/**
 * Goes through these modes, the first of which is shadow, with an instance that stays, and dates them afterwards. In
 * the last one a user differs, an API key is unknown, the change of a user could not be adopted, and pictures were counted.
 */
export async function writeCutover(
  client: RedisClient,
  keyPrefix: string,
  past: readonly PastMode[],
): Promise<Cutover> {
  const log = createLog('silent');
  const options = { keyPrefix, kind: 'bridge', legacy: true, replay: true, log } as const;
  const instance = await joinCutover(client, options);
  for (const { mode: to } of past.slice(1)) {
    const { mode: from } = await readCutover(client, keyPrefix);
    const outcome = await switchMode(client, keyPrefix, {
      from,
      to,
      holdMs: 10_000,
      by: `cutover set ${to}`,
      signal: new AbortController().signal,
      onProgress: () => {},
      beingLoaded: () => Promise.resolve([]),
      obstacles: () => Promise.resolve([]),
    });
    if (outcome.kind !== 'switched') throw new Error(outcome.kind);
  }
  const key = cutoverKey(keyPrefix);
  const { epoch, history } = await readCutover(client, keyPrefix);
  const first = epoch - history.length + 1;
  for (const [i, { mode, since }] of past.entries()) {
    await client.hset(key, `history:${first + i}`, `${since} ${mode} ${history[i]?.by ?? ''}`);
  }
  const since = past.at(-1)?.since ?? 0;
  await client.hset(key, 'since', String(since));

  const findings = createFindings(client, keyPrefix, log);
  findings.recordComparison('acme', since, { kind: 'same', userId: 'u1' });
  findings.recordComparison('acme', since, {
    kind: 'different',
    userId: 'u2',
    fields: ['username', 'avatar.url'],
  });
  findings.recordComparison('acme', since, { kind: 'different', userId: 'u2', fields: ['username'] });
  const unmapped = { organizationId: 'acme', sha256: 'a'.repeat(64), userAgent: 'game/7' };
  findings.judgeKey(unmapped, 200, 'unknown');
  findings.recordFailedAdoption('acme', 'u3', 1, 'profile-not-shown');
  await findings.close();
  await client.set(legacyPicturesKey(keyPrefix), `1204 ${Date.now()}`);
  return instance;
}
