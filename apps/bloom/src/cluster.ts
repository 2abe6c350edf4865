/** This node as a member of a cluster: distribution, discovery, the rooms of all members and their events. */
import { isIPv6, type Server } from 'node:net';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { connectActors, type ActorSystem, type RemoteActors } from '@bloom/actors';
import type { ClusterSettings } from '@bloom/config';
import { dnsStrategy, type Names, nodesList, type Strategy, systemResolver } from '@bloom/discovery';
import { type DistributionNode, parseNodeName, PROTOCOLS } from '@bloom/distribution';
import type { Log } from '@bloom/log';
import type { Metrics } from '@bloom/metrics';
import type { NotificationBus } from '@bloom/notifications';
import { ensureMapper, lookUp } from '@bloom/port-mapper';
import { RoomRegistry, createClusterPort, followMembers, type RoomHost, type RoomWebhooks } from '@bloom/rooms';
import { EventRelay, type EventRelayOptions } from './event-relay.js';
import { ClusterError, ownName } from './own-name.js';
import { VERSION } from './welcome.js';

/** The stand-alone port mapper, which outlives this process. */
const MAPPER_PROGRAM = join(
  dirname(dirname(dirname(fileURLToPath(import.meta.url)))),
  'port-mapper',
  'dist',
  'main.js',
);

/** How long the port mapper of a lost node has to say whether it lists the node. */
const MAPPER_TIMEOUT_MS = 500;

export interface ClusterOptions {
  settings: ClusterSettings;
  system: ActorSystem;
  /** The rooms of this node. */
  host: RoomHost;
  bus: NotificationBus;
  metrics: Metrics;
  log: Log;
  /** True while a client of this node subscribes to events of this kind. */
  wants: EventRelayOptions['wants'];
  webhooks: RoomWebhooks;
  /** Unix socket for tools on this machine; the cluster closes it. */
  localServer?: Server | undefined;
  /** Default: the system's. */
  resolver?: Pick<Names, 'addresses'>;
  /** Called once if the cluster refuses this node as a member: the node must exit. */
  onRefused?: ((error: ClusterError) => void) | undefined;
}

export interface Cluster {
  readonly registry: RoomRegistry;
  readonly remote: RemoteActors;
  readonly node: DistributionNode;
  /** True while a member has a subscriber for this node's metrics report. */
  metricsWanted(): boolean;
  health(): { nodeStatus: 'UP' | 'DOWN'; nodesInCluster: number };
  /** Leaves the cluster. */
  close(): Promise<void>;
}

/** Settings behind the errors that keep a node from joining. */
const VARIABLES_OF: Readonly<Record<string, string>> = {
  CANNOT_LISTEN: 'JF_DIST_IP, JF_DIST_MIN_PORT, JF_DIST_MAX_PORT',
  NAME_IN_USE: 'JF_DIST_NODE_NAME',
};

/** @throws ClusterError NAME_IN_USE or NOT_JOINED, naming the variables behind the error; other errors as they are */
function nameVariables(error: unknown): never {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  const variables = VARIABLES_OF[code];
  if (variables === undefined) throw error;
  const message = `${(error as Error).message} (${variables})`;
  throw new ClusterError(code === 'NAME_IN_USE' ? code : 'NOT_JOINED', message, { cause: error });
}

/**
 * Joins the cluster. Errors of the port mapper and the listener pass unchanged: their messages say what to do.
 * @throws ClusterError
 */
