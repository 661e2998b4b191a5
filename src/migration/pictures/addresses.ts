import { lookup as lookupName } from 'node:dns';
import { BlockList, isIP, type LookupFunction } from 'node:net';

// IANA's special-purpose address registries: what is not an address of somebody out there.
const privateRanges: readonly (readonly [string, number, 'ipv4' | 'ipv6'])[] = [
  ['0.0.0.0', 8, 'ipv4'],
  ['10.0.0.0', 8, 'ipv4'],
  ['100.64.0.0', 10, 'ipv4'],
  ['127.0.0.0', 8, 'ipv4'],
  ['169.254.0.0', 16, 'ipv4'],
  ['172.16.0.0', 12, 'ipv4'],
  ['192.0.0.0', 24, 'ipv4'],
  ['192.0.2.0', 24, 'ipv4'],
  ['192.88.99.0', 24, 'ipv4'],
  ['192.168.0.0', 16, 'ipv4'],
  ['198.18.0.0', 15, 'ipv4'],
  ['198.51.100.0', 24, 'ipv4'],
  ['203.0.113.0', 24, 'ipv4'],
  ['224.0.0.0', 3, 'ipv4'],
];

const denied = new BlockList();
for (const [address, bits, family] of privateRanges) denied.addSubnet(address, bits, family);

/** The unicast addresses in use; all other IPv6 is special in some way. */
const globalUnicast = new BlockList();
globalUnicast.addSubnet('2000::', 3, 'ipv6');
// Teredo, benchmarking and ORCHID, documentation, and 6to4, which carries an IPv4 address of any kind.
const special = new BlockList();
special.addSubnet('2001::', 23, 'ipv6');
special.addSubnet('2001:db8::', 32, 'ipv6');
special.addSubnet('2002::', 16, 'ipv6');
special.addSubnet('3fff::', 20, 'ipv6');

/** Whether an IP address is one of the public internet: not private, loopback, link-local or otherwise special. */
export function isPublicAddress(address: string): boolean {
  if (isIP(address) === 4) return !denied.check(address, 'ipv4');
  if (isIP(address) !== 6) return false;
  return globalUnicast.check(address, 'ipv6') && !special.check(address, 'ipv6');
}

/** The host has an address that is not public. */
export class PrivateAddress extends Error {}

/**
 * Resolves names for a connection, and refuses those with any address that is not public. The connection is made to
 * the very address that was looked at, so a name cannot lead elsewhere a moment later.
 */
export const lookupPublic: LookupFunction = (host, options, callback) => {
  lookupName(host, { ...options, all: true }, (error, addresses) => {
    const [first] = addresses ?? [];
    if (error !== null || first === undefined) {
      callback(error ?? new Error('no address'), '', 0);
    } else if (!addresses.every(({ address }) => isPublicAddress(address))) {
      callback(new PrivateAddress(), '', 0);
    } else if (options.all === true) {
      callback(null, addresses);
    } else {
      callback(null, first.address, first.family);
    }
  });
};
