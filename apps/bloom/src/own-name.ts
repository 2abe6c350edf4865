import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import { ConfigError, type ClusterSettings, type Settings } from '@bloom/config';
import type { Log } from '@bloom/log';

/** The cluster cannot be joined with these settings; the sentence names the variable. */
export class ClusterError extends Error {
  override readonly name = 'ClusterError';
  constructor(
    readonly code: 'HOST_UNRESOLVABLE',
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** With DNS all nodes share the part before the `@`, and the rest is the address that others will find. */
export async function ownName(settings: ClusterSettings, log: Log): Promise<string> {
  const { nodeName, discovery } = settings;
  const at = nodeName.indexOf('@');
  const host = nodeName.slice(at + 1);
  if (discovery.strategy !== 'DNS' || isIP(host) !== 0) return nodeName;
  const address = await addressOf(host);
  log.info('cluster.host_resolved', { host, address });
  return `${nodeName.slice(0, at)}@${address}`;
}

/** @throws ClusterError */
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

/** What the node cannot start with: the error itself, or that a host name which is checked before cannot be resolved. */
export async function firstFault(error: ConfigError): Promise<ConfigError> {
  const { hostFirst } = error;
  if (hostFirst === undefined || isIP(hostFirst) !== 0) return error;

  return addressOf(hostFirst).then(
    () => error,
    (cause: ClusterError) => new ConfigError('JF_DIST_NODE_NAME', cause.message, { cause }),
  );
}

/**
 * The settings with the name under which the others will find this node, before anything is opened.
 * @throws ClusterError
 */
export async function withOwnName(settings: Settings, log: Log): Promise<Settings> {
  const { cluster } = settings;

  return cluster === null ? settings : { ...settings, cluster: { ...cluster, nodeName: await ownName(cluster, log) } };
}
