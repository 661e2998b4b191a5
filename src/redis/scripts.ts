import { apiKeyScripts, type ApiKeyScripts } from './api-keys.ts';
import type { RedisClient } from './connection/client.ts';
import { credentialScripts, type CredentialScripts } from './credentials.ts';
import { denylistScripts, type DenylistScripts } from './denylist.ts';
import { fsckScripts, type FsckScripts } from './fsck/scripts.ts';
import { objectScripts, type ObjectScripts } from './objects.ts';
import { organizationScripts, type OrganizationScripts } from './organizations.ts';
import { profileScripts, type ProfileScripts } from './profiles.ts';
import { reindexScripts, type ReindexScripts } from './reindex/scripts.ts';
import { loadScripts } from './script-loader.ts';

type Scripts = ApiKeyScripts &
  CredentialScripts &
  DenylistScripts &
  FsckScripts &
  ObjectScripts &
  OrganizationScripts &
  ProfileScripts &
  ReindexScripts;

/** A Redis (or cluster) client that knows the scripts of the service and the operator's tool. */
export type Store = RedisClient & Scripts;

/** Teaches a client the scripts. */
export function defineScripts(client: RedisClient): Store {
  return loadScripts<RedisClient, Scripts>(client, {
    ...apiKeyScripts,
    ...credentialScripts,
    ...denylistScripts,
    ...fsckScripts,
    ...objectScripts,
    ...organizationScripts,
    ...profileScripts,
    ...reindexScripts,
  });
}
