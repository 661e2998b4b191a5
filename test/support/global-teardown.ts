export default async function globalTeardown(): Promise<void> {
  await (globalThis as { stopTestRedis?: () => Promise<void> }).stopTestRedis?.();
}
