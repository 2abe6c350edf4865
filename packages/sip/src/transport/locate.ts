import { type Names, systemResolver } from '@bloom/discovery';
/** Finds the servers for a URI, RFC 3263 section 4: NAPTR, SRV, then plain addresses. */
import { isIP } from 'node:net';
import type { Randomness } from '../randomness.js';
import type { SipUri } from '../values.js';
import type { Target, TransportName } from './target.js';

export interface NaptrRecord {
  order: number;
  preference: number;
  flags: string;
  service: string;
  replacement: string;
}

export interface SrvRecord {
  priority: number;
  weight: number;
  port: number;
  name: string;
}

/** Name service. Each method returns an empty list for names that do not exist, and never fails. */
export interface NameService {
  naptr(name: string): Promise<readonly NaptrRecord[]>;
  srv(name: string): Promise<readonly SrvRecord[]>;
  /** Returns IP addresses in the order to try them. */
  addresses(name: string): Promise<readonly string[]>;
}

export interface LocateOptions {
  names: NameService;
  randomness: Randomness;
}

const MAX_TARGETS = 16;
/** Maximum number of records followed per DNS answer, since each costs further lookups. */
const MAX_RECORDS = 8;
const services = new Map<string, TransportName>([
  ['sip+d2u', 'UDP'],
  ['sip+d2t', 'TCP'],
]);
const prefixes: Readonly<Record<TransportName, string>> = { UDP: '_sip._udp.', TCP: '_sip._tcp.' };

/** Returns targets, best first; none when the host does not exist or requires another transport (sips requires TLS). */
export async function locate(uri: SipUri, options: LocateOptions): Promise<Target[]> {
  const wanted = uri.params.get('transport')?.toUpperCase();
  if (uri.scheme === 'sips' || (wanted !== undefined && wanted !== 'UDP' && wanted !== 'TCP')) return [];
  const host = uri.params.get('maddr') ?? uri.host;
  const fixed = { transport: wanted ?? 'UDP', port: uri.port ?? 5060 } as const;
  if (isIP(host) !== 0) return [{ ...fixed, host }];
  if (uri.port !== undefined) return atAddresses(await options.names.addresses(host), fixed);

  const found: Target[] = [];
  for (const { name, transport } of await serviceNames(host, wanted, options.names)) {
    for (const record of orderSrv(await options.names.srv(name), options.randomness).slice(0, MAX_RECORDS)) {
      const addresses = await options.names.addresses(record.name);
      found.push(...atAddresses(addresses, { transport, port: record.port }));
      if (found.length >= MAX_TARGETS) return found.slice(0, MAX_TARGETS);
    }
  }
  if (found.length > 0) return found;
  return atAddresses(await options.names.addresses(host), fixed);
}

/** Returns the names of the SRV records to query, best first. */
async function serviceNames(
  host: string,
  wanted: TransportName | undefined,
  names: NameService,
): Promise<{ name: string; transport: TransportName }[]> {
  if (wanted) return [{ name: `${prefixes[wanted]}${host}`, transport: wanted }];
  const records = (await names.naptr(host))
    .filter(({ flags, service }) => flags.toLowerCase() === 's' && services.has(service.toLowerCase()))
    .toSorted((a, b) => a.order - b.order || a.preference - b.preference)
    .slice(0, MAX_RECORDS);
  if (records.length > 0) {
    return records.map((record) => ({
      name: record.replacement,
      transport: services.get(record.service.toLowerCase()) as TransportName,
    }));
  }
  return (['UDP', 'TCP'] as const).map((transport) => ({ name: `${prefixes[transport]}${host}`, transport }));
}

function atAddresses(addresses: readonly string[], at: { transport: TransportName; port: number }): Target[] {
  return addresses.slice(0, MAX_TARGETS).map((host) => ({ ...at, host }));
}

/** Orders by RFC 2782: lowest priority number first, then random by weight. */
export function orderSrv(records: readonly SrvRecord[], randomness: Randomness): SrvRecord[] {
  const usable = records.filter((record) => record.name !== '.' && record.name !== '' && record.port > 0);
  const ordered: SrvRecord[] = [];
  const priorities = [...new Set(usable.map((record) => record.priority))].toSorted((a, b) => a - b);
  for (const priority of priorities) {
    const pool = usable.filter((record) => record.priority === priority).toSorted((a, b) => a.weight - b.weight);
    while (pool.length > 0) {
      const sum = pool.reduce((total, record) => total + record.weight, 0);
      let lot = randomness.below(sum + 1);
      let at = 0;
      while (at < pool.length - 1 && lot > (pool[at] as SrvRecord).weight) {
        lot -= (pool[at] as SrvRecord).weight;
        at += 1;
      }
      ordered.push(...pool.splice(at, 1));
    }
  }
  return ordered;
}

/** Resolves names as the machine is configured. Queries without an answer yield nothing to try. */
export function systemNames(resolver: Names = systemResolver()): NameService {
  return {
    naptr: (name) => resolver.records('NAPTR', name).catch(() => []),
    srv: (name) => resolver.records('SRV', name).catch(() => []),
    addresses: (name) => resolver.addresses(name).catch(() => []),
  };
}
