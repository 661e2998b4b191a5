// Writes src/contract/types.gen.ts from openapi.yaml's schemas; with --check, only checks whether it is up to date.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { compile, type JSONSchema } from 'json-schema-to-typescript';
import { contractDocument } from '../src/contract/document.ts';

const target = new URL('../src/contract/types.gen.ts', import.meta.url);

/** OpenAPI's schemas as the compiler needs them: references among definitions, and `not: {}` as `never`. */
function definitionsOf(schemas: object): Record<string, JSONSchema> {
  const text = JSON.stringify(schemas, (key, value: unknown) =>
    key === 'not' ? undefined : isForbidden(value) ? { ...value, tsType: 'never' } : value,
  );
  return JSON.parse(text.replaceAll('#/components/schemas/', '#/definitions/')) as Record<string, JSONSchema>;
}

function isForbidden(value: unknown): value is { not: object } {
  return typeof value === 'object' && value !== null && 'not' in value;
}

/** One exported type per schema. The compiler needs a root that reaches them all; it is cut off again. */
async function generate(): Promise<string> {
  const definitions = definitionsOf(contractDocument().components.schemas);
  const properties = Object.fromEntries(
    Object.keys(definitions).map((name) => [name, { $ref: `#/definitions/${name}` }]),
  );
  const root: JSONSchema = { type: 'object', properties, additionalProperties: false, definitions };
  const source = await compile(root, 'EverySchema', {
    additionalProperties: false,
    bannerComment: '/* Generated from openapi.yaml by `npm run generate`. Do not edit. */',
    ignoreMinAndMaxItems: true,
    style: { singleQuote: true, printWidth: 110 },
  });
  return source.replace(/export interface EverySchema \{[^}]*\}\n/, '');
}

const generated = await generate();
if (!process.argv.includes('--check')) {
  writeFileSync(target, generated);
} else if (!existsSync(target) || readFileSync(target, 'utf8') !== generated) {
  console.error(
    'src/contract/types.gen.ts does not match openapi.yaml: run `npm run generate`, commit the result.',
  );
  process.exit(1);
}
