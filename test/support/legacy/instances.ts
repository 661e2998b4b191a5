import { joinCutover, type Admission, type Cutover } from '../../../src/cutover/switch/instance.ts';
import { createLog } from '../../../src/log.ts';
import type { RedisClient } from '../../../src/redis/connection/client.ts';

/** An instance in this process, as the bridge has one. */
export async function joinTestInstance(
  store: RedisClient,
  keyPrefix: string,
  legacy = true,
  replay = false,
): Promise<Cutover> {
  return await joinCutover(store, {
    keyPrefix,
    kind: 'bridge',
    legacy,
    replay,
    log: createLog('error'),
  });
}

/** Admits a change, which must not have to wait. */
export function admitAtOnce(one: Cutover): Admission {
  const admission = one.admitChange();
  if (admission instanceof Promise) throw new Error('the change had to wait');
  return admission;
}
