import type { Server } from 'node:net';
import { atom, type Pid, type Ref, type Term, tuple } from '@bloom/etf';
import { Registration } from '@bloom/port-mapper';
import type { Log } from '@bloom/log';
import { LogThrottle } from '@bloom/time';
import { Door, type HandshakeCounters } from './door.js';
import { DistributionError } from './errors.js';
import { Faults } from './faults.js';
import { resolveHost } from './handshake/dialer.js';
import { FLAG, hasOwnFlags, ownFlags } from './handshake/flags.js';
import { bindServer, type ListenAddress, portOf, warnOfOpenDoor } from './handshake/listener.js';
import { checkKind, isLong, isNodeName, type NameMode, parseNodeName, parseOwnName } from './handshake/names.js';
import { anyCreation, Identifiers } from './identifiers.js';
import { DEFAULT_LIMITS, type NodeLimits } from './limits.js';
import { type Connection, Connections } from './link/connections.js';
import { type Control, write } from './link/control.js';
import { aliasOf, type GenCall } from './link/gen-call.js';
import type { CloseReason, LinkCounters, SendOptions, SendResult } from './link/link.js';
import { wireTarget } from './link/signals.js';
import { socketWire } from './link/socket-wire.js';
import { Ticker } from './link/ticker.js';
import { TurnFlush } from './link/turn-flush.js';
import { type Announcement, commonProtocol, type Spoken, UNANNOUNCED } from './membership/announcement.js';
import { ClusterEvents } from './membership/cluster-events.js';
import type { LinkState, NodeKind, NodeListener } from './membership/link-state.js';
import { Membership } from './membership/membership.js';
import { MESH_NAME } from './membership/mesh.js';
import { Pings } from './membership/pings.js';
import type { ProcessTable, SpawnRequest, Watched } from './processes.js';
import { SystemTable } from './system-process.js';
import { MACHINE, type NodeWorld, type Reachable } from './world.js';

export interface NodeOptions {
  /** Full name, `name@host`. */
  readonly name: string;
  readonly mode: NameMode;
  /** Shared secret of the cluster, or one per node. */
  readonly cookie: string | ((node: string) => string);
  /** Creates the processes that the node represents. Called once, before anything arrives. Default none. */
  readonly processes?: (node: DistributionNode) => ProcessTable;
  /**
   * True when Erlang's `nodes()` lists the node, for programs on this library. Default false: Bloom's own nodes stay
   * hidden, because `global` synchronises with every visible one.
   */
  readonly visible?: boolean;
  /** True for a tool such as bloomctl, which connects to members but is not one. Default false. */
  readonly tool?: boolean;
  /** What the node announces as a member. Without it, the node speaks protocol 1 and accepts every member. */
  readonly spoken?: Spoken | undefined;
  /** Address to listen on. `false`: only dials and registers nothing. Default any port of 127.0.0.1. */
  readonly listen?: ListenAddress | false;
  /** From `bindSocket`, for tools on this machine, which need no cookie to use it. The node closes it. */
  readonly localServer?: Server;
  /** Unix socket through which every node is dialled, without host, port mapper or cookie. Default none. */
  readonly via?: string;
  /** The port mapper of this and all other hosts; `revive` restarts a lost one. */
  readonly mapper: { readonly port: number; readonly revive?: () => Promise<void> };
  /** Silence after which a connection is dropped; must be equal on all nodes. Default 60 s. */
  readonly tickTimeMs?: number;
  /** Reports Erlang nodes to listeners too, for programs on this library. Default false: Bloom needs only members. */
  readonly announceForeign?: boolean;
  readonly limits?: Partial<NodeLimits>;
  /** Returns the addresses of a host name in the order to try them. Default: as the system resolves names. */
  readonly resolve?: (host: string) => Promise<readonly string[]>;
  /** Default: the clock, randomness and network of the machine. */
  readonly world?: NodeWorld;
  readonly log: Log;
}

