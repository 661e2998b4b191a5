import { rmSync } from 'node:fs';

export default async function globalTeardown(): Promise<void> {
  await (globalThis as { stopTestRedis?: () => Promise<void> }).stopTestRedis?.();
  const folder = process.env['PB_TEST_FOLDER'];
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
}
