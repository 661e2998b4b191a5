import { compare, speed, type Contender } from '../report/compare.ts';
import type { Resources } from '../resources.ts';
import { users, type Workload } from '../load/load.ts';
import { ratioRow, type Section } from '../report/section.ts';
import { adminKey, baseOf, playerKey, rename } from '../load/seed.ts';
import type { Served } from '../servers/serve.ts';

/** Every request sets a new name. */
const change = (organization: string): Workload => ({
  method: 'PUT',
  path: '/api/profile/',
  organization,
  apiKey: playerKey,
  body: '{"username":"renamed-{n}"}',
});

/** Every request denies a name in use, and so renames its user. */
const ban = (organization: string): Workload => ({
  method: 'POST',
  path: '/api/profile/username/deny/',
  organization,
  apiKey: adminKey,
  body: '{"banned-{user}-{turn}":"banned-{user}-{nextTurn}"}',
});

const bans = ({ store }: Resources, server: Served, organization: string): Contender => ({
  server,
  work: ban(organization),
  prepare: (first) => rename(store, baseOf(organization), (user) => `banned-${user}-${first / users}`),
});

export const names: Section = {
  name: 'names',
  about: 'username change and ban, against a bare server that calls the same script',
  run: async (resources) => {
    const changed = await compare(resources, {
      bridge: { server: resources.bridge, work: change('bridge') },
      bare: { server: resources.bare, work: change('bare') },
    });
    const banned = await compare(resources, {
      bridge: bans(resources, resources.bridge, 'bridge'),
      bare: bans(resources, resources.bare, 'bare'),
    });
    const aim = { atLeast: 0.6 };
    return [
      ratioRow('username change, of bare + same script', ...speed(changed.bridge, changed.bare), aim),
      ratioRow('ban and rename, of bare + same script', ...speed(banned.bridge, banned.bare), aim),
    ];
  },
};
