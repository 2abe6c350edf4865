/** This node as a member of a cluster: distribution, discovery, the rooms of all nodes, and events among them. */
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { connectActors, type ActorRef, type ActorSystem, type Behaviour, type RemoteActors } from '@bloom/actors';
import type { ClusterSettings } from '@bloom/config';
import { createResolver, dnsStrategy, nodesList, type Resolve4, type Strategy } from '@bloom/discovery';
import type { DistributionNode } from '@bloom/distribution';
import type { Log } from '@bloom/log';
import type { Metrics } from '@bloom/metrics';
import type { NotificationBus } from '@bloom/notifications';
import { ensureMapper } from '@bloom/port-mapper';
import type { Notification } from '@bloom/protocol';
import { ClusterRooms, createClusterPort, followMembers, type Rooms } from '@bloom/rooms';
import { ownName } from './own-name.js';

/** The stand-alone port mapper, which outlives this process. */
const mapperProgram = join(dirname(dirname(dirname(fileURLToPath(import.meta.url)))), 'port-mapper', 'dist', 'main.js');
const EVENTS_ACTOR = 'events_node';
const INTEREST_INTERVAL_MS = 500;

export interface ClusterOptions {
  settings: ClusterSettings;
  system: ActorSystem;
  /** The rooms of this node. */
  rooms: Rooms;
  secretKeyBase: string;
  bus: NotificationBus;
  metrics: Metrics;
  log: Log;
  /** Whether somebody here subscribes to metrics reports. */
  wantsMetrics: () => boolean;
  /** Default: the resolvers of the system. */
  resolve4?: Resolve4;
}

export interface Cluster {
  readonly rooms: ClusterRooms;
  readonly remote: RemoteActors;
  readonly node: DistributionNode;
  /** Whether a member has a subscriber for the metrics report of this node. */
  metricsWanted(): boolean;
  health(): { nodeStatus: 'UP' | 'DOWN'; nodesInCluster: number };
  /** Says goodbye. */
  close(): Promise<void>;
}

/** Events of one node on their way to the subscribers of another. */
type EventsProtocol = {
  notification: (message: { notification: Notification }) => void;
  metrics: (message: { report: unknown }) => void;
  interest: (message: { node: string; metrics: boolean }) => void;
};

/** @throws ClusterError, and what the port mapper and the listener throw: their sentences say what to do. */
export async function joinCluster(options: ClusterOptions): Promise<Cluster> {
  const { settings, system, rooms, bus, metrics, log } = options;
  const self = await ownName(settings, log);
  const mapper = {
    program: mapperProgram,
    port: settings.portMapperPort,
    addresses: [settings.ip ?? '0.0.0.0'],
  };
  if ((await ensureMapper(mapper)) === 'started') log.info('port-mapper.started', { port: mapper.port });

  const remote = connectActors(system, { log });
  const clusterRooms = new ClusterRooms({
    system,
    rooms,
    port: createClusterPort({ system, remote, self }),
    tokenKey: options,
    log,
    now: () => Date.now(),
    onPlaced: (node) => metrics.roomPlaced(node),
    onReservationRefused: (node) => metrics.reservationRefused(node),
    onConflict: () => metrics.roomIdConflict(),
  });
  const events = relayEvents({ ...options, remote, self });

  const node = await remote.start({
    name: self,
    mode: settings.mode,
    cookie: settings.cookie,
    listen: {
      address: settings.ip ?? '0.0.0.0',
      ...(settings.portRange ? { minPort: settings.portRange.min, maxPort: settings.portRange.max } : {}),
    },
    mapper: {
      port: mapper.port,
      revive: async () => {
        if ((await ensureMapper(mapper)) === 'started') log.warn('port-mapper.restarted', { port: mapper.port });
      },
    },
    tickTimeMs: settings.tickTimeS * 1000,
    log,
  });
  const unfollow = followMembers(node, clusterRooms);
  const unwatch = node.subscribe({
    nodeup: (event) => {
      if (event.kind !== 'member') return;
      metrics.nodeUp(event.node);
      events.greet(event.node);
    },
    nodedown: (event) => {
      if (event.kind !== 'member') return;
      metrics.nodeDown(event.node);
      events.forget(event.node);
      // Its rooms are simply not there any more: nobody else says so.
      if (event.reason !== 'leave') log.warn('cluster.node_lost', { node: event.node, reason: event.reason });
    },
  });

  const discovery = discoveryOf(settings, self, log, options.resolve4);
  // A resolver that does not answer takes its time limits times its attempts: that is no reason not to start.
  void discovery.start((names) => {
    if (settings.discovery.strategy === 'NODES_LIST') node.seed(names);
    else node.learn(names);
  });

  bus.subscribe((envelope) => {
    if (envelope.source !== 'local') return;
    if (envelope.kind === 'notification') events.spread({ type: 'notification', notification: envelope.notification });
    else events.report(envelope.report);
  });

  return {
    rooms: clusterRooms,
    remote,
    node,
    metricsWanted: () => events.wanted(),
    health: () => ({ nodeStatus: 'UP', nodesInCluster: 1 + node.nodes('members').length }),
    async close() {
      discovery.stop();
      events.close();
      unfollow();
      unwatch();
      await remote.close();
    },
  };
}

