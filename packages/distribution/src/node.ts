import { randomBytes } from 'node:crypto';
import type { Socket } from 'node:net';
import { atom, type Pid, type Ref, type Term, tuple } from '@bloom/etf';
import { Registration } from '@bloom/port-mapper';
import { type Clock, OncePerMinute, systemClock, TurnFlush } from './clock.js';
import { ClusterEvents } from './membership/cluster-events.js';
import { type Connection, Connections } from './link/connections.js';
import { Connector } from './handshake/connector.js';
import { type Control, type SpawnRequest, write } from './link/control.js';
import { Cuts } from './membership/cuts.js';
import { resolveHost } from './handshake/dialer.js';
import { DistributionError, type HandshakeFailure, LinkCut, NodeStopped, NotConnected } from './errors.js';
import { Faults } from './faults.js';
import { FLAG, hasOwnFlags, ownFlags } from './handshake/flags.js';
import { aliasOf, type GenCall } from './link/gen-call.js';
import type { Identity, Secrets } from './handshake/handshake.js';
import { Identifiers } from './identifiers.js';
import type { CloseReason, LinkCounters, SendKind, SendResult } from './link/link.js';
import type { LinkState, NodeKind } from './membership/link-state.js';
import { Listener, warnOfOpenDoor } from './handshake/listener.js';
import { Membership } from './membership/membership.js';
import { MESH_NAME } from './membership/mesh.js';
import { checkKind, isLong, isNodeName, type NodeName, parseNodeName, parseOwnName } from './handshake/names.js';
import {
  DEFAULT_LIMITS,
  type NodeCounters,
  type NodeFilter,
  type NodeLimits,
  type NodeListener,
  type NodeOptions,
} from './node-options.js';
import { noProcesses } from './processes.js';
import { Pings } from './membership/pings.js';
import { type Watched, wireTarget } from './link/signals.js';
import { SystemTable } from './system-process.js';
import { Ticker } from './link/ticker.js';

/** A node of the distribution: listens, dials, and carries messages between processes here and on other nodes. */
export class DistributionNode {
  readonly name: string;
  readonly host: string;
  readonly visible: boolean;
  readonly counters: { handshakes: NodeCounters['handshakes']; closed: NodeCounters['closed'] } = {
    handshakes: {},
    closed: {},
  };
  /** What happened to the members, as this node saw it. */
  readonly events: ClusterEvents;
  private readonly clock: Clock;
  private readonly random: () => number;
  private readonly limits: NodeLimits;
  private readonly flags: bigint;
  private readonly secrets: Secrets;
  private readonly limited: OncePerMinute;
  private readonly flush = new TurnFlush();
  private readonly faults: Faults;
  private readonly connections: Connections;
  private readonly cuts: Cuts;
  private readonly pings: Pings;
  private readonly listener: Listener;
  private readonly connector: Connector;
  private readonly ticker: Ticker;
  private readonly membership: Membership;
  private readonly table: SystemTable;
  private registration: Registration | undefined;
  private stopping: Promise<void> | undefined;
  private identifiers: Identifiers;

