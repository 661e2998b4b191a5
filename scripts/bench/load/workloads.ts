import type { Workload } from './load.ts';
import { adminKey, avatar, playerKey } from './seed.ts';

/** Requests to an organization that has been seeded. */
export const getProfile = (organization: string): Workload => ({
  method: 'GET',
  path: '/api/profile/',
  organization,
  apiKey: playerKey,
});

export const setAvatar = (organization: string): Workload => ({
  ...getProfile(organization),
  method: 'PUT',
  body: JSON.stringify({ avatarObjectDefinitionId: avatar }),
});

/** Every request sets a new name. */
export const changeUsername = (organization: string): Workload => ({
  ...getProfile(organization),
  method: 'PUT',
  body: '{"username":"renamed-{n}"}',
});

/** Every request denies a name in use, and so renames its user. */
export const banUsername = (organization: string): Workload => ({
  method: 'POST',
  path: '/api/profile/username/deny/',
  organization,
  apiKey: adminKey,
  body: '{"banned-{user}-{turn}":"banned-{user}-{nextTurn}"}',
});
