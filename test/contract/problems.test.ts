import { describe, expect, test } from '@jest/globals';
import { contractDocument, contractText } from '../../src/contract/document.ts';
import {
  ProblemError,
  problemKinds,
  type ProblemCode,
  type ProblemExtras,
} from '../../src/contract/problems.ts';
import { schemaFaults } from '../support/requests/conformance.ts';

const codes = Object.keys(problemKinds()) as ProblemCode[];
const schemas = contractDocument().components.schemas;

const retryAfter = (extras: ProblemExtras = {}) =>
  new ProblemError('overloaded', '', extras).headers['Retry-After'];

describe('the catalogue of problems', () => {
  test('has exactly the codes of openapi.yaml', () => {
    expect(codes).toEqual(schemas['ProblemCode']?.enum);
  });

  test.each(codes)('renders %s as described in openapi.yaml', (code) => {
    const rendered = new ProblemError(code, 'Because.').toBody('r1');
    expect(schemaFaults(schemas['Problem'] ?? {}, rendered)).toEqual([]);
    expect(rendered).toMatchObject({
      code,
      detail: 'Because.',
      requestId: 'r1',
      type: `/docs/#problem-${code}`,
    });
  });

  test('has the titles and statuses of the examples in openapi.yaml', () => {
    const examples = [...contractText.matchAll(/#problem-([a-z-]+)\n +title: (.*)\n +status: (\d+)\n/g)];
    expect(examples.length).toBeGreaterThan(10);
    for (const [, code, title, status] of examples) {
      expect(problemKinds()[code as ProblemCode]).toMatchObject({ title, status: Number(status) });
    }
  });

  test('includes the details of a problem', () => {
    const errors = [{ path: '/username', message: 'must not be empty' }];
    expect(new ProblemError('invalid-body', 'No.', { errors }).toBody('r1').errors).toEqual(errors);
    expect(
      new ProblemError('usernames-in-use', 'No.', { usernamesInUse: ['Ada'] }).toBody('r1').usernamesInUse,
    ).toEqual(['Ada']);
  });

  test('leaves out details that a problem does not have', () => {
    expect(Object.keys(new ProblemError('not-found', 'No.').toBody('r1')).toSorted()).toEqual([
      'code',
      'detail',
      'requestId',
      'status',
      'title',
      'type',
    ]);
  });
});

describe('the headers of a problem', () => {
  test('forbid caching', () => {
    for (const code of codes)
      expect(new ProblemError(code, '').headers['Cache-Control']).toContain('no-store');
  });

  test('include a challenge with every 401 and with nothing else', () => {
    for (const code of codes) {
      const challenge = new ProblemError(code, '').headers['WWW-Authenticate'];
      expect(challenge !== undefined).toBe(problemKinds()[code].status === 401);
    }
  });

  test('say when to retry, in whole seconds, at least one', () => {
    expect(retryAfter()).toBe('1');
    const rounded = [0, 0.2, 2.1, 60].map((retryAfterSeconds) => retryAfter({ retryAfterSeconds }));
    expect(rounded).toEqual(['1', '1', '3', '60']);
  });

  test('say when to retry with 429, 503 and a brownout, and with nothing else', () => {
    const retried = codes.filter((code) => new ProblemError(code, '').headers['Retry-After'] !== undefined);
    expect(retried.toSorted()).toEqual([
      'brownout',
      'overloaded',
      'rate-limited',
      'replay-unavailable',
      'store-unavailable',
    ]);
  });

  test('list the allowed methods with 405', () => {
    expect(new ProblemError('method-not-allowed', '', { allow: ['GET', 'PUT'] }).headers['Allow']).toBe(
      'GET, PUT',
    );
  });
});

test('a ProblemError describes its problem in a log', () => {
  const error = new ProblemError('username-taken', 'Another user has it.');
  expect(String(error)).toBe('ProblemError: username-taken: Another user has it.');
});
