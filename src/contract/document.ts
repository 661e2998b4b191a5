import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import type { ProblemCode } from './types.gen.ts';

/** The parts of JSON Schema (2020-12) that the documentation shows. */
export interface Schema {
  $ref?: string;
  description?: string;
  type?: string;
  const?: unknown;
  enum?: unknown[];
  minLength?: number;
  maxLength?: number;
  items?: Schema;
  required?: string[];
  properties?: Record<string, Schema>;
  additionalProperties?: boolean | Schema;
  anyOf?: Schema[];
  allOf?: Schema[];
  not?: Schema;
  contentMediaType?: string;
}

/** Stands for a part of the document that is described elsewhere, under `components`. */
export interface DocumentReference {
  $ref: string;
}

export interface Header {
  description: string;
  required?: boolean;
  schema: Schema;
  example?: string | number;
}

export interface MediaType {
  schema: Schema;
  examples?: Record<string, { summary?: string; value: unknown }>;
}

export interface Response {
  description: string;
  headers?: Record<string, Header | DocumentReference>;
  content?: Record<string, MediaType>;
}

interface Operation {
  operationId: string;
  summary: string;
  description?: string;
  tags: string[];
  deprecated?: boolean;
  /** ISO 8601 times, and links, which may be relative to the deployment. */
  'x-deprecation'?: Record<'deprecatedAt' | 'sunsetAt' | 'successor' | 'documentation', string>;
  /** The keys in Redis that replace it, `{org}` as in src/redis/README.md, and how to use them. */
  'x-successor'?: { keys: string[]; note: string };
  security?: Record<string, string[]>[];
  requestBody?: { required?: boolean; content: Record<string, MediaType> };
  responses: Record<string, Response | DocumentReference>;
}

const methods = ['get', 'head', 'put', 'post', 'delete', 'options'] as const;
export type Method = (typeof methods)[number];

export type PathItem = Partial<Record<Method, Operation>> & {
  'x-method-not-allowed'?: Response | DocumentReference;
};

export interface ContractDocument {
  openapi: string;
  info: { title: string; version: string; summary: string; description: string };
  tags: { name: string; description: string }[];
  paths: Record<string, PathItem>;
  components: {
    schemas: Record<string, Schema>;
    'x-problems': Record<ProblemCode, { status: number; title: string; when: string; remedy: string }>;
    headers: Record<string, Header>;
    responses: Record<string, Response>;
    securitySchemes: Record<
      'apiKey' | 'organization',
      { type: string; in: string; name: string; description: string }
    >;
  };
}

/** The text of openapi.yaml, which lies at the top level of the project, and of dist/. */
export const contractText: string = readFileSync(new URL('../../openapi.yaml', import.meta.url), 'utf8');

let parsed: ContractDocument | undefined;

/** openapi.yaml, the single source of the HTTP contract. It is parsed when first needed: most commands do without. */
export function contractDocument(): ContractDocument {
  parsed ??= parse(contractText) as ContractDocument;
  return parsed;
}

/** The contract as one deployment serves it: with the name of its organization header and, if known, its address. */
export function deployedContract(organizationHeader: string, baseUrl = '/') {
  const document = contractDocument();
  const { apiKey, organization } = document.components.securitySchemes;
  const securitySchemes = { apiKey, organization: { ...organization, name: organizationHeader } };
  return {
    document: { ...document, components: { ...document.components, securitySchemes } },
    // Replaced in the text, so that it keeps its comments and its order.
    text: contractText
      .replace(`name: ${organization.name}\n`, () => `name: ${yamlString(organizationHeader)}\n`)
      .replace('- url: /\n', () => `- url: ${yamlString(baseUrl)}\n`),
  };
}

/** JSON strings are YAML strings; plain ones are shorter. */
function yamlString(text: string): string {
  return /^[\w/-]+$/.test(text) ? text : JSON.stringify(text);
}

/** Resolves a local reference (`#/components/…`); anything else is returned unchanged. */
export function resolveReference<T extends object>(
  document: ContractDocument,
  node: T | DocumentReference,
): T {
  if (!('$ref' in node) || typeof node.$ref !== 'string') return node as T;
  let target: unknown = document;
  for (const part of node.$ref.slice(2).split('/')) target = (target as Record<string, unknown>)[part];
  if (target === undefined) throw new Error(`openapi.yaml: nothing at ${node.$ref}`);
  return target as T;
}

/** An operation with its path and method. */
export interface PlacedOperation {
  path: string;
  method: Method;
  operation: Operation;
}

/** Every operation of the document, in its order. */
export function operationsOf(document: ContractDocument): PlacedOperation[] {
  return Object.entries(document.paths).flatMap(([path, item]) =>
    methods.flatMap((method) => {
      const operation = item[method];
      return operation === undefined ? [] : [{ path, method, operation }];
    }),
  );
}