  private constructor(
    private readonly options: NodeOptions,
    own: NodeName,
  ) {
    this.name = own.full;
    this.host = own.host;
    this.visible = options.visible ?? false;
    this.clock = options.clock ?? systemClock;
    this.random = options.random ?? Math.random;
    this.limits = { ...DEFAULT_LIMITS, ...options.limits };
    this.flags = ownFlags(this.visible);
    // A node that registers nowhere takes a creation at random.
    this.identifiers = new Identifiers(this.name, 4 + Math.floor(this.random() * 0xffff_fff0));
    this.limited = new OncePerMinute(this.clock);
    this.faults = new Faults(options.log);
    this.pings = new Pings(this.clock);
    this.events = new ClusterEvents(options.calendar ?? (() => Date.now()));
    this.cuts = new Cuts(this.clock, (node) => this.membership.retry(node));
    const { cookie } = options;
    this.secrets = {
      cookie: typeof cookie === 'string' ? () => cookie : cookie,
      challenge: () => randomBytes(4).readUInt32BE(),
    };
    this.listener = new Listener({
      ...this.limits,
      clock: this.clock,
      secrets: this.secrets,
      self: () => this.identity,
      decide: (peer) => this.connector.decide(peer),
      up: (socket, peer, rest, acknowledge) => this.accepted(socket, peer, rest, acknowledge),
      failed: (why, address, peer) => this.handshakeFailed(why, peer ?? address),
    });
    this.connector = new Connector({
      self: () => this.identity,
      secrets: this.secrets,
      mapperPort: options.mapper.port,
      resolve: options.resolve ?? resolveHost,
      clock: this.clock,
      stepTimeoutMs: this.limits.stepTimeoutMs,
      isShaking: (node) => this.listener.isShaking(node),
      isConnected: (node) => this.connections.has(node),
      admits: (peer) =>
        this.stopping === undefined && peer !== this.name && !this.cuts.has(peer) && this.admissible(peer),
      up: ({ socket, peer, rest }) => this.connections.adopt(socket, peer, rest, true),
      failed: (why) => this.count(why),
    });
    this.ticker = new Ticker(this.clock, options.tickTimeMs ?? 60_000, (judge) => {
      for (const { link } of this.connections.all()) link.check(judge);
    });
    this.membership = new Membership({
      self: this.name,
      mode: options.mode,
      tool: options.tool ?? false,
      announceForeign: options.announceForeign ?? false,
      acceptable: (node) => this.acceptable(node),
      connect: (node) => this.connect(node),
      send: (node, message) =>
        void this.send({ node, name: MESH_NAME }, message, { from: this.identifiers.system, kind: 'signal' }),
      guard: this.faults.guard,
      events: this.events,
      random: this.random,
      clock: this.clock,
      limited: this.limited,
      log: options.log,
    });
    this.table = new SystemTable(
      {
        self: this.name,
        pid: () => this.identifiers.system,
        visible: this.visible,
        reply: (call, reply) => void this.reply(call, reply, this.identifiers.system),
        sendName: (peer, name, message) =>
          void this.send({ node: peer, name }, message, { from: this.identifiers.system }),
        mesh: (peer, message) => this.membership.message(peer, message),
        answered: (ref, reply) => this.pings.answered(ref, reply),
      },
      options.processes ?? noProcesses,
    );
    this.connections = new Connections({
      self: () => this.identity,
      limits: this.limits,
      clock: this.clock,
      defer: this.flush.defer,
      table: this.table,
      guard: this.faults.guard,
      control: (connection, control, payload) => this.control(connection, control, payload),
      up: (peer, dialled) => {
        const settle = this.connector.take(peer.name, dialled);
        this.membership.connected(peer.name, peer.creation, dialled, hasOwnFlags(peer.flags));
        settle();
      },
      closed: (node, reason, detail) => this.closed(node, reason, detail),
    });
  }

  /**
   * Starts listening and registers the name. Throws BadNodeName, NameKindMismatch, CannotListen, or an error of the
   * port mapper: NameInUse, PortMapperUnreachable.
   */
  static async start(options: NodeOptions): Promise<DistributionNode> {
    const own = parseOwnName(options.name);
    checkKind(own, options.mode);
    const node = new DistributionNode(options, own);
    try {
      await node.open(own);
    } catch (error) {
      await node.stop();
      throw error;
    }
    return node;
  }

  private async open(own: NodeName): Promise<void> {
    const { listen = {}, mapper, log } = this.options;
    if (listen !== false) {
      await this.listener.listen(listen);
      warnOfOpenDoor(listen.address, this.secrets.cookie(''), log);
      this.registration = await Registration.open({
        mapper: { host: '127.0.0.1', port: mapper.port },
        name: own.alive,
        port: this.listener.port,
        hidden: !this.visible,
        random: this.random,
        log,
        ...(mapper.revive === undefined ? {} : { revive: mapper.revive }),
      });
      this.identifiers = new Identifiers(this.name, this.registration.creation);
    }
    this.ticker.start();
  }

  /** Tells one life of this node from the next; in every pid and reference. */
  get creation(): number {
    return this.identifiers.creation;
  }

  /** Port of the listener; 0 without one. */
  get port(): number {
    return this.listener.port;
  }

  /** Whether the port mapper knows us at this moment. */
  get registered(): boolean {
    return this.registration?.registered === true;
  }

  private get identity(): Identity {
    return { name: this.name, creation: this.creation, flags: this.flags };
  }

  /** A pid that no process of this node has had. */
  createPid(): Pid {
    return this.identifiers.pid();
  }

  /** A reference that is unique in the life of this node. */
  createRef(): Ref {
    return this.identifiers.ref();
  }

  // --- who is there

  nodes(kind: NodeFilter = 'members'): string[] {
    if (kind === 'members') return this.membership.members();
    return Array.from(this.connections.all(), ({ link }) => link.peer)
      .filter(({ flags }) => kind === 'connected' || ((flags & FLAG.published) !== 0n) === (kind === 'visible'))
      .map(({ name }) => name);
  }

  /** What a connected node is; undefined: not connected, or not known yet. */
  kindOf(node: string): NodeKind | undefined {
    return this.membership.kindOf(node);
  }

