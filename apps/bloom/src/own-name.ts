import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import { ConfigError, type ClusterSettings, type Settings } from '@bloom/config';
import type { Log } from '@bloom/log';

/** The cluster cannot be joined with these settings; the message names the variable. */
export class ClusterError extends Error {
  override readonly name = 'ClusterError';
  constructor(
    readonly code: 'HOST_UNRESOLVABLE' | 'NOT_JOINED' | 'NO_COMMON_PROTOCOL',
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/**
 * Returns the name under which members find this node. DNS discovery yields addresses, so the host is then resolved.
 * @throws ClusterError HOST_UNRESOLVABLE
 */
export async function ownName(settings: ClusterSettings, log: Log): Promise<string> {
  const { nodeName, discovery } = settings;
  const at = nodeName.indexOf('@');
  const host = nodeName.slice(at + 1);
  if (discovery.strategy !== 'DNS' || isIP(host) !== 0) return nodeName;
  const address = await addressOf(host);
  log.info('cluster.host_resolved', { host, address });
  // Debian's installer, among others, maps the machine's name to a loopback address in /etc/hosts.
  if (address.startsWith('127.'))
    log.warn('cluster.host_is_loopback', {
      host,
      address,
      hint: 'nodes on other machines cannot reach this one; give its address in JF_DIST_NODE_NAME: <name>@<ip>',
    });
  return `${nodeName.slice(0, at)}@${address}`;
}

/** @throws ClusterError HOST_UNRESOLVABLE */
async function addressOf(host: string): Promise<string> {
  try {
    return (await lookup(host, { family: 4 })).address;
  } catch (cause) {
    throw new ClusterError(
      'HOST_UNRESOLVABLE',
      `the host name ${JSON.stringify(host)} of JF_DIST_NODE_NAME has no IPv4 address; give the address itself: <name>@<ip>`,
      { cause },
    );
  }
}

/** Returns the error to report: an unresolvable host name takes precedence over `error`. */
export async function firstFault(error: ConfigError): Promise<ConfigError> {
  const { hostFirst } = error;
  if (hostFirst === undefined || isIP(hostFirst) !== 0) return error;

  return addressOf(hostFirst).then(
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
