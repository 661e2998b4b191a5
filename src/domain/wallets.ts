/** An EVM address, in any spelling: its capitals may be a checksum. */
export const walletForm = /^0x[0-9a-fA-F]{40}$/;
