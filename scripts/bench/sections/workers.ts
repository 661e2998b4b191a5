import { compare, speed } from '../report/compare.ts';
import { ratioRow, type Row, type Section } from '../report/section.ts';
import { getProfile } from '../load/workloads.ts';
import { residentMiB } from '../../../test/support/run/process-usage.ts';
import type { Served } from '../servers/serve.ts';

const work = getProfile('bridge');

export const workers: Section = {
  name: 'workers',
  about: 'GET of a profile and resident memory, WORKERS=2 against WORKERS=1 (only when named)',
  // It says more about the machine's cores than about the bridge.
  onlyWhenNamed: true,
  run: async (resources) => {
    const one = await resources.openBridge({ WORKERS: '1' });
    const two = await resources.openBridge({ WORKERS: '2' });
    const measured = await compare(resources, { two: { server: two, work }, one: { server: one, work } });
    return [
      ratioRow('GET profile, 2 workers, times 1 worker', ...speed(measured.two, measured.one)),
      memoryRow(two, one),
    ];
  },
};

function memoryRow(two: Served, one: Served): Row {
  const [ofTwo, ofOne] = [residentMiB(two.pid), residentMiB(one.pid)];
  if (ofTwo === undefined || ofOne === undefined) {
    return { what: 'resident memory', result: 'not available on this system', figures: {} };
  }
  return {
    what: 'resident after that, 2 workers, times 1 worker',
    result: (ofTwo / ofOne).toFixed(2),
    noise: `${ofTwo} : ${ofOne} MiB, all processes together`,
    figures: { twoMiB: ofTwo, oneMiB: ofOne },
  };
}
