import { setTimeout as sleep } from 'node:timers/promises';
import { pause, resume, type Server } from '../../../test/support/processes.ts';
import { failOver, moveSlot } from './cluster.ts';
import type { Fault, FaultContext } from './fault.ts';
import type { DrilledOrganization } from './organization.ts';
import { changeComparison, exportAll, repair } from './tools.ts';

type Injection = Fault['inject'];

/** Lets clients call undisturbed for a moment. */
const wait: Injection = async ({ random }) => {
  await sleep(random.between(300, 800));
};

const killed =
  (serverOf: (context: FaultContext) => Server): Injection =>
  async (context) => {
    const server = serverOf(context);
    await server.kill();
    await sleep(context.random.between(0, 500));
    await server.restart();
  };

const paused =
  (serverOf: (context: FaultContext) => Server): Injection =>
  async (context) => {
    const server = serverOf(context);
    pause(server);
    // Both less and more than a command, and a request, may take.
    await sleep(context.random.pick([100, 700, 2000, 4000])).finally(() => resume(server));
  };

const cutConnections: Injection = async ({ deployment: { store } }) => {
  await store.call('CLIENT', 'KILL', 'TYPE', 'normal');
};

const times =
  (count: number, inject: Injection): Injection =>
  async (context) => {
    for (let left = count; left > 0; left--) {
      await inject(context);
      await sleep(context.random.between(20, 300));
    }
  };

const ofEachOrganization =
  (inject: (context: FaultContext, organization: DrilledOrganization) => Promise<void>): Injection =>
  async (context) => {
    await Promise.all(context.organizations.map(async (one) => await inject(context, one)));
  };

const atOnce =
  (...injections: Injection[]): Injection =>
  async (context) => {
    await Promise.all(injections.map(async (inject) => await inject(context)));
  };

const soon =
  (inject: Injection): Injection =>
  async (context) => {
    await sleep(context.random.between(0, 60));
    await inject(context);
  };

const aBridge = ({ deployment, random }: FaultContext): Server => random.pick(deployment.bridges);

function redis({ deployment }: FaultContext): Server {
  if (deployment.redis === undefined) throw new Error('this fault needs a single Redis');
  return deployment.redis;
}

const compareAnew = ofEachOrganization(changeComparison);
// One at a time: where two masters give slots to each other, Redis may discard the keys of one (SCALING.md).
const moveSlots: Injection = async (context) => {
  for (const organization of context.organizations) await moveSlot(context, organization);
};

/** Each row is drilled by itself. */
export const faults: readonly Fault[] = [
  { name: 'none', store: 'single', inject: wait },
  { name: 'bridge killed', store: 'single', inject: killed(aBridge) },
  { name: 'bridge paused', store: 'single', inject: paused(aBridge) },
  { name: 'Redis killed', store: 'single', inject: killed(redis) },
  { name: 'Redis paused', store: 'single', inject: paused(redis) },
  { name: 'clients disconnect', store: 'single', impatient: true, inject: times(4, wait) },
  { name: 'connections to Redis cut', store: 'single', inject: times(4, cutConnections) },
  { name: 'long lists, bridge killed', store: 'single', longLists: true, inject: killed(aBridge) },
  { name: 'long lists, Redis paused', store: 'single', longLists: true, inject: paused(redis) },
  { name: 'org set --username-comparison', store: 'single', inject: times(3, compareAnew) },
  {
    name: 'org set --username-comparison, connections to Redis cut',
    store: 'single',
    inject: atOnce(compareAnew, soon(cutConnections)),
  },
  { name: 'fsck --repair', store: 'single', inject: times(4, repair) },
  { name: 'migrate export', store: 'single', inject: times(4, exportAll) },
  { name: 'slots move', store: 'cluster', inject: moveSlots },
  { name: 'slots move, fsck --repair', store: 'cluster', inject: atOnce(moveSlots, soon(repair)) },
  { name: 'slots move, migrate export', store: 'cluster', inject: atOnce(moveSlots, soon(exportAll)) },
  {
    name: 'slots move, org set --username-comparison',
    store: 'cluster',
    inject: atOnce(moveSlots, soon(compareAnew)),
  },
  {
    name: 'slots move, WRITE_REPLICAS=1',
    store: 'cluster',
    environment: { WRITE_REPLICAS: '1' },
    inject: moveSlots,
  },
  {
    name: 'failover',
    store: 'cluster',
    breaksDeployment: true,
    mayLoseWrites: true,
    inject: failOver,
  },
  {
    name: 'failover, WRITE_REPLICAS=1',
    store: 'cluster',
    environment: { WRITE_REPLICAS: '1' },
    breaksDeployment: true,
    inject: failOver,
  },
];
