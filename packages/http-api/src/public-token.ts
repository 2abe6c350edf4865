import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import { networkInterfaces } from 'node:os';
import { hostOf, originAllowed, type OriginRule } from '@bloom/config';
import { addressBytes, addressText } from '@bloom/net';

export interface PublicTokenRule {
  /** `JF_HOST` */
  publicHost: string;
  checkOrigin: OriginRule;
  /** Addresses of this machine. Default: those of its interfaces. */
  addresses?: () => readonly string[];
}

/**
 * Returns why a request must not use the public token, which every web page knows; undefined if it may. Browsers report
 * a page's origin and the name under which it found this node; a name of the page's own means DNS rebinding.
 */
export function foreignCaller({ headers }: IncomingMessage, rule: PublicTokenRule): string | undefined {
  const { origin, host = '' } = headers;
  const publicName = nameOf(rule.publicHost);
  const name = nameOf(host);
  if (isIP(name) === 0 && name.includes('.') && name !== publicName && !isLoopbackName(name)) {
    return `JF_SERVER_API_TOKEN is the public default, so the host ${quoted(name)} is refused: set a token, or JF_HOST`;
  }
  if (origin === undefined) {
    return headers['sec-fetch-site'] === 'cross-site'
      ? 'JF_SERVER_API_TOKEN is the public default, so pages of other sites are refused: set a token'
      : undefined;
  }
  if (isOwnPage(origin, { rule, host, publicName })) return undefined;

  return `JF_SERVER_API_TOKEN is the public default, so pages of ${quoted(origin)} are refused: set a token, or list them in JF_CHECK_ORIGIN`;
}

function isOwnPage(
  origin: string,
  { rule, host, publicName }: { rule: PublicTokenRule; host: string; publicName: string },
): boolean {
  const { checkOrigin, publicHost, addresses = machineAddresses } = rule;
  const match = /^https?:\/\/(.+)$/i.exec(origin);
  if (match?.[1] === undefined) return false;
  // A page served by this node; its host has been checked.
  if (match[1].toLowerCase() === host.toLowerCase()) return true;
  const page = nameOf(match[1]);
  if (page === publicName || isLoopbackName(page) || isLoopback(page)) return true;
  if (isIP(page) !== 0 && addresses().some((address) => same(address, page))) return true;

  return (
    checkOrigin.kind === 'list' && originAllowed(checkOrigin, { origin, host: undefined, secure: false, publicHost })
  );
}

/** Returns the host of `host[:port][/path]`, lower-case, without a trailing dot. */
function nameOf(host: string): string {
  return hostOf(host).toLowerCase().replace(/\.$/, '');
}

/** Returns whether browsers resolve this name to loopback themselves. */
function isLoopbackName(name: string): boolean {
  return name === 'localhost' || name.endsWith('.localhost');
}

function isLoopback(address: string): boolean {
  const bytes = addressBytes(address);
  if (bytes?.length === 4) return bytes[0] === 127;

  return bytes !== undefined && same(address, '::1');
}

function same(a: string, b: string): boolean {
  const [left, right] = [addressBytes(a), addressBytes(b)];

  return left !== undefined && right !== undefined && addressText(left) === addressText(right);
}

function machineAddresses(): string[] {
  return Object.values(networkInterfaces()).flatMap((entries) => (entries ?? []).map(({ address }) => address));
}

function quoted(text: string): string {
  return JSON.stringify(text.slice(0, 200));
}