  isConnected(node: string): boolean {
    return this.connections.has(node);
  }

  /** Capabilities both sides have. */
  supportsAlias(node: string): boolean {
    return this.connections.get(node)?.link.negotiated(FLAG.alias) ?? false;
  }

  linkCounters(node: string): (Readonly<LinkCounters> & { readonly pendingBytes: number }) | undefined {
    const link = this.connections.get(node)?.link;
    return link && { ...link.counters, pendingBytes: link.pendingBytes };
  }

  /** Returns the function that ends it. */
  subscribe(listener: NodeListener): () => void {
    return this.membership.subscribe(listener);
  }

  // --- connecting

  /** Names of the configuration: dialled at once, and again for ever. Bad names are logged and left out. */
  seed(nodes: readonly string[]): void {
    this.membership.seed(nodes);
  }

  /** Names to try, such as those of DNS: dialled, retried for 10 minutes, then forgotten. */
  learn(nodes: readonly string[]): void {
    this.membership.learn(nodes);
  }

  /**
   * Resolves when there is a connection to that node. Throws BadNodeName, NameKindMismatch, NodeUnreachable,
   * NodeNotRegistered, HandshakeFailed, LinkCut or NodeStopped.
   */
  async connect(node: string): Promise<void> {
    if (this.stopping !== undefined) throw new NodeStopped();
    const target = parseNodeName(node);
    checkKind(target, this.options.mode);
    if (node === this.name || this.connections.has(node)) return;
    if (this.cuts.has(node)) throw new LinkCut(node);
    await this.connector.connect(target);
  }

  /** Whether a name that dials us may be let in. C nodes call themselves by any host name, so its kind does not count. */
  private admissible(node: string): boolean {
    return isNodeName(node) && (this.options.allowNode?.(node) ?? true);
  }

  /** Whether a name that a member told us may be dialled. */
  private acceptable(node: string): boolean {
    return this.admissible(node) && isLong(parseNodeName(node).host) === (this.options.mode === 'name');
  }

  private accepted(socket: Socket, peer: Identity, rest: Buffer, acknowledge: () => void): void {
    // Only now has the newcomer proved to be who it says; before, anybody could have cut the old connection.
    this.connections.close(peer.name, 'replaced', 'it connected again');
    // The order to keep it away came during the handshake.
    if (this.cuts.has(peer.name)) {
      socket.destroy();
      return;
    }
    acknowledge();
    this.connections.adopt(socket, peer, rest, false);
  }

  private closed(node: string, reason: CloseReason, detail: string): void {
    this.counters.closed[reason] = (this.counters.closed[reason] ?? 0) + 1;
    if (
      reason !== 'leave' &&
      reason !== 'disconnect' &&
      reason !== 'connection_closed' &&
      this.limited.allows(`${reason} ${node}`)
    ) {
      this.options.log.warn('distribution.closed', { node, reason, detail });
    }
    this.membership.lost(node, reason);
  }

  private handshakeFailed(why: HandshakeFailure | 'rate', peer: string): void {
    // These are part of a normal day: the other attempt of the two nodes is going on.
    this.count(why);
    if (why === 'nok' || why === 'aborted' || !this.limited.allows(`${why} ${peer}`)) return;
    this.options.log.warn('distribution.refused', { peer, reason: why });
  }

  private count(why: HandshakeFailure | 'rate'): void {
    this.counters.handshakes[why] = (this.counters.handshakes[why] ?? 0) + 1;
  }

  /** Ends the connection; false when there was none. */
  disconnect(node: string): boolean {
    return this.connections.close(node, 'disconnect', 'we disconnected');
  }

  /**
   * Ends the connection to that node and lets none arise, whoever dials, for that long (at most an hour): a split of the
   * network on purpose. Undone by itself; a member is dialled then.
   */
  cut(node: string, ms: number): void {
    this.cuts.begin(node, ms);
    this.connector.abandon(node, new LinkCut(node));
    this.connections.close(node, 'cut', 'it was cut by an operator');
    this.events.add('cut', node, `for ${(ms / 1_000).toFixed(1)} s`);
  }

  /** Ends a cut early; false when there was none. */
  uncut(node: string): boolean {
    return this.cuts.end(node);
  }

  /** Every node that is connected, wanted or cut. */
  links(): LinkState[] {
    return this.membership.links(this.cuts.nodes).map((plan) => ({
      ...plan,
      cutForMs: this.cuts.remainingMs(plan.node),
      traffic: this.linkCounters(plan.node) ?? null,
    }));
  }

