import { compare, speed, tail } from '../report/compare.ts';
import type { Workload } from '../load/load.ts';
import { ratioRow, type Section } from '../report/section.ts';
import { playerKey } from '../load/seed.ts';

const work = (organization: string): Workload => ({
  method: 'GET',
  path: '/api/profile/',
  organization,
  apiKey: playerKey,
});

export const get: Section = {
  name: 'get',
  about: 'GET of a profile, against the limit and against the obvious version',
  run: async (resources) => {
    const { bridge, bare, afternoon } = await compare(resources, {
      bridge: { server: resources.bridge, work: work('bridge') },
      bare: { server: resources.bare, work: work('bare') },
      afternoon: { server: resources.afternoon, work: work('afternoon') },
    });
    return [
      ratioRow('GET profile, of bare node:http + HMGET', ...speed(bridge, bare), { atLeast: 0.75 }),
      ratioRow('GET profile, times afternoon Express', ...speed(bridge, afternoon), { atLeast: 3 }),
      ratioRow('GET profile, p99 at 64 connections, of bare', ...tail(bridge, bare), { atMost: 2 }),
    ];
  },
};
