export type Releasers = ReturnType<typeof createReleasers>;

/** Collects how to close what has been opened, so that a failed start and a shutdown close the same things. */
export function createReleasers(onError: (name: string, error: unknown) => void = () => {}) {
  const opened: { name: string; close: () => unknown }[] = [];
  return {
    /** Registers how to close a resource that was just opened. */
    onClose: (name: string, close: () => unknown): void => {
      opened.push({ name, close });
    },
    /** Closes everything, last opened first; every close runs even when another fails. Safe to call twice. */
    close: async (): Promise<void> => {
      for (let last = opened.pop(); last !== undefined; last = opened.pop()) {
        try {
          await last.close();
        } catch (error) {
          onError(last.name, error);
        }
      }
    },
  };
}
