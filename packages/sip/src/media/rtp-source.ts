/** Decides which audio sources to accept: symmetric RTP (RFC 4961), but no stranger may take over the call. */
import { BlockList, isIP, SocketAddress } from 'node:net';

const privateAddresses = new BlockList();
for (const [network, prefix] of [
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.168.0.0', 16],
] as const)
  privateAddresses.addSubnet(network, prefix, 'ipv4');
for (const [network, prefix] of [
  ['::1', 128],
  ['fc00::', 7],
  ['fe80::', 10],
] as const)
  privateAddresses.addSubnet(network, prefix, 'ipv6');

/** Returns the canonical spelling of an IP address; IPv4-mapped IPv6 becomes IPv4. */
export function plainAddress(address: string): string {
  const text = address.replace(/^::ffff:(?=\d+\.)/i, '');
  return isIP(text) === 6 ? new SocketAddress({ address: text, family: 'ipv6' }).address : text;
}

/** Returns true for addresses that are not routable between networks. */
export function isPrivate(address: string): boolean {
  const family = isIP(address);
  return family !== 0 && privateAddresses.check(address, family === 6 ? 'ipv6' : 'ipv4');
}
