import { compare, speed, tail } from '../report/compare.ts';
import { ratioRow, type Section } from '../report/section.ts';
import { getProfile } from '../load/workloads.ts';

export const get: Section = {
  name: 'get',
  about: 'GET of a profile, against the limit and against the obvious version',
  run: async (resources) => {
    const { bridge, bare, afternoon } = await compare(resources, {
      bridge: { server: resources.bridge, work: getProfile('bridge') },
      bare: { server: resources.bare, work: getProfile('bare') },
      afternoon: { server: resources.afternoon, work: getProfile('afternoon') },
    });
    return [
      ratioRow('GET profile, of bare node:http + HMGET', ...speed(bridge, bare), { atLeast: 0.75 }),
      ratioRow('GET profile, times afternoon Express', ...speed(bridge, afternoon), { atLeast: 3 }),
      ratioRow('GET profile, p99 at 64 connections, of bare', ...tail(bridge, bare), { atMost: 2 }),
    ];
  },
};
