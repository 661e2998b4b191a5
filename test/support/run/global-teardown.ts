export default async function globalTeardown(): Promise<void> {
  await (globalThis as { endTestRun?: () => Promise<void> }).endTestRun?.();
}
