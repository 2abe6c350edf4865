/** A node of a simulated cluster on a virtual machine: the code of a real one, except for its media. */
import { connectActors, openActorSystem, type ActorSystem, type RemoteActors, type Trace } from '@bloom/actors';
import { type DistributionNode, PROTOCOLS, type Spoken } from '@bloom/distribution';
import { type Inspection, type InspectionParts, loadInspection } from '@bloom/inspection';
import type { Log } from '@bloom/log';
import { AwakeClock } from '@bloom/time';
import { NotificationBus, Webhooks } from '@bloom/notifications';
import { createClusterPort, followMembers, type RoomConflict, RoomHost, RoomRegistry, RoomRouter } from '@bloom/rooms';
import { scriptedSession, TestMedia } from '@bloom/rooms/testing';
import { asking } from '../../cluster-view.js';
import { EventRelay } from '../../event-relay.js';
import { nodeControl } from '../../node-control.js';
import type { Events } from './events.js';
import { type HttpAnswer, type HttpRequest, openFace } from './http-face.js';
import { nodeLog } from './node-log.js';
import type { PlantedFault } from './planted-faults.js';
import { type Receivers, RETRIES } from './receivers.js';
import type { VirtualNetwork } from './virtual-network.js';
import type { Machine, VirtualWorld } from './virtual-world.js';

/** The shortest time in common use: dead links are detected within 10 s. */
/** Far below the default, so that lost links are noticed within a history. */
const TICK_TIME_MS = 8_000;
/** Time that a stopping node spends on pending webhooks. */
const WEBHOOK_GRACE_MS = 2_000;
/** Messages of the second version of the member protocol (docs/reference/node-transport.md). */
const NEWER_MESSAGES = ['offerRoom', 'takeRoom', 'keepRoom', 'moveState', 'flush'] as const;
/** A trace that runs no timer within a history. */
const FIRST_MESSAGE = { match: () => true, limit: 1, withinMs: 1e9, maxPerSecond: 1e-6 };
const SECRET = 'a secret of the simulation';
const COOKIE = 'a cookie of the simulation';
/** What members of the current release announce; those of the first one announced nothing. */
const SPOKEN: Spoken = { release: 'simulated', protocols: PROTOCOLS };

/** What members would say of their process; the seed does not decide about the load of this one. */
const FIGURES: NonNullable<InspectionParts['figures']> = {
  reading: {
    ms: 5_000,
    loop: { p50Ms: 0, p99Ms: 0, maxMs: 0, utilization: 0 },
    cpu: { user: 0, system: 0 },
  },
  gc: { perS: 0, share: 0, maxPauseMs: 0, total: 0 },
  lookCloser: () => undefined,
  close: () => undefined,
};
/** Loaded before any history: nothing that a history awaits may take real time. */
const { open: openInspection } = await loadInspection();

export interface VirtualNodeOptions {
  world: VirtualWorld;
  network: VirtualNetwork;
  host: string;
  /** Names of the nodes that it is configured to join. */
  seeds: readonly string[];
  events: Events;
  receivers: Receivers;
  fault?: PlantedFault | undefined;
  /** Its rooms have standbys. */
  hasStandbys: boolean;
  /** Default: that of the cluster. */
  cookie?: string | undefined;
  /** Knows only the first version of the member protocol. */
  isOld: boolean;
  onConflict: (conflict: RoomConflict) => void;
  /** Called when a room of another node has moved here. */
  onMoved: (roomId: string) => void;
  /** Called when this node has taken a room over as its standby. */
  onTaken: (roomId: string) => void;
  /** Called when a room is lost on its way to that node. */
  onLost: (roomId: string, taker: string) => void;
  /** `lost`: a member whose link is down although it has not left. */
  onMember: (change: string, lost?: string) => void;
  /** `JF_DIST_TICK_TIME`. Default: 8 s. */
  tickTimeMs?: number | undefined;
  /** Called with what a port mapper says about a member. */
  onListed: (member: string, isListed: boolean | undefined) => void;
  /** Called with a rule that its log breaks. */
  onBadLog: (rule: string) => void;
  /** Called when an old node is sent a message that it does not know. */
  onNewerMessage: (type: string) => void;
}

export function nameOf(host: string): string {
  return `${host}@${host}.sim`;
}

export class VirtualNode {
  readonly machine: Machine;
  readonly host: RoomHost;
  readonly registry: RoomRegistry;
  readonly rooms: RoomRouter;
  readonly media = new TestMedia();
  /** True once the node leaves the cluster. */
  isStopping = false;
  /** True once everything is closed. */
  hasStopped = false;
  /** Number of times that an order to drain was taken back. */
  withdrawals = 0;
  #inspection: Inspection | undefined;
  readonly #options: VirtualNodeOptions;
  readonly #log: Log;
  readonly #face: ReturnType<typeof openFace>;
  readonly #system: ActorSystem;
  readonly #remote: RemoteActors;
  readonly #relay: EventRelay;
  readonly #webhooks: Webhooks;
  readonly #watches: readonly Trace[];
  /** Members with a link: rules ask for them far more often than they change. */
  readonly #up = new Set<string>();
  readonly #downs = new Map<string, number>();

