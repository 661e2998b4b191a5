import { compare, speed, type Contender } from '../report/compare.ts';
import type { Resources } from '../resources.ts';
import { users } from '../load/load.ts';
import { ratioRow, type Section } from '../report/section.ts';
import { baseOf, rename } from '../load/seed.ts';
import { banUsername, changeUsername } from '../load/workloads.ts';
import type { Served } from '../servers/serve.ts';

const bans = ({ store }: Resources, server: Served, organization: string): Contender => ({
  server,
  work: banUsername(organization),
  prepare: (first) => rename(store, baseOf(organization), (user) => `banned-${user}-${first / users}`),
});

export const names: Section = {
  name: 'names',
  about: 'username change and ban, against a bare server that calls the same script',
  run: async (resources) => {
    const changed = await compare(resources, {
      bridge: { server: resources.bridge, work: changeUsername('bridge') },
      bare: { server: resources.bare, work: changeUsername('bare') },
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
