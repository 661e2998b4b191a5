import { expect, test } from '@jest/globals';
import winston from 'winston';
import { createAccessLog } from '../../src/api/access-log.ts';
import type { AccessRecord } from '../../src/api/call.ts';
import { until } from '../support/until.ts';

function collect(): { lines: Record<string, unknown>[]; write: (record: AccessRecord) => void } {
  const lines: Record<string, unknown>[] = [];
  const log = winston.createLogger({
    level: 'info',
    format: winston.format((line) => {
      lines.push({ ...line });
      return false;
    })(),
    transports: [new winston.transports.Console()],
  });
  return { lines, write: createAccessLog(log) };
}

const refused: AccessRecord = {
  requestId: 'r1',
  operation: 'putProfile',
  organizationId: 'acme',
  caller: { keyId: 'k_1', role: 'player', userId: 'u1' },
  isUnchecked: false,
  code: 'username-denied',
  failure: undefined,
  status: 422,
  seconds: 0.002,
  userAgent: 'ios',
  address: undefined,
  traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
};

test('a refusal is logged with its code, operation, organization, key and trace, and without the user', () => {
  const { lines, write } = collect();
  write(refused);
  expect(lines).toMatchObject([
    {
      level: 'info',
      message: 'refused',
      requestId: 'r1',
      operation: 'putProfile',
      status: 422,
      code: 'username-denied',
      organizationId: 'acme',
      keyId: 'k_1',
      traceparent: refused.traceparent,
    },
  ]);
  expect(JSON.stringify(lines)).not.toContain('u1');
});

test('an organization without a valid key, and a malformed traceparent, are not logged', () => {
  const { lines, write } = collect();
  write({ ...refused, caller: undefined, traceparent: 'anything', code: 'invalid-api-key', status: 401 });
  expect(lines).toHaveLength(1);
  expect(JSON.stringify(lines)).not.toMatch(/acme|anything/);
});

test('of very many refusals some are logged, and how many were left out', async () => {
  const { lines, write } = collect();
  const hasCount = (line: Record<string, unknown>): boolean => line['suppressed'] !== undefined;
  let written = 0;
  // A later second begins with a line that has the count.
  await until(() => {
    for (let n = 0; n < 100; n++) write(refused);
    written += 100;
    return lines.some(hasCount);
  });
  const first = lines.findIndex(hasCount);
  expect(first).toBeGreaterThanOrEqual(50);
  expect(first).toBeLessThanOrEqual(100);
  const before = first + Number(lines[first]?.['suppressed']);
  expect(before).toBeGreaterThanOrEqual(written - 100);
  expect(before).toBeLessThan(written);
});

test('successful responses are not logged as refusals', () => {
  const { lines, write } = collect();
  write({ ...refused, code: undefined, status: 200 });
  expect(lines).toEqual([]);
});

test.each([
  [503, 'overloaded', 'answered'],
  [429, 'rate-limited', 'refused'],
] as const)('a %i without a valid key is logged with the client address', (status, code, message) => {
  const { lines, write } = collect();
  write({ ...refused, caller: undefined, address: '192.0.2.1', status, code });
  expect(lines).toMatchObject([{ message, code, address: '192.0.2.1' }]);
  expect(lines[0]).not.toHaveProperty('organizationId');
});

test('a 503 is logged with the key of its caller', () => {
  const { lines, write } = collect();
  write({ ...refused, status: 503, code: 'overloaded' });
  expect(lines).toMatchObject([{ message: 'answered', level: 'warn', code: 'overloaded', keyId: 'k_1' }]);
});
