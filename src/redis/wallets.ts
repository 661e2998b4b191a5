import type { Store } from './scripts.ts';

/**
 * Links a wallet to a user in place of any other; only a verified one is ever shown (contract 2.1). A user
 * without a profile gets one.
 */
export async function setWallet(
  store: Store,
  base: string,
  userId: string,
  wallet: { address: string; isVerified: boolean },
): Promise<'set' | 'unknown-organization'> {
  return await store.setWallet(base, userId, wallet.address, wallet.isVerified ? 'w' : 'wu');
}