function discoveryOf(
  { discovery }: ClusterSettings,
  self: string,
  log: Log,
  resolve4: Resolve4 = createResolver(),
): Strategy {
  if (discovery.strategy === 'NODES_LIST') return nodesList({ self, nodes: discovery.nodes });
  return dnsStrategy({
    self,
    query: discovery.query,
    pollingIntervalMs: discovery.pollingIntervalMs,
    resolve4,
    warn: (event, fields) => log.warn(event, fields),
    every: (ms, task) => {
      const timer = setInterval(task, ms);
      return () => clearInterval(timer);
    },
  });
}

type RelayOptions = ClusterOptions & { remote: RemoteActors; self: string };

/** Everybody who subscribes anywhere hears of everything, once: each node tells the others what arose on itself. */
function relayEvents({ system, remote, self, bus, wantsMetrics }: RelayOptions) {
  const interested = new Set<string>();
  const refs = new Map<string, ActorRef<EventsProtocol>>();
  const actorOn = (node: string) => {
    let ref = refs.get(node);
    if (!ref) {
      ref = remote.remote<EventsProtocol>(node, EVENTS_ACTOR);
      refs.set(node, ref);
    }
    return ref;
  };
  const members = () => remote.node?.nodes('members') ?? [];
  const tell = (node: string, metrics: boolean) =>
    void system.cast(actorOn(node), { type: 'interest', node: self, metrics });

  const behaviour: Behaviour<EventsProtocol, null> = {
    kind: 'events-node',
    init: () => null,
    handlers: {
      notification: (_state, { notification }) => bus.publish(notification, 'remote'),
      metrics: (_state, { report }) => bus.publishMetrics(report, 'remote'),
      interest: (_state, { node, metrics }) => void (metrics ? interested.add(node) : interested.delete(node)),
    },
    inspect: () => ({ metricsWantedBy: [...interested] }),
  };
  const actor = system.spawn(behaviour, { name: EVENTS_ACTOR, mailbox: { essential: ['notification', 'interest'] } });
  system.register(EVENTS_ACTOR, actor);

  let told = false;
  const timer = setInterval(() => {
    const wanted = wantsMetrics();
    if (wanted === told) return;
    told = wanted;
    for (const node of members()) tell(node, wanted);
  }, INTEREST_INTERVAL_MS);
  timer.unref();

  return {
    spread: (message: { type: 'notification'; notification: Notification }) => {
      for (const node of members()) system.cast(actorOn(node), message);
    },
    report: (report: unknown) => {
      for (const node of interested) system.cast(actorOn(node), { type: 'metrics', report });
    },
    wanted: () => interested.size > 0,
    greet: (node: string) => {
      if (told) tell(node, true);
    },
    forget: (node: string) => {
      interested.delete(node);
      refs.delete(node);
    },
    close: () => clearInterval(timer),
  };
}
