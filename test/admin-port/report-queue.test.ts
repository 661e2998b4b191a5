import { expect, test } from '@jest/globals';
import { createReportQueue } from '../../src/admin-port/report-queue.ts';

test('reports are made one at a time, in the order they were asked for, also after one that fails', async () => {
  const inTurn = createReportQueue();
  const steps: string[] = [];
  const report = (name: string) => async (): Promise<string> => {
    steps.push(`${name} begins`);
    await Promise.resolve();
    steps.push(`${name} ends`);
    if (name === 'first') throw new Error('too large');
    return name;
  };
  const first = inTurn(report('first'));
  const second = inTurn(report('second'));
  await expect(first).rejects.toThrow('too large');
  await expect(second).resolves.toBe('second');
  expect(steps).toEqual(['first begins', 'first ends', 'second begins', 'second ends']);
});
