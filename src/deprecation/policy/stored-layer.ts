import { parseLink } from './links.ts';
import type { PolicyLayer } from './policy.ts';

/** The operator's settings as Redis holds them. The version grows by one with each change. */
export interface StoredPolicy {
  version: number;
  changedAt: number;
  layer: PolicyLayer;
}

/** The JSON text that Redis holds. */
export function writeStored(stored: StoredPolicy): string {
  return JSON.stringify(stored);
}

/** Reads what Redis holds (null: never set); undefined where another hand left something that is no policy. */
export function readStored(text: string | null): StoredPolicy | undefined {
  if (text === null) return { version: 0, changedAt: 0, layer: {} };
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!isObject(parsed) || !isObject(parsed['layer'])) return undefined;
  const { version, changedAt, layer } = parsed;
  const sound = Object.entries(layer).every(([name, value]) => fieldTests.get(name)?.(value) === true);
  if (!sound || !isTime(version) || !isTime(changedAt)) return undefined;
  return { version: Number(version), changedAt: Number(changedAt), layer };
}

type Test = (value: unknown) => boolean;

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const isTime: Test = (value) => typeof value === 'number' && Math.abs(value) <= 8.64e15;
const isText: Test = (value) => typeof value === 'string';
const isLink: Test = (value) => typeof value === 'string' && parseLink(value).kind === 'ok';
const listOf =
  (fields: Record<string, Test>): Test =>
  (value) =>
    Array.isArray(value) &&
    value.every((item) => isObject(item) && Object.entries(fields).every(([name, test]) => test(item[name])));

const fieldTests = new Map<string, Test>(
  Object.entries({
    deprecatedAt: isTime,
    sunsetAt: isTime,
    successorUrl: isLink,
    documentationUrl: isLink,
    sunsetUrl: isLink,
    afterSunset: (value) => value === 'serve' || value === 'gone',
    brownouts: listOf({ start: isTime, end: isTime }),
    exemptOrganizations: listOf({ organizationId: isText, until: isTime }),
    exemptKeys: listOf({ keyId: isText, until: isTime }),
  } satisfies Record<keyof PolicyLayer, Test>),
);