export type NodeFilter = 'visible' | 'hidden' | 'connected' | 'members';

export interface NodeCounters {
  readonly handshakes: HandshakeCounters;
  /** Ended connections by reason. */
  readonly closed: Partial<Record<CloseReason, number>>;
}

/** A node of the distribution: listens, dials, and carries messages between its processes and those of other nodes. */
export class DistributionNode {
  readonly name: string;
  /** Distinguishes this lifetime of the node from the next; part of every pid and reference. */
  readonly creation: number;
  readonly counters: NodeCounters;
  /** Events of the members as this node saw them. */
  readonly events: ClusterEvents;
  readonly #options: NodeOptions;
  readonly #reachable: Reachable;
  readonly #identifiers: Identifiers;
  readonly #throttle: LogThrottle;
  readonly #faults: Faults;
  readonly #connections: Connections;
  readonly #door: Door;
  readonly #pings: Pings;
  readonly #ticker: Ticker;
  readonly #membership: Membership;
  readonly #table: SystemTable;
  #stopping: Promise<void> | undefined;

  private constructor(options: NodeOptions, reachable: Reachable) {
    const { log, cookie, processes, visible = false } = options;
    const { clock, random, secretWord, network, wire } = options.world ?? MACHINE;
    const limits = { ...DEFAULT_LIMITS, ...options.limits };
    this.#options = options;
    this.#reachable = reachable;
    this.name = options.name;
    this.creation = reachable.registration?.creation ?? anyCreation(random);
    this.#identifiers = new Identifiers(this.name, this.creation, secretWord());
    const self = { name: this.name, creation: this.creation, flags: ownFlags(visible) };
    this.#throttle = new LogThrottle(clock);
    this.#faults = new Faults(log);
    this.#pings = new Pings(clock);
    this.events = new ClusterEvents(() => clock.wall());
    this.#table = new SystemTable(
      {
        self: this.name,
        pid: this.#identifiers.system,
        visible,
        reply: (call, reply) => void this.reply(call, reply, this.#identifiers.system),
        sendName: (node, name, message) => void this.send({ node, name }, message, { from: this.#identifiers.system }),
        mesh: (node, message) => this.#membership.message(node, message),
        answered: (ref, reply) => this.#pings.answered(ref, reply),
      },
      processes?.(this),
    );
    this.#connections = new Connections({
      self,
      limits,
      clock,
      defer: new TurnFlush().defer,
      wire: wire ?? ((socket) => socketWire(socket, clock)),
      table: this.#table,
      guard: this.#faults.guard,
      control: (connection, control, payload) => this.#control(connection, control, payload),
      up: (remote, dialled) => {
        const settle = this.#door.connected(remote.name, dialled);
        const mayBeOurs = hasOwnFlags(remote.flags);
        this.#membership.connected(remote.name, { creation: remote.creation, dialled, mayBeOurs });
        settle();
      },
      closed: (node, reason, detail) => this.#closed(node, reason, detail),
    });
    this.#door = new Door({
      self,
      secrets: {
        cookie: typeof cookie === 'string' ? () => cookie : cookie,
        challenge: secretWord,
      },
      server: reachable.server,
      localServer: options.localServer,
      mapperPort: options.mapper.port,
      via: options.via,
      resolve: options.resolve ?? resolveHost,
      network,
      limits,
      connections: this.#connections,
      cutEnded: (node) => this.#membership.retry(node),
      random,
      clock,
      throttle: this.#throttle,
      log,
    });
    this.counters = { handshakes: this.#door.counters, closed: {} };
    this.#membership = new Membership({
      self: this.name,
      mode: options.mode,
      tool: options.tool ?? false,
      announceForeign: options.announceForeign ?? false,
      acceptable: (node) => this.#acceptable(node),
      connect: (node) => this.connect(node),
      disconnect: (node) => void this.disconnect(node),
      spoken: options.spoken,
      send: (node, message) =>
        void this.send({ node, name: MESH_NAME }, message, { from: this.#identifiers.system, kind: 'signal' }),
      guard: this.#faults.guard,
      events: this.events,
      random,
      clock,
      throttle: this.#throttle,
      log,
    });
    this.#ticker = new Ticker(clock, options.tickTimeMs ?? 60_000, (judge) => {
      for (const { link } of this.#connections.all()) link.check(judge);
    });
    this.#ticker.start();
  }

  /**
   * Starts listening and registers the name.
   * @throws DistributionError BAD_NODE_NAME, NAME_KIND_MISMATCH, CANNOT_LISTEN
   * @throws PortMapperError NAME_IN_USE, PORT_MAPPER_UNREACHABLE, PORT_MAPPER_PROTOCOL
   */
  static async start(options: NodeOptions): Promise<DistributionNode> {
    const own = parseOwnName(options.name);
    checkKind(own, options.mode);
    try {
      return new DistributionNode(options, await openDoor(options, own.alive));
    } catch (error) {
      options.localServer?.close();
      throw error;
    }
  }

  /** Port of the listener; 0 without one. */
  get port(): number {
    return portOf(this.#reachable.server);
  }

  /** True while the port mapper knows this node. */
  get registered(): boolean {
    return this.#reachable.registration?.registered === true;
  }

  /** Returns a pid that no process of this node has had. */
  createPid(): Pid {
    return this.#identifiers.pid();
  }

  /** Returns a reference that is unique in this lifetime of the node. */
  createRef(): Ref {
    return this.#identifiers.ref();
  }

  // --- nodes

  nodes(kind: NodeFilter = 'members'): string[] {
    if (kind === 'members') return this.#membership.members();
    return Array.from(this.#connections.all(), ({ link }) => link.remote)
      .filter(({ flags }) => kind === 'connected' || ((flags & FLAG.published) !== 0n) === (kind === 'visible'))
      .map(({ name }) => name);
  }

  /** Returns the kind of a connected node; undefined when it is not connected or not known yet. */
  kindOf(node: string): NodeKind | undefined {
    return this.#membership.kindOf(node);
  }

  /** Returns what a connected member has announced; undefined for others. */
  announced(node: string): Announcement | undefined {
    return this.#membership.announced(node);
  }

  /** Returns whether the member, or this node, speaks at least this version of the member protocol. */
  speaks(node: string, protocol: number): boolean {
    const own = this.#options.spoken?.protocols ?? UNANNOUNCED.protocols;
    const theirs = node === this.name ? own : this.announced(node)?.protocols;
    return theirs !== undefined && (commonProtocol(own, theirs) ?? 0) >= protocol;
  }

  isConnected(node: string): boolean {
    return this.#connections.has(node);
  }

  linkCounters(node: string): (Readonly<LinkCounters> & { readonly pendingBytes: number }) | undefined {
    const link = this.#connections.get(node)?.link;
    return link && { ...link.counters, pendingBytes: link.pendingBytes };
  }

  /** Returns a function that unsubscribes. */
  subscribe(listener: NodeListener): () => void {
    return this.#membership.subscribe(listener);
  }

  /** Adds configured names, which are dialled immediately and forever. Bad names are logged and skipped. */
  seed(nodes: readonly string[]): void {
    this.#membership.seed(nodes);
  }

  /** Adds names to try, such as those found in DNS: dialled, retried for 10 minutes, then forgotten. */
  learn(nodes: readonly string[]): void {
    this.#membership.learn(nodes);
  }

  /**
   * Resolves when the node is connected.
   * @throws DistributionError BAD_NODE_NAME, NAME_KIND_MISMATCH, LINK_CUT, NODE_STOPPED, NODE_UNREACHABLE,
   *   NODE_NOT_REGISTERED
   * @throws HandshakeFailed
   */
  async connect(node: string): Promise<void> {
    const target = parseNodeName(node);
    checkKind(target, this.#options.mode);
    await this.#door.connect(target);
  }

  /** False for a name that must not be dialled although a member announced it. */
  #acceptable(node: string): boolean {
    // C nodes may use any host name for themselves, so only names that we dial must be of our kind.
    return isNodeName(node) && isLong(parseNodeName(node).host) === (this.#options.mode === 'name');
  }

  #closed(node: string, reason: CloseReason, detail: string): void {
    const { closed } = this.counters;
    closed[reason] = (closed[reason] ?? 0) + 1;
    if (
      reason !== 'leave' &&
      reason !== 'disconnect' &&
      reason !== 'connection_closed' &&
      this.#throttle.allows(`${reason} ${node}`)
    ) {
      this.#options.log.warn('distribution.closed', { node, reason, detail });
    }
    this.#membership.lost(node, reason);
  }

  /** Closes the connection. Returns false when there was none. */
  disconnect(node: string): boolean {
    return this.#connections.close(node, 'disconnect', 'we disconnected');
  }

  /**
   * Closes the connection to the node and refuses new ones, from either side, for `ms` (at most an hour): a deliberate
   * network split. A member is dialled again afterwards.
   */
  cut(node: string, ms: number): void {
    this.#door.cut(node, ms);
    this.events.add('cut', node, `for ${(ms / 1_000).toFixed(1)} s`);
  }

  /** Ends a cut early. Returns false when there was none. */
  uncut(node: string): boolean {
    return this.#door.uncut(node);
  }

  /** Returns the state of every node that is connected, wanted or cut off. */
  links(): LinkState[] {
    return this.#membership.links(this.#door.cutNodes).map((plan) => ({
      ...plan,
      cutForMs: this.#door.cutRemainingMs(plan.node),
      traffic: this.linkCounters(plan.node) ?? null,
    }));
  }

  /** Resolves with true when the node can be connected and answers within 5 s. */
  async ping(node: string): Promise<boolean> {
    if (node === this.name) return true;
    const connected = await this.connect(node).then(
      () => true,
      (error: unknown) => {
        if (error instanceof DistributionError) return false;
        throw error;
      },
    );
    if (!connected) return false;
    const from = this.#identifiers.system;
    return await this.#pings.ask(this.createRef(), (ref) => {
      const call = tuple(atom('$gen_call'), tuple(from, ref), tuple(atom('is_auth'), atom(this.name)));
      return this.send({ node, name: 'net_kernel' }, call, { from, kind: 'query' }) === 'sent';
    });
  }

  // --- messages

  /**
   * Sends to a process, a registered name or an alias of a connected node. `no_connection`: call `connect` first.
   * @throws EtfError NOT_ENCODABLE
   * @throws DistributionError FRAME_TOO_BIG
   */
  send(
    to: Pid | Ref | { readonly node: string; readonly name: string },
    message: Term,
    options: SendOptions,
  ): SendResult {
    const link = this.#connections.get(to.node)?.link;
    if (link === undefined) return 'no_connection';
    return link.send('name' in to ? to.name : to, message, options);
  }

  /** Replies to a call from another node: to its alias when it has one, otherwise to its pid. */
  reply(call: GenCall, reply: Term, from: Pid): SendResult {
    const message = tuple(call.tag, reply);
    const alias = aliasOf(call.tag);
    const to =
      alias !== undefined && this.#connections.get(alias.node)?.link.negotiated(FLAG.alias) === true
        ? alias
        : call.from;
    return this.send(to, message, { from });
  }

  // --- monitors, links, exits, spawning

  /**
   * Monitors a process under the given reference: a call uses one as monitor, alias and tag. `ProcessTable.down` is
   * called once, at the latest when the connection is lost.
   */
  monitorAs(ref: Ref, watcher: Pid, target: Watched): void {
    const connection = this.#connections.get(target.node);
    if (connection !== undefined) return connection.signals.monitor(watcher, wireTarget(target), ref);
    const monitor = { watcher, ref, target };
    queueMicrotask(() => this.#faults.guard('down', () => this.#table.down(monitor, atom('noconnection'))));
  }

  /** Ends a monitor. Returns false when there was none. */
  demonitor(ref: Ref): boolean {
    for (const { signals } of this.#connections.all()) if (signals.demonitor(ref)) return true;
    return false;
  }

  /** Links a local process with a remote one; without a connection its exit signal is `noconnection`. */
  link(local: Pid, remote: Pid): void {
    const connection = this.#connections.get(remote.node);
    if (connection !== undefined) return connection.signals.linkTo(local, remote);
    const broken = { to: local, from: remote, linked: true };
    queueMicrotask(() => this.#faults.guard('exit', () => this.#table.exit(broken, atom('noconnection'))));
  }

  unlink(local: Pid, remote: Pid): void {
    this.#connections.get(remote.node)?.signals.unlink(local, remote);
  }

  /** Sends an exit signal without a link, as exit/2 does. */
  exit(from: Pid, to: Pid, reason: Term): SendResult {
    const link = this.#connections.get(to.node)?.link;
    const exit = { linked: false, from, to };
    return link?.signal((writer, payload) => write.exit(writer, exit, { term: reason, payload })) ?? 'no_connection';
  }

  /** Must be called when a local process has ended: notifies the nodes that monitor it or are linked to it. */
  exited(pid: Pid, reason: Term): void {
    for (const { signals } of this.#connections.all()) signals.exited(pid, reason);
  }

  /**
   * Requests another node to start a process. `ProcessTable.spawned` receives the answer; if the process is monitored,
   * `down` receives its end with the same reference.
   * @throws DistributionError NOT_CONNECTED
   */
  spawn(node: string, request: SpawnRequest, args: readonly Term[]): void {
    const connection = this.#connections.get(node);
    if (connection === undefined) throw new DistributionError('NOT_CONNECTED', `there is no connection to ${node}`);
    connection.signals.spawn(request, args);
  }

  #control(connection: Connection, control: Control, payload: Term): void {
    if (control.op !== 'send') {
      connection.signals.control(control, payload);
      return;
    }
    const { to } = control;
    // The target belongs to an earlier lifetime of this node.
    if (typeof to !== 'string' && (to.creation !== this.creation || to.node !== this.name)) return;
    try {
      this.#table.deliver(control, payload, connection.link.remote.name);
    } catch (error) {
      this.#faults.report('deliver', error);
    }
  }

  // --- the end

  /** Announces the end to the members and closes everything. */
  stop(): Promise<void> {
    this.#stopping ??= this.#shutDown();
    return this.#stopping;
  }

  async #shutDown(): Promise<void> {
    this.#ticker.stop();
    this.#membership.stop();
    this.#reachable.registration?.close();
    this.#door.close();
    this.#pings.stop();
    const bye = this.#membership.bye();
    for (const { link } of this.#connections.all()) {
      link.send(MESH_NAME, bye, { from: this.#identifiers.system, kind: 'signal' });
      link.close('leave', 'we stopped');
    }
    await this.#door.closeServer();
  }
}

/** Listens and registers the name, unless the node only dials. */
async function openDoor(options: NodeOptions, alive: string): Promise<Reachable> {
  const { listen = {}, mapper, log, cookie, visible = false, world } = options;
  if (listen === false) return {};
  if (world?.network !== undefined) return await world.network.open(alive);

  const server = await bindServer(listen);
  warnOfOpenDoor(listen.address, typeof cookie === 'string' ? cookie : cookie(''), log);
  try {
    const registration = await Registration.open({
      mapper: { host: '127.0.0.1', port: mapper.port },
      name: alive,
      port: portOf(server),
      hidden: !visible,
      log,
      ...(mapper.revive === undefined ? {} : { revive: mapper.revive }),
    });

    return { server, registration };
  } catch (error) {
    server.close();
    throw error;
  }
}
