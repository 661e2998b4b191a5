import { lookup as lookupName } from 'node:dns';
import { BlockList, isIP, type LookupFunction } from 'node:net';

// IANA's special-purpose address registries. Of IPv6, only 2000::/3 is in use for unicast; within it are Teredo,
// benchmarking and ORCHID, documentation, and 6to4, which carries an IPv4 address of any kind.
const specialRanges = {
  ipv4: `0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24
    192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/3`,
  ipv6: '::/3 4000::/2 8000::/1 2001::/23 2001:db8::/32 2002::/16 3fff::/20',
};

/** Two lists, since a list of both families treats an IPv4 address as the IPv6 address that it is mapped to. */
const special = { ipv4: new BlockList(), ipv6: new BlockList() };
for (const family of ['ipv4', 'ipv6'] as const) {
  for (const range of specialRanges[family].split(/\s+/)) {
    const [address = '', bits] = range.split('/');
    special[family].addSubnet(address, Number(bits), family);
  }
}

/** Whether an IP address is public: not private, loopback, link-local or otherwise special. */
export function isPublicAddress(address: string): boolean {
  const version = isIP(address);
  const family = version === 4 ? 'ipv4' : 'ipv6';
  return version !== 0 && !special[family].check(address, family);
}

/** The host has an address that is not public. */
export class PrivateAddressError extends Error {}

/**
 * Resolves names for a connection, and refuses those with any address that is not public. The connection is made to
 * exactly the address that was checked, so a name cannot resolve to another one a moment later.
 */
export const lookupPublic: LookupFunction = (host, options, callback) => {
  lookupName(host, { ...options, all: true }, (error, addresses) => {
    const [first] = addresses ?? [];
    if (error !== null || first === undefined) {
      callback(error ?? new Error('no address'), '', 0);
    } else if (!addresses.every(({ address }) => isPublicAddress(address))) {
      callback(new PrivateAddressError(), '', 0);
    } else if (options.all === true) {
      callback(null, addresses);
    } else {
      callback(null, first.address, first.family);
    }
  });
};
