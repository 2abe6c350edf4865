import { isIP } from 'node:net';
import { ConfigError, type ClusterSettings, type Settings } from '@bloom/config';
import { type Names, systemResolver } from '@bloom/discovery';
import type { Log } from '@bloom/log';
import { inTime } from '@bloom/time';

/** The cluster cannot be joined with these settings; the message names the variable. */
export class ClusterError extends Error {
  override readonly name = 'ClusterError';
  constructor(
    readonly code: 'HOST_UNRESOLVABLE' | 'NAME_IN_USE' | 'NOT_JOINED' | 'NO_COMMON_PROTOCOL',
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** Time limit for the query of the members, which decides between this node's address families. */
const QUERY_MS = 4_000;

/**
 * Returns the name under which members find this node. DNS discovery yields addresses, so the host is then resolved: to
 * an address of the family that the members have there, IPv4 if both exist.
 * @throws ClusterError HOST_UNRESOLVABLE
 */
export async function ownName(
  settings: ClusterSettings,
  log: Log,
  resolver: Pick<Names, 'addresses'> = systemResolver(),
): Promise<string> {
  const { nodeName, discovery } = settings;
  const at = nodeName.indexOf('@');
  const host = nodeName.slice(at + 1);
  if (discovery.strategy !== 'DNS' || isIP(host) !== 0) return nodeName;
  const [own, members] = await Promise.all([
    addressesOf(host, resolver),
    inTime(resolver.addresses(discovery.query, { isFresh: true }), { timeoutMs: QUERY_MS, late: () => [] }).catch(
      () => [],
    ),
  ]);
  // IPv4 comes first in both.
  const address = own.find((one) => isIP(one) === isIP(members[0] ?? '')) ?? own[0]!;
  log.info('cluster.host_resolved', { host, address });
  // Debian's installer, among others, maps the machine's name to a loopback address in /etc/hosts.
  if (address.startsWith('127.') || address === '::1')
    log.warn('cluster.host_is_loopback', {
      host,
      address,
      fix: 'nodes on other machines cannot reach this one; give its address in JF_DIST_NODE_NAME: <name>@<ip>',
    });
  return `${nodeName.slice(0, at)}@${address}`;
}

/** @throws ClusterError HOST_UNRESOLVABLE */
async function addressesOf(host: string, resolver: Pick<Names, 'addresses'> = systemResolver()): Promise<string[]> {
  try {
    // A node keeps its name, so it waits for the slower family.
    return await resolver.addresses(host, { isFresh: true });
  } catch (cause) {
    throw new ClusterError(
      'HOST_UNRESOLVABLE',
      `the host name ${JSON.stringify(host)} of JF_DIST_NODE_NAME has no IP address; give the address itself: <name>@<ip>`,
      { cause },
    );
  }
}

/** Returns the error to report: an unresolvable host name takes precedence over `error`. */
export async function firstFault(error: ConfigError): Promise<ConfigError> {
  const { hostFirst } = error;
  if (hostFirst === undefined || isIP(hostFirst) !== 0) return error;

  return addressesOf(hostFirst).then(
    () => error,
    (cause: ClusterError) => new ConfigError('JF_DIST_NODE_NAME', cause.message, { cause }),
  );
}

/**
 * Returns the settings with the node's final name. Call it before anything is opened.
 * @throws ClusterError HOST_UNRESOLVABLE
 */
export async function withOwnName(settings: Settings, log: Log): Promise<Settings> {
  const { cluster } = settings;

  return cluster === null ? settings : { ...settings, cluster: { ...cluster, nodeName: await ownName(cluster, log) } };
}
