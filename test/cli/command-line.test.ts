import { expect, test } from '@jest/globals';
import { describeError } from '../../src/cli/command-line.ts';

test.each([
  "Stream isn't writeable and enableOfflineQueue options is false",
  'Reached the max retries per request limit (which is 0). Refer to "maxRetriesPerRequest" option for details.',
])('a closed connection to Redis is not described in the words of its client: %s', (message) => {
  expect(describeError(new Error(message))).toBe(
    'Redis is unavailable (connection closed): check that it is running and that REDIS_URL is right, then run this again',
  );
});
