import { compare, speed } from '../report/compare.ts';
import { ratioRow, type Section } from '../report/section.ts';
import { setAvatar } from '../load/workloads.ts';

export const put: Section = {
  name: 'put',
  about: 'PUT of an avatar reference, against the obvious version',
  run: async (resources) => {
    const { bridge, afternoon } = await compare(resources, {
      bridge: { server: resources.bridge, work: setAvatar('bridge') },
      afternoon: { server: resources.afternoon, work: setAvatar('afternoon') },
    });
    return [
      ratioRow('PUT reference, times afternoon Express', ...speed(bridge, afternoon), { atLeast: 1.5 }),
    ];
  },
};
