import { readFileSync } from 'node:fs';
import { beforeAll, expect, test } from '@jest/globals';
import { PodMonitor } from '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/PodMonitor';
import { Deployment } from 'kubernetes-models/apps/v1/Deployment';
import { NetworkPolicy } from 'kubernetes-models/networking.k8s.io/v1/NetworkPolicy';
import { PodDisruptionBudget } from 'kubernetes-models/policy/v1/PodDisruptionBudget';
import { Service } from 'kubernetes-models/v1/Service';
import { isCollection, parseAllDocuments, visit } from 'yaml';
import { readConfig } from '../../src/config.ts';

interface Container {
  env: { name: string; value: string }[];
  ports: { name: string; containerPort: number }[];
  volumeMounts: { name: string; mountPath: string }[];
}

interface Manifest {
  kind: string;
  spec: Record<string, unknown> & {
    template: { spec: { terminationGracePeriodSeconds: number; containers: [Container] } };
  };
}

const kinds = { Deployment, Service, PodDisruptionBudget, NetworkPolicy, PodMonitor };
let manifests: Manifest[];
let container: Container;
beforeAll(() => {
  const text = readFileSync('scripts/deploy/kubernetes.yaml', 'utf8');
  manifests = parseAllDocuments(text).map((document) => document.toJS() as Manifest);
  [container] = deployment().spec.template.spec.containers;
});

function deployment(): Manifest {
  const found = manifests.find(({ kind }) => kind === 'Deployment');
  if (found === undefined) throw new Error('no Deployment');
  return found;
}

test('no unquoted text in braces has a question mark, which the parser of kubectl refuses', () => {
  const refused: unknown[] = [];
  for (const document of parseAllDocuments(readFileSync('scripts/deploy/kubernetes.yaml', 'utf8'))) {
    visit(document, {
      Scalar: (_key, { type, source = '' }, path) => {
        const isInBraces = path.some((node) => isCollection(node) && node.flow === true);
        if (isInBraces && type === 'PLAIN' && source.includes('?')) refused.push(source);
      },
    });
  }
  expect(refused).toEqual([]);
});

test('every object of kubernetes.yaml matches the schema of its kind', () => {
  expect(manifests.map(({ kind }) => kind).toSorted()).toEqual(Object.keys(kinds).toSorted());
  for (const manifest of manifests) {
    const Kind = kinds[manifest.kind as keyof typeof kinds];
    new Kind(manifest as never).validate();
  }
});

test('the schemas reject what is wrong', () => {
  const broken = structuredClone(deployment());
  Object.assign(broken.spec, { replicas: 'three' });
  expect(() => new Deployment(broken as never).validate()).toThrow(/replicas/);
});

test('the configuration is valid, apart from the secrets that are not there', () => {
  const env = Object.fromEntries(
    container.env.map(({ name, value }) => [name.replace(/_FILE$/, ''), value] as const),
  );
  const secrets = { REDIS_URL: 'redis://redis:6379', ADMIN_TOKEN: '0123456789abcdef' };
  const config = readConfig({ ...env, ...secrets });
  const ports = container.ports.map(({ containerPort }) => containerPort);
  expect(ports).toEqual([config.port, 8081]);
  const files = container.env.filter(({ name }) => name.endsWith('_FILE')).map(({ value }) => value);
  for (const file of files) {
    expect(container.volumeMounts.some(({ mountPath }) => file.startsWith(`${mountPath}/`))).toBe(true);
  }
});

/** The values of a property, wherever it is. */
function valuesOf(name: string, within: unknown): unknown[] {
  if (typeof within !== 'object' || within === null) return [];
  return Object.entries(within).flatMap(([key, value]) => [
    ...(key === name ? [value as unknown] : []),
    ...valuesOf(name, value),
  ]);
}

test('every object selects the pods of the deployment', () => {
  const { labels } = (deployment().spec.template as unknown as { metadata: { labels: object } }).metadata;
  const selectors = manifests.map(({ kind, spec }) => {
    if (kind === 'Service') return spec['selector'];
    const selector = spec['selector'] ?? spec['podSelector'];
    return (selector as { matchLabels: unknown }).matchLabels;
  });
  expect(selectors).toEqual(manifests.map(() => labels));
});

test('ports, volumes and keys of the secret are referred to by names that exist', () => {
  const ports = container.ports.map(({ name }) => name);
  const specs = manifests.map(({ spec }) => spec);
  const portNames = [...valuesOf('port', specs), ...valuesOf('targetPort', specs)].filter(
    (port) => typeof port === 'string',
  );
  expect(new Set(portNames)).toEqual(new Set(ports));

  const [volumes] = valuesOf('volumes', deployment().spec.template.spec) as [{ name: string }[]];
  const mounted = container.volumeMounts.map(({ name }) => name);
  expect(volumes.map(({ name }) => name)).toEqual(mounted);

  const text = readFileSync('scripts/deploy/kubernetes.yaml', 'utf8');
  const created = [...text.matchAll(/--from-literal=([\w-]+)=/g)].map(([, key]) => key);
  const read = container.env
    .filter(({ name }) => name.endsWith('_FILE'))
    .map(({ value }) => value.split('/').at(-1));
  expect(new Set(read)).toEqual(new Set(created));
  expect(valuesOf('credentials', specs)).toEqual([{ name: 'profile-bridge', key: 'admin-token' }]);
});

test('a pod meets the restricted pod security standard', () => {
  const pod = deployment().spec.template.spec as unknown as { securityContext: object };
  expect(pod.securityContext).toEqual({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } });
  expect(valuesOf('securityContext', container as unknown)).toEqual([
    { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } },
  ]);
});

test('a pod has the time to drain and to shut down before it is killed', () => {
  const drainDelay = Number(container.env.find(({ name }) => name === 'DRAIN_DELAY')?.value);
  const { terminationGracePeriodSeconds } = deployment().spec.template.spec;
  expect(terminationGracePeriodSeconds).toBeGreaterThan(drainDelay + 8);
});
