import { Ajv2020 } from 'ajv/dist/2020.js';
import { parseLink } from './links.ts';
import type { Exemption, PolicyLayer } from './policy.ts';

/** The operator's settings. The version grows by one with each change. */
export interface OperatorPolicy {
  version: number;
  changedAt: number;
  layer: PolicyLayer;
}

/** The form that is stored in Redis, with a list of exemptions of each kind. */
interface StoredPolicy extends OperatorPolicy {
  layer: Omit<PolicyLayer, 'exemptions'> & { exemptOrganizations?: Exemption[]; exemptKeys?: Exemption[] };
}

const time = { type: 'number', minimum: -8.64e15, maximum: 8.64e15 };
const link = { type: 'string', format: 'link' };
const listOf = (properties: Record<string, object>) => ({
  type: 'array',
  items: { type: 'object', required: Object.keys(properties), properties },
});
const layerProperties: Record<keyof StoredPolicy['layer'], object> = {
  deprecatedAt: time,
  sunsetAt: time,
  successorUrl: link,
  documentationUrl: link,
  sunsetUrl: link,
  afterSunset: { enum: ['serve', 'gone'] },
  brownouts: listOf({ start: time, end: time }),
  exemptOrganizations: listOf({ organizationId: { type: 'string' }, until: time }),
  exemptKeys: listOf({ keyId: { type: 'string' }, until: time }),
};

const isStored = new Ajv2020({
  formats: { link: (text: string) => parseLink(text).kind === 'ok' },
}).compile<StoredPolicy>({
  type: 'object',
  required: ['version', 'changedAt', 'layer'],
  properties: {
    version: time,
    changedAt: time,
    layer: { type: 'object', additionalProperties: false, properties: layerProperties },
  },
});

/** The policy of an operator who has set nothing. */
export const emptyPolicy: OperatorPolicy = { version: 0, changedAt: 0, layer: {} };

/** Reads the JSON that Redis holds (null: never set); undefined for anything that is not a policy. */
export function readStored(text: string | null): OperatorPolicy | undefined {
  if (text === null) return emptyPolicy;
  try {
    const stored: unknown = JSON.parse(text);
    if (!isStored(stored)) return undefined;
    const { exemptOrganizations = [], exemptKeys = [], ...layer } = stored.layer;
    return { ...stored, layer: { ...layer, exemptions: [...exemptOrganizations, ...exemptKeys] } };
  } catch {
    return undefined;
  }
}

/** The text that `readStored` reads. */
export function toStored(policy: OperatorPolicy): string {
  const { exemptions = [], ...layer } = policy.layer;
  const exemptOrganizations = exemptions.filter((exemption) => 'organizationId' in exemption);
  const exemptKeys = exemptions.filter((exemption) => 'keyId' in exemption);
  return JSON.stringify({ ...policy, layer: { ...layer, exemptOrganizations, exemptKeys } });
}
