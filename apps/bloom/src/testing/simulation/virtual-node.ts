/** A node of a simulated cluster on a virtual machine: the code of a real one, except for its media. */
import { connectActors, openActorSystem, type ActorSystem, type RemoteActors } from '@bloom/actors';
import { PROTOCOLS } from '@bloom/distribution';
import { silentLog, type Log } from '@bloom/log';
import { AwakeClock } from '@bloom/time';
import { NotificationBus, Webhooks } from '@bloom/notifications';
import { createClusterPort, followMembers, type RoomConflict, RoomHost, RoomRegistry, RoomRouter } from '@bloom/rooms';
import { scriptedSession, TestMedia } from '@bloom/rooms/testing';
import { EventRelay } from '../../event-relay.js';
import type { Events } from './events.js';
import type { PlantedFault } from './planted-faults.js';
import { type Receivers, RETRIES } from './receivers.js';
import type { VirtualNetwork } from './virtual-network.js';
import type { Machine, VirtualWorld } from './virtual-world.js';

/** The shortest time in common use: dead links are detected within 10 s. */
const TICK_TIME_MS = 8_000;
/** Time that a stopping node spends on pending webhooks. */
const WEBHOOK_GRACE_MS = 2_000;
const SECRET = 'a secret of the simulation';

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
  onConflict: (conflict: RoomConflict) => void;
  /** Called when a room of another node has moved here. */
  onMoved: (roomId: string) => void;
  /** Called when this node has taken a room over as its standby. */
  onTaken: (roomId: string) => void;
  /** Called when a room is lost on its way to that node. */
  onLost: (roomId: string, taker: string) => void;
  /** `lost`: a member whose link is down although it has not left. */
  onMember: (change: string, lost?: string) => void;
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
  readonly #options: VirtualNodeOptions;
  readonly #system: ActorSystem;
  readonly #remote: RemoteActors;
  readonly #relay: EventRelay;
  readonly #webhooks: Webhooks;
  readonly #downs = new Map<string, number>();

  /** Must be called in a task of `machine`. */
  constructor(options: VirtualNodeOptions, machine: Machine) {
    const { world, network, host: alive, fault = {} } = options;
    const onConflict = fault.hidesConflicts === true ? () => undefined : options.onConflict;
    this.#options = options;
    this.machine = machine;
    const clock = world.clockOf(machine);
    const newId = (): string => [world.word(), world.word()].map((word) => word.toString(16).padStart(8, '0')).join('');
    const log: Log = {
      ...silentLog,
      info: (event, fields) => {
        if (event === 'room.moved_here') options.onMoved(String(fields?.['roomId']));
      },
      warn: (event, fields) => {
        if (event === 'room.taken_over') options.onTaken(String(fields?.['roomId']));
      },
      error: (event, fields) => {
        if (event === 'room.lost') options.onLost(String(fields?.['roomId']), String(fields?.['node']));
      },
    };
    const common = { log: silentLog, clock, newId };
    this.#system = openActorSystem(common);
    this.#remote = connectActors(this.#system, common);
    const system = this.#system;
    const bus = new NotificationBus(silentLog);
    fault.bus?.(bus);
    bus.subscribe((envelope) => {
      if (envelope.kind === 'notification' || envelope.kind === 'data')
        options.events.heard(this, envelope.source, envelope.notification);
    });
    const poster = options.receivers.posterOf(machine);
    const webhooks = new Webhooks({
      bus,
      log: silentLog,
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
      moved: (way, { roomId, webhookUrl }) => {
        if (way === 'away') webhooks.leave(roomId);
        else if (webhookUrl !== null) webhooks.register(roomId, webhookUrl);
      },
      address: alive,
      secretKeyBase: SECRET,
      webrtcEnabled: true,
    });
    const port = createClusterPort({ system, remote: this.#remote, self: this.name });
    const usedPort = fault.port?.(port) ?? port;
    this.registry = new RoomRegistry({
      ...common,
      log,
      system,
      port: usedPort,
      host: this.host,
      onConflict,
      ...(options.hasStandbys ? { isListed: (node) => network.lists(machine, node.slice(0, node.indexOf('@'))) } : {}),
      settled: async (roomId) => (await Promise.all([this.#relay.delivered(), webhooks.settled(roomId)]))[0],
    });
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
    });
    this.rooms = new RoomRouter({ ...common, system, host: this.host, registry: this.registry, secretKeyBase: SECRET });
    fault.rooms?.(this.rooms);
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
    return this.members.includes(member) ? (this.#downs.get(member) ?? 0) : undefined;
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

  /** Moves all rooms to other nodes. */
  evacuate(timeoutMs: number): void {
    this.host.drain('ordered');
    void this.registry.departures.moveAll(timeoutMs);
  }

  /** Says goodbye to the other members, as a node does on a clean shutdown. */
  async stop(): Promise<void> {
    this.isStopping = true;
    this.host.drain('closing');
    await this.host.deleteAll();
    await this.registry.close();
    this.#relay.close();
    await this.#webhooks.close({ timeoutMs: WEBHOOK_GRACE_MS });
    await this.#remote.close();
  }

  async #join(): Promise<void> {
    const { world, network, seeds, onMember, fault } = this.#options;
    const node = await this.#remote.start({
      name: this.name,
      mode: 'name',
      cookie: 'a cookie of the simulation',
      mapper: { port: 0 },
      tickTimeMs: TICK_TIME_MS,
      // Busy waiting would cost thousands of turns and show nothing.
      limits: { busyWaitMs: 0 },
      spoken: { release: 'simulated', protocols: PROTOCOLS },
      world: {
        clock: new AwakeClock(world.clockOf(this.machine)),
        random: world.random,
        secretWord: () => world.word(),
        network: network.of(this.machine),
      },
      log: silentLog,
    });
    node.subscribe({
      nodeup: ({ node: member }) => {
        this.#relay.memberJoined(member);
        onMember(`up ${member}`);
      },
      nodedown: ({ node: member, reason }) => {
        this.#relay.memberLeft(member);
        this.#downs.set(member, (this.#downs.get(member) ?? 0) + 1);
        onMember(`down ${member} ${reason}`, reason === 'leave' ? undefined : member);
      },
    });
    followMembers(node, this.registry);
    node.seed(fault?.seeds?.(seeds) ?? seeds);
  }
}