  /** Whether that node can be connected and answers, within 5 s. */
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
    const from = this.identifiers.system;
    return await this.pings.ask(this.createRef(), (ref) => {
      const call = tuple(atom('$gen_call'), tuple(from, ref), tuple(atom('is_auth'), atom(this.name)));
      return this.send({ node, name: 'net_kernel' }, call, { from, kind: 'query' }) === 'sent';
    });
  }

  // --- messages

  /**
   * To a process, a registered name or an alias of a connected node. `no_connection`: call `connect` first. Throws
   * NotEncodable or FrameTooBig.
   */
  send(
    to: Pid | Ref | { readonly node: string; readonly name: string },
    message: Term,
    options: { readonly from: Pid; readonly kind?: SendKind },
  ): SendResult {
    const link = this.connections.get(to.node)?.link;
    if (link === undefined) return 'no_connection';
    return link.send('name' in to ? to.name : to, message, options.from, options.kind ?? 'one-way');
  }

  /** The reply to a call that came from another node: to its alias when it has one, else to its pid. */
  reply(call: GenCall, reply: Term, from: Pid): SendResult {
    const message = tuple(call.tag, reply);
    const alias = aliasOf(call.tag);
    const to = alias !== undefined && this.supportsAlias(alias.node) ? alias : call.from;
    return this.send(to, message, { from });
  }

  // --- monitors, links, exits, spawning

  /** `watcher` will hear once, by `ProcessTable.down`: at the latest when the connection goes. */
  monitor(watcher: Pid, target: Watched): Ref {
    const ref = this.createRef();
    this.monitorAs(ref, watcher, target);
    return ref;
  }

  /** As `monitor`, with a reference made before: a call uses one as monitor, alias and tag. */
  monitorAs(ref: Ref, watcher: Pid, target: Watched): void {
    const connection = this.connections.get(target.node);
    if (connection === undefined) {
      queueMicrotask(() =>
        this.faults.guard('down', () => this.table.down(watcher, ref, target, atom('noconnection'))),
      );
    } else connection.signals.monitor(watcher, wireTarget(target), ref);
  }

  /** Whether there was such a monitor. */
  demonitor(ref: Ref): boolean {
    for (const { signals } of this.connections.all()) if (signals.demonitor(ref)) return true;
    return false;
  }

  /** Links a process here with one there; without connection its exit signal is `noconnection`. */
  link(local: Pid, remote: Pid): void {
    const connection = this.connections.get(remote.node);
    if (connection !== undefined) connection.signals.linkTo(local, remote);
    else
      queueMicrotask(() => this.faults.guard('exit', () => this.table.exit(local, remote, atom('noconnection'), true)));
  }

  unlink(local: Pid, remote: Pid): void {
    this.connections.get(remote.node)?.signals.unlink(local, remote);
  }

  /** exit/2: an exit signal that needs no link. */
  exit(from: Pid, to: Pid, reason: Term): SendResult {
    const link = this.connections.get(to.node)?.link;
    return link?.signal((writer, payload) => write.exit(writer, false, payload, from, to, reason)) ?? 'no_connection';
  }

  /** To be called when a process of this node has ended: other nodes with monitors on it or links to it are told. */
  exited(pid: Pid, reason: Term): void {
    for (const { signals } of this.connections.all()) signals.exited(pid, reason);
  }

  /**
   * Asks another node for a process; the answer comes by `ProcessTable.spawned`, its end (`monitor`) by `down` with
   * the same reference. Throws NotConnected.
   */
  spawn(node: string, request: SpawnRequest, args: readonly Term[]): void {
    const connection = this.connections.get(node);
    if (connection === undefined) throw new NotConnected(node);
    connection.signals.spawn(request, args);
  }

  private control(connection: Connection, control: Control, payload: Term): void {
    if (control.op !== 'send') {
      connection.signals.control(control, payload);
      return;
    }
    const { to } = control;
    // An older life of this node is not us.
    if (typeof to !== 'string' && (to.creation !== this.creation || to.node !== this.name)) return;
    try {
      this.table.deliver(to, payload, control.from, connection.link.peer.name);
    } catch (error) {
      this.faults.report('deliver', error);
    }
  }

  // --- the end

  /** Says goodbye to the members and closes everything. */
  stop(): Promise<void> {
    this.stopping ??= this.shutDown();
    return this.stopping;
  }

  private async shutDown(): Promise<void> {
    this.ticker.stop();
    this.cuts.stop();
    this.membership.stop();
    this.registration?.close();
    this.connector.stop(new NodeStopped());
    this.pings.stop();
    const bye = this.membership.bye();
    for (const { link } of this.connections.all()) {
      link.send(MESH_NAME, bye, this.identifiers.system, 'signal');
      link.close('leave', 'we stopped');
    }
    await this.listener.close();
  }
}
