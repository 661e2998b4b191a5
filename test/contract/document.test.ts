import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { describe, expect, test } from '@jest/globals';
import {
  contractDocument,
  contractText,
  operationsOf,
  resolveReference,
  type MediaType,
  type Response,
} from '../../src/contract/document.ts';
import { createOperations, type OperationOptions } from '../../src/api/operations.ts';
import { pictureTypeOf } from '../../src/media/store.ts';
import { schemaFaults } from '../support/requests/conformance.ts';

const { components } = contractDocument();
const operations = operationsOf(contractDocument());
const ofTheContract = operations.filter(({ path }) => path.startsWith('/api/'));

function responsesOf(statuses: Record<string, Response | { $ref: string }>): [string, Response][] {
  return Object.entries(statuses).map(([status, response]) => [
    status,
    resolveReference(contractDocument(), response),
  ]);
}

/** Validates the examples against their schema and returns how many there are. */
function validateExamples(media: MediaType | undefined): number {
  const examples = Object.values(media?.examples ?? {});
  for (const { value } of examples) expect(schemaFaults(media?.schema ?? {}, value)).toEqual([]);
  return examples.length;
}

describe('openapi.yaml', () => {
  test('describes the five operations of the contract, plus HEAD and OPTIONS', () => {
    const described = ofTheContract
      .filter(({ method }) => method !== 'options' && method !== 'head')
      .map(({ path, method, operation }) => ({ operation: operation.operationId, method, path }));
    const rows = createOperations({ maxListBytes: 1024 } as OperationOptions);
    expect(new Set(described)).toEqual(
      new Set(rows.map(({ operation, method, path }) => ({ operation, method, path }))),
    );
    expect(ofTheContract).toHaveLength(rows.length + 4);
  });

  test('marks the operations of the contract as deprecated, and no others', () => {
    for (const { path, operation } of operations) {
      const facts = operation['x-deprecation'];
      expect(operation.deprecated === true).toBe(path.startsWith('/api/'));
      expect(facts !== undefined).toBe(path.startsWith('/api/'));
      if (facts) expect(Date.parse(facts.sunsetAt)).toBeGreaterThan(Date.parse(facts.deprecatedAt));
    }
  });

  test('documents the deprecation headers for every response of the contract, and for no other', () => {
    const { MalformedRequest, HeadersTimeout, HeadersTooLarge } = contractDocument().components.responses;
    const unread = new Set([MalformedRequest, HeadersTimeout, HeadersTooLarge]);
    for (const { path, operation } of operations) {
      for (const [, response] of responsesOf(operation.responses)) {
        // Such a request has not been read as far as its path.
        if (unread.has(response)) continue;
        const { headers = {} } = response;
        const names = Object.keys(headers);
        for (const name of ['Deprecation', 'Sunset', 'Link']) {
          expect(names.includes(name)).toBe(path.startsWith('/api/'));
        }
      }
    }
  });

  test('documents for every operation what may be answered before it is known', () => {
    for (const { operation } of ofTheContract) {
      expect(Object.keys(operation.responses)).toEqual(expect.arrayContaining(['400', '408', '431']));
    }
  });

  test('documents the headers that a status requires', () => {
    const required: Record<string, string> = {
      401: 'WWW-Authenticate',
      429: 'Retry-After',
      503: 'Retry-After',
    };
    for (const { operation } of ofTheContract) {
      for (const [status, { headers = {} }] of responsesOf(operation.responses)) {
        const name = required[status];
        const header = name === undefined ? undefined : headers[name];
        if (name !== undefined)
          expect(header && resolveReference(contractDocument(), header).required).toBe(true);
      }
    }
  });

  test('has examples that match their schemas', () => {
    let validated = 0;
    for (const { operation } of operations) {
      for (const media of Object.values(operation.requestBody?.content ?? {}))
        validated += validateExamples(media);
      for (const [, { content = {} }] of responsesOf(operation.responses)) {
        for (const media of Object.values(content)) validated += validateExamples(media);
      }
    }
    expect(validated).toBeGreaterThan(50);
    for (const { schema, example } of Object.values(components.headers)) {
      if (example !== undefined) expect(schemaFaults(schema, example)).toEqual([]);
    }
  });

  test('has examples with IDs of requests and names of pictures in the form in which they are sent', () => {
    const requestIds = contractText.match(/(?<=requestId: )[\da-f].*/g) ?? [];
    expect(requestIds.length).toBeGreaterThan(10);
    for (const id of requestIds) expect(id).toMatch(/^[\da-f]{8}-([\da-f]{4}-){3}[\da-f]{12}$/);
    const pictures = contractText.match(/[\w-]+\.webp/g) ?? [];
    expect(pictures.length).toBeGreaterThan(2);
    for (const name of pictures) expect(pictureTypeOf(name)).toBe('image/webp');
  });

  test('is the source of the generated types', async () => {
    const root = new URL('../../', import.meta.url);
    await promisify(execFile)(
      process.execPath,
      ['node_modules/tsx/dist/cli.mjs', 'scripts/generate-types.ts', '--check'],
      {
        cwd: root,
      },
    );
    expect(readFileSync(new URL('src/contract/types.gen.ts', root), 'utf8')).toContain(
      'export interface ProfileChange',
    );
  });
});
