import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import type { ClusterSettings, Settings } from '@bloom/config';
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
  try {
    const { address } = await lookup(host, { family: 4 });
    log.info('cluster.host_resolved', { host, address });
    return `${nodeName.slice(0, at)}@${address}`;
  } catch (cause) {
    throw new ClusterError(
      'HOST_UNRESOLVABLE',
      `the host name ${JSON.stringify(host)} of JF_DIST_NODE_NAME has no IPv4 address; give the address itself: <name>@<ip>`,
      { cause },
    );
  }
}

/**
 * The settings with the name under which the others will find this node, before anything is opened.
 * @throws ClusterError
 */
export async function withOwnName(settings: Settings, log: Log): Promise<Settings> {
  const { cluster } = settings;

  return cluster === null ? settings : { ...settings, cluster: { ...cluster, nodeName: await ownName(cluster, log) } };
}
