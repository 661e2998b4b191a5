export interface Releasers {
  /** Registers how to close a resource that was just opened. */
  onClose: (name: string, close: () => unknown) => void;
  /** Closes everything, last opened first; every close runs even when another fails. Safe to call twice. */
  close: () => Promise<void>;
}

/** Collects how to close what has been opened, so that a failed start and a shutdown close the same things. */
export function createReleasers(onError: (name: string, error: unknown) => void = () => {}): Releasers {
  const opened: { name: string; close: () => unknown }[] = [];
  return {
    onClose: (name, close) => {
      opened.push({ name, close });
    },
    close: async () => {
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
