import { apiKeyScripts, type ApiKeyScripts } from './api-keys/api-keys.ts';
import type { RedisClient } from './connection/client.ts';
import { callerScripts, type CallerScripts } from './api-keys/callers.ts';
import { denylistScripts, type DenylistScripts } from './denylist.ts';
import { fsckScripts, type FsckScripts } from './fsck/scripts.ts';
import { objectScripts, type ObjectScripts } from './objects.ts';
import { organizationScripts, type OrganizationScripts } from './organizations.ts';
import { profileScripts, type ProfileScripts } from './profiles.ts';
import { reindexScripts, type ReindexScripts } from './reindex/scripts.ts';
import { loadScripts, type ConfirmedWrites } from './connection/script-loader.ts';

type Scripts = ApiKeyScripts &
  CallerScripts &
  DenylistScripts &
  FsckScripts &
  ObjectScripts &
  OrganizationScripts &
  ProfileScripts &
  ReindexScripts;

/** A Redis (or cluster) client that knows the scripts of the service and the operator's tool. */
export type Store = RedisClient & Scripts;

/** Teaches a client the scripts; with `confirmed`, a write is answered once that many replicas have it. */
export function defineScripts(client: RedisClient, confirmed?: ConfirmedWrites): Store {
  const files = {
    ...apiKeyScripts,
    ...callerScripts,
    ...denylistScripts,
    ...fsckScripts,
    ...objectScripts,
    ...organizationScripts,
    ...profileScripts,
    ...reindexScripts,
  };
  return loadScripts<RedisClient, Scripts>(client, files, confirmed);
}
