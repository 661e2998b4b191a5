import { compare, speed } from '../report/compare.ts';
import type { Workload } from '../load/load.ts';
import { ratioRow, type Section } from '../report/section.ts';
import { avatar, playerKey } from '../load/seed.ts';

const work = (organization: string): Workload => ({
  method: 'PUT',
  path: '/api/profile/',
  organization,
  apiKey: playerKey,
  body: JSON.stringify({ avatarObjectDefinitionId: avatar }),
});

export const put: Section = {
  name: 'put',
  about: 'PUT of an avatar reference, against the obvious version',
  run: async (resources) => {
    const { bridge, afternoon } = await compare(resources, {
      bridge: { server: resources.bridge, work: work('bridge') },
      afternoon: { server: resources.afternoon, work: work('afternoon') },
    });
    return [
      ratioRow('PUT reference, times afternoon Express', ...speed(bridge, afternoon), { atLeast: 1.5 }),
    ];
  },
};