export async function joinCluster(options: ClusterOptions): Promise<Cluster> {
  const { settings, system, host, bus, metrics, log, resolver = systemResolver() } = options;
  const self = await ownName(settings, log, resolver);
  // A name with an IPv6 address is found only there.
  const ip = settings.ip ?? (isIPv6(self.slice(self.indexOf('@') + 1)) ? '::' : '0.0.0.0');
  const mapper = { program: MAPPER_PROGRAM, port: settings.portMapperPort, addresses: [ip] };
  if ((await ensureMapper(mapper)) === 'started') log.info('port_mapper.started', { port: mapper.port });

  const remote = connectActors(system, { log, onRefused: () => metrics.messageRefused() });
  const registry: RoomRegistry = new RoomRegistry({
    system,
    host,
    port: createClusterPort({ system, remote, self }),
    log,
    settled: () => events.delivered(),
    webhooks: options.webhooks,
    isListed: settings.standby ? (node) => isListed(node, settings.portMapperPort) : undefined,
    onPlaced: (node) => metrics.roomPlaced(node),
    onReservationRefused: (node) => metrics.reservationRefused(node),
    onConflict: () => metrics.roomIdConflict(),
  });
  host.drainOrder.moveThrough(registry.departures);
  const { silentMembers } = registry;
  const events = new EventRelay({
    system,
    remote,
    self,
    bus,
    wants: options.wants,
    log,
    silentMembers,
    rooms: registry,
  });

  const starting = remote.start({
    name: self,
    mode: settings.mode,
    cookie: settings.cookie,
    listen: {
      address: ip,
      ...(settings.portRange ? { minPort: settings.portRange.min, maxPort: settings.portRange.max } : {}),
    },
    mapper: {
      port: mapper.port,
      revive: async () => {
        if ((await ensureMapper(mapper)) === 'started') log.warn('port_mapper.restarted', { port: mapper.port });
      },
    },
    ...(options.localServer === undefined ? {} : { localServer: options.localServer }),
    tickTimeMs: settings.tickTimeS * 1000,
    spoken: { release: VERSION, protocols: PROTOCOLS },
    log,
  });
  const node = await starting.catch(nameVariables);
  const unfollow = followMembers(node, registry);
  let refused = false;
  const unwatch = node.subscribe({
    refused: ({ why, joins }) => {
      if (!joins || refused) return;
      refused = true;
      options.onRefused?.(new ClusterError('NO_COMMON_PROTOCOL', why));
    },
    nodeup: (event) => {
      if (event.kind !== 'member') return;
      metrics.nodeUp(event.node);
      events.memberJoined(event.node);
    },
    nodedown: (event) => {
      if (event.kind !== 'member') return;
      metrics.nodeDown(event.node, event.reason === 'leave');
      events.memberLeft(event.node);
      // The only trace of the node's lost rooms: their events ended with it.
      if (event.reason !== 'leave') log.warn('cluster.node_lost', { node: event.node, reason: event.reason });
    },
  });

  const discovery = discoveryOf({ settings, self, log, resolver });
  // Do not await: a resolver that does not answer must not delay the start.
  void discovery.start((names) => {
    if (settings.discovery.strategy === 'NODES_LIST') node.seed(names);
    else node.learn(names);
  });

  return {
    registry,
    remote,
    node,
    metricsWanted: () => events.metricsWanted,
    health: () => ({ nodeStatus: 'UP', nodesInCluster: 1 + node.nodes('members').length }),
    async close() {
      discovery.stop();
      await registry.close();
      events.close();
      unfollow();
      unwatch();
      await remote.close();
    },
  };
}

/** Returns whether the port mapper of its host lists the node; undefined if it does not answer. */
async function isListed(node: string, port: number): Promise<boolean | undefined> {
  const { alive, host } = parseNodeName(node);
  try {
    return (await lookUp({ host, port, timeoutMs: MAPPER_TIMEOUT_MS }, alive)) !== undefined;
  } catch {
    return undefined;
  }
}

interface DiscoveryParts extends Required<Pick<ClusterOptions, 'settings' | 'log' | 'resolver'>> {
  self: string;
}

function discoveryOf({ settings: { discovery }, self, log, resolver }: DiscoveryParts): Strategy {
  if (discovery.strategy === 'NODES_LIST') return nodesList({ self, nodes: discovery.nodes });
  return dnsStrategy({
    self,
    query: discovery.query,
    pollingIntervalMs: discovery.pollingIntervalMs,
    resolver,
    warn: (event, fields) => log.warn(event, fields),
  });
}
