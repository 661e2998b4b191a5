import { hasCalls } from '../deprecation/ledger/ledger-reader.ts';
import type { RedisClient } from '../redis/connection/client.ts';
import { organizationBase } from '../redis/keys.ts';
import { organizationExists } from '../redis/organizations.ts';
import type { AdminProblem } from './problem.ts';

/** The problem if an organization neither exists nor has calls in the ledger: a report would say that nobody calls. */
export async function unknownOrganization(
  store: RedisClient,
  keyPrefix: string,
  id: string | undefined,
): Promise<AdminProblem | undefined> {
  if (id === undefined || (await organizationExists(store, organizationBase(keyPrefix, id))))
    return undefined;
  if (await hasCalls(store, keyPrefix, id)) return undefined;
  return {
    status: 404,
    title: 'No such organization',
    detail: `there is no organization ${JSON.stringify(id)}`,
    remedy: 'To see which there are, run: profile-bridge admin org list',
  };
}