  /** Must be called in a task of `machine`. */
  constructor(options: VirtualNodeOptions, machine: Machine) {
    const { world, network, host: alive, fault = {} } = options;
    const onConflict = fault.hidesConflicts === true ? () => undefined : options.onConflict;
    this.#options = options;
    this.machine = machine;
    const clock = world.clockOf(machine);
    const newId = (): string => [world.word(), world.word()].map((word) => word.toString(16).padStart(8, '0')).join('');
    const kept = nodeLog({
      now: () => world.nowMs,
      info: (event, fields) => {
        if (event === 'room.moved_here') options.onMoved(String(fields['roomId']));
      },
      warn: (event, fields) => {
        if (event === 'room.taken_over') options.onTaken(String(fields['roomId']));
      },
      error: (event, fields) => {
        if (event === 'room.lost') options.onLost(String(fields['roomId']), String(fields['node']));
      },
      broken: options.onBadLog,
    });
    const log = fault.log?.(kept) ?? kept;
    this.#log = log;
    const common = { log, clock, newId };
    this.#system = openActorSystem(common);
    this.#remote = connectActors(this.#system, common);
    const system = this.#system;
    const bus = new NotificationBus(log);
    fault.bus?.(bus);
    bus.subscribe((envelope) => {
      if (envelope.kind === 'notification' || envelope.kind === 'data')
        options.events.heard(this, envelope.source, envelope.notification);
    });
    const poster = options.receivers.posterOf(machine);
    const webhooks = new Webhooks({
      bus,
      log,
      clock,
      retries: RETRIES,
      poster: { ...poster, post: fault.post?.(poster.post) ?? poster.post },
    });
    this.#webhooks = webhooks;
    this.host = new RoomHost({
      ...common,
      system,
      engine: this.media,
      createSession: scriptedSession,
      events: (notification, { webhookUrl, requestId }) => {
        const { type, roomId } = notification;
        if (type === 'roomCreated' && webhookUrl !== null) webhooks.register(roomId, webhookUrl);
        this.registry.observe(notification, requestId);
        bus.publish(notification);
      },
      moved: (way, { roomId, webhookUrl, backlog }) => {
        if (way === 'away') webhooks.leave(roomId);
        else if (webhookUrl !== null) webhooks.register(roomId, webhookUrl, backlog);
      },
      address: alive,
      secretKeyBase: SECRET,
      webrtcEnabled: true,
    });
    const isListed = async (node: string): Promise<boolean | undefined> => {
      const answer = await network.lists(machine, node.slice(0, node.indexOf('@')));
      options.onListed(node, answer);
      return answer;
    };
    const port = createClusterPort({ system, remote: this.#remote, self: this.name });
    const usedPort = fault.port?.(port) ?? port;
    this.registry = new RoomRegistry({
      ...common,
      system,
      port: usedPort,
      host: this.host,
      onConflict,
      ...(options.hasStandbys ? { isListed } : {}),
      settled: () => this.#relay.delivered(),
      webhooks,
    });
    this.host.drainOrder.moveThrough(this.registry.departures);
    const { silentMembers } = this.registry;
    const wants = (): boolean => true;
    this.#relay = new EventRelay({
      ...common,
      system,
      remote: this.#remote,
      self: this.name,
      bus,
      wants,
      silentMembers,
      rooms: this.registry,
    });
    this.rooms = new RoomRouter({ ...common, system, host: this.host, registry: this.registry, secretKeyBase: SECRET });
    const change = fault.rooms?.();
    const { rooms } = this;
    const forRequest = (requestId: string): RoomRouter => {
      const used = rooms.forRequest(requestId);
      change?.(used);
      return used;
    };
    const ask = asking(() => this.#inspection);
    const control = nodeControl({ rooms: this.host, engine: this.media, system, started: () => true, ask });
    this.#face = openFace({ forRequest, control: fault.control?.(control) ?? control, system, log });
    this.#watches = this.#watchMessages();
    void this.#join();
  }

  get name(): string {
    return nameOf(this.#options.host);
  }

  /** The other members that this node sees, in order. */
  get members(): string[] {
    return (this.#remote.node?.nodes('members') ?? []).toSorted();
  }

  /** Number of times that the link to the member has been lost; undefined without a link. */
  linkTo(member: string): number | undefined {
    return this.#up.has(member) ? (this.#downs.get(member) ?? 0) : undefined;
  }

  /** Identifies the room with this id that runs here, wherever it ran before; undefined if there is none. */
  roomKey(roomId: string): string | undefined {
    return this.host.view(roomId) === undefined ? undefined : `${roomId} ${this.host.createdAt(roomId)}`;
  }

  /** Epoch under which this node announces the room; 0 if it does not. */
  epochOf(roomId: string): number {
    return this.registry.directory.announced(this.name, roomId)?.epoch ?? 0;
  }

  /** Ids of the rooms here that have run on other nodes before. */
  get movedRooms(): string[] {
    const { directory } = this.registry;
    return this.host.roomIds().filter((roomId) => (directory.announced(this.name, roomId)?.epoch ?? 0) > 0);
  }

  /** True if the room has moved away from here and its requests are passed on. */
  relays(roomId: string): boolean {
    return this.host.relayRef(roomId) !== undefined;
  }

  /** Sends a request to its HTTP API. Resolves with the answer; never if the node ends before. */
  ask(request: HttpRequest): Promise<HttpAnswer> {
    return this.#face.face.ask(request);
  }

  /** Gives its HTTP API back at the end of the history. */
  release(): void {
    this.#face.release();
  }

  /** Undefined until the node listens. */
  get distribution(): DistributionNode | undefined {
    return this.#remote.node;
  }

  /** Sends an exit signal to a room of another node, as Erlang's `exit/2` does. */
  tryToEnd(roomId: string): void {
    const place = this.registry.directory.find(roomId);
    if (place !== undefined && place.node !== this.name) void this.#system.stop(place.ref);
  }

  /** Says goodbye to the other members and closes everything, as a node does on a clean shutdown. */
  async stop(): Promise<void> {
    const { keeps } = this.#options.fault ?? {};
    this.isStopping = true;
    this.host.drain('closing');
    await this.host.deleteAll();
    await this.#inspection?.close();
    await this.registry.close();
    if (keeps !== 'timers') this.#relay.close();
    if (keeps !== 'sockets') await this.#remote.close();
    await this.#webhooks.close({ timeoutMs: WEBHOOK_GRACE_MS });
    for (const watch of this.#watches) watch.stop();
    if (keeps !== 'actors') await this.#system.close();
    this.hasStopped = true;
  }

  /** Living actors. */
  get actors(): number {
    return this.#system.size;
  }

  /** Lets members and the HTTP API ask this node, as any real one does. */
  #openInspection(node: DistributionNode): void {
    const { world } = this.#options;
    const clock = world.clockOf(this.machine);
    const parts = {
      version: '0.0.0',
      gitCommit: 'simulated',
      startedAt: clock.wall(),
      system: this.#system,
      remote: this.#remote,
      node,
      host: this.host,
      registry: this.registry,
      engine: this.media,
      log: this.#log,
      secrets: [],
      clock,
      figures: FIGURES,
    };
    this.#inspection = openInspection(parts, 'read');
  }

  /** Reports messages that members of an old node's release do not know: nobody must send them to it. */
  #watchMessages(): Trace[] {
    const { isOld, onNewerMessage } = this.#options;
    if (!isOld) return [];

    return NEWER_MESSAGES.map((type) => this.#system.trace({ ...FIRST_MESSAGE, type }, () => onNewerMessage(type)));
  }

  async #join(): Promise<void> {
    const { world, network, seeds, cookie = COOKIE, isOld, onMember, fault } = this.#options;
    const node = await this.#remote.start({
      name: this.name,
      mode: 'name',
      cookie: fault?.anyCookie === true ? COOKIE : cookie,
      mapper: { port: 0 },
      tickTimeMs: this.#options.tickTimeMs ?? TICK_TIME_MS,
      // Busy waiting would cost thousands of turns and show nothing.
      limits: { busyWaitMs: 0 },
      spoken: isOld ? undefined : SPOKEN,
      world: {
        clock: new AwakeClock(world.clockOf(this.machine)),
        random: world.random,
        secretWord: () => world.word(),
        network: network.of(this.machine),
      },
      log: this.#log,
    });
    if (fault?.speaks !== undefined) Object.assign(node, { speaks: fault.speaks });
    node.subscribe({
      nodeup: ({ node: member }) => {
        this.#relay.memberJoined(member);
        this.#up.add(member);
        onMember(`up ${member}`);
      },
      nodedown: ({ node: member, reason }) => {
        this.#relay.memberLeft(member);
        this.#up.delete(member);
        this.#downs.set(member, (this.#downs.get(member) ?? 0) + 1);
        onMember(`down ${member} ${reason}`, reason === 'leave' ? undefined : member);
      },
    });
    followMembers(node, this.registry);
    this.#openInspection(node);
    node.seed(fault?.seeds?.(seeds) ?? seeds);
  }
}
