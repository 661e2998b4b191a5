import { Ajv2020 } from 'ajv/dist/2020.js';
import { parseLink } from './links.ts';
import type { PolicyLayer } from './policy.ts';

/** The operator's settings as Redis holds them. The version grows by one with each change. */
export interface StoredPolicy {
  version: number;
  changedAt: number;
  layer: PolicyLayer;
}

const time = { type: 'number', minimum: -8.64e15, maximum: 8.64e15 };
const link = { type: 'string', format: 'link' };
const listOf = (properties: Record<string, object>) => ({
  type: 'array',
  items: { type: 'object', required: Object.keys(properties), properties },
});
const layer: Record<keyof PolicyLayer, object> = {
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
    layer: { type: 'object', additionalProperties: false, properties: layer },
  },
});

/** What holds before the operator has set anything. */
export const emptyPolicy: StoredPolicy = { version: 0, changedAt: 0, layer: {} };

/** Reads the JSON that Redis holds (null: never set); undefined for anything that is not a policy. */
export function readStored(text: string | null): StoredPolicy | undefined {
  if (text === null) return emptyPolicy;
  try {
    const stored: unknown = JSON.parse(text);
    return isStored(stored) ? stored : undefined;
  } catch {
    return undefined;
  }
}
