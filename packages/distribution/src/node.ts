import { randomBytes } from 'node:crypto';
import { lookup } from 'node:dns/promises';
import type { Socket } from 'node:net';
import { atom, Pid, Ref, type Term, tuple } from '@bloom/etf';
import type { Log } from '@bloom/log';
import { Registration } from '@bloom/port-mapper';
import { type Clock, OncePerMinute, systemClock } from './clock.js';
import { type Control, type SpawnRequest, type Target, write } from './control.js';
import { Attempt, type Dialled } from './dialer.js';
import { DistributionError, HandshakeFailed, type HandshakeFailure, NodeStopped, NotConnected } from './errors.js';
import { FLAG, hasOwnFlags, ownFlags } from './flags.js';
import { MAX_FRAME_BYTES } from './frames.js';
import { aliasOf, type GenCall } from './gen-call.js';
import type { Identity, Secrets, Status } from './handshake.js';
import { type CloseReason, Link, type LinkCounters, type LinkLimits, type SendKind, type SendResult } from './link.js';
import { type ListenAddress, Listener } from './listener.js';
import { Mesh, type MeshAction, MESH_NAME, type PeerKind } from './mesh.js';
import {
  checkKind,
  isLong,
  isLower,
  isNodeName,
  type NameMode,
  type NodeName,
  parseNodeName,
  parseOwnName,
} from './names.js';
import { noProcesses, type ProcessTable } from './processes.js';
import { Signals, type Watched } from './signals.js';
import { socketWire } from './socket-wire.js';
import { SystemTable } from './system-process.js';
import { Ticker } from './ticker.js';

export interface NodeOptions {
  /** Full name, `name@host`. */
  readonly name: string;
  readonly mode: NameMode;
  /** Shared secret of the cluster, or one per peer. */
  readonly cookie: string | ((peer: string) => string);
  readonly processes?: ProcessTable;
  /** Seen by Erlang's `nodes()`; default false (hidden). */
  readonly visible?: boolean;
  /** A tool such as bloomctl: connected to members, but none; default false. */
  readonly tool?: boolean;
  /** Where to listen; `false`: dial only, nothing is registered. Default any port of 127.0.0.1. */
  readonly listen?: ListenAddress | false;
  /** The port mapper of this and all other hosts; `revive` brings a lost one back. */
  readonly mapper: { readonly port: number; readonly revive?: () => Promise<void> };
  /** Silence after which a connection is dropped, equal on all nodes. Default 60 s. */
  readonly tickTimeMs?: number;
  /** Names that may be dialled because a member told them; default all of the right kind. */
  readonly allowNode?: (node: string) => boolean;
  /** Announce Erlang nodes, too. Default false. */
  readonly announceForeign?: boolean;
  readonly limits?: Partial<NodeLimits>;
  readonly resolve?: (host: string) => Promise<string>;
  readonly clock?: Clock;
  readonly random?: () => number;
  readonly log: Log;
}

export interface NodeLimits extends LinkLimits {
  /** For each step of a handshake. Default 7 s. */
  readonly stepTimeoutMs: number;
  /** Connections that have not proved to know the cookie. Default 64. */
  readonly maxPending: number;
  /** Default 100. */
  readonly maxAcceptsPerSecond: number;
  /** Monitors and links per connection. Default 1,000,000. */
  readonly maxSignals: number;
}

const LIMITS: NodeLimits = {
  maxFrameBytes: MAX_FRAME_BYTES,
  highWaterBytes: 8 * 1024 * 1024,
  overflow: 'drop',
  stepTimeoutMs: 7_000,
  maxPending: 64,
  maxAcceptsPerSecond: 100,
  maxSignals: 1_000_000,
};

export interface NodeUp {
  readonly node: string;
  readonly kind: PeerKind;
  readonly creation: number;
}

export interface NodeDown {
  readonly node: string;
  readonly kind: PeerKind;
  readonly reason: CloseReason;
}

/** Per peer they strictly alternate; `nodedown` comes after the last message over that connection. */
export interface NodeListener {
  nodeup?(event: NodeUp): void;
  nodedown?(event: NodeDown): void;
}

export type NodeKind = 'visible' | 'hidden' | 'connected' | 'members';

export interface NodeCounters {
  /** Handshakes that failed on our side, by reason. */
  readonly handshakes: Partial<Record<HandshakeFailure | 'rate', number>>;
  /** Connections that ended, by reason. */
  readonly closed: Partial<Record<CloseReason, number>>;
}

interface Connection {
  readonly link: Link;
  readonly signals: Signals;
}

interface Connecting {
  readonly promise: Promise<void>;
  readonly attempt: Attempt;
  readonly settle: (error?: Error) => void;
  /** The own attempt lost against one of the peer, which is awaited. */
  yielded: boolean;
  timer: unknown;
}

const PING_MS = 5_000;
const SYSTEM_PID = 1;

/** A node of the distribution: listens, dials, and carries messages between processes here and on other nodes. */
export class DistributionNode {
  readonly name: string;
  readonly host: string;
  readonly visible: boolean;
  readonly counters: { handshakes: NodeCounters['handshakes']; closed: NodeCounters['closed'] } = {
    handshakes: {},
    closed: {},
  };
  private readonly clock: Clock;
  private readonly random: () => number;
  private readonly limits: NodeLimits;
  private readonly flags: bigint;
  private readonly secrets: Secrets;
  private readonly limited: OncePerMinute;
  private readonly connections = new Map<string, Connection>();
  private readonly connecting = new Map<string, Connecting>();
  private readonly listeners = new Set<NodeListener>();
  private readonly pings = new Map<string, (reply: boolean) => void>();
  private readonly listener: Listener;
  private readonly ticker: Ticker;
  private readonly mesh: Mesh;
  private readonly table: SystemTable;
  private registration: Registration | undefined;
  private meshTimer: unknown;
  private stopping: Promise<void> | undefined;
  private ownCreation = 0;
  private lastPid = 100;
  private lastSerial = 0;
  private lastRef = 0;
  private readonly refSalt = randomBytes(4).readUInt32BE();

  private constructor(
    private readonly options: NodeOptions,
    own: NodeName,
  ) {
    this.name = own.full;
    this.host = own.host;
    this.visible = options.visible ?? false;
    this.clock = options.clock ?? systemClock;
    this.random = options.random ?? Math.random;
    this.limits = { ...LIMITS, ...options.limits };
    this.flags = ownFlags(this.visible);
    this.limited = new OncePerMinute(this.clock);
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
      decide: (peer) => this.decide(peer),
      up: (socket, peer, rest, acknowledge) => this.accepted(socket, peer, rest, acknowledge),
      failed: (why, address, peer) => this.handshakeFailed(why, peer ?? address),
    });
    this.ticker = new Ticker(this.clock, options.tickTimeMs ?? 60_000, (judge) => {
      for (const { link } of this.connections.values()) link.check(judge);
    });
    this.mesh = new Mesh({
      self: this.name,
      tool: options.tool ?? false,
      acceptable: (node) => this.acceptable(node),
      random: this.random,
    });
    this.table = new SystemTable(
      {
        self: this.name,
        pid: () => this.systemPid,
        visible: this.visible,
        reply: (call, reply) => void this.reply(call, reply, this.systemPid),
        sendName: (peer, name, message) => void this.send({ node: peer, name }, message, { from: this.systemPid }),
        mesh: (peer, message) => this.act(this.mesh.message(peer, message, this.clock.now())),
        answered: (ref, reply) => this.pings.get(ref.words.join('.'))?.(reply === atom('yes')),
      },
      options.processes ?? noProcesses,
    );
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
    this.ownCreation = 4 + Math.floor(this.random() * 0xffff_fff0);
    if (listen !== false) {
      await this.listener.listen(listen);
      this.registration = await Registration.open({
        mapper: { host: '127.0.0.1', port: mapper.port },
        name: own.alive,
        port: this.listener.port,
        hidden: !this.visible,
        random: this.random,
        log,
        ...(mapper.revive === undefined ? {} : { revive: mapper.revive }),
      });
      this.ownCreation = this.registration.creation;
    }
    this.ticker.start();
  }

  /** Tells one life of this node from the next; in every pid and reference. */
  get creation(): number {
    return this.ownCreation;
  }

  /** Port of the listener; 0 without one. */
  get port(): number {
    return this.listener.port;
  }

  /** Whether the port mapper knows us at this moment. */
  get registered(): boolean {
    return this.registration?.registered ?? false;
  }

  private get identity(): Identity {
    return { name: this.name, creation: this.ownCreation, flags: this.flags };
  }

  private get systemPid(): Pid {
    return new Pid(this.name, SYSTEM_PID, 0, this.ownCreation);
  }

  // --- identifiers

  /** A pid that no process of this node has had. */
  createPid(): Pid {
    this.lastPid += 1;
    if (this.lastPid > 0xffff_ffff) {
      this.lastPid = 1;
      this.lastSerial += 1;
    }
    return new Pid(this.name, this.lastPid, this.lastSerial, this.ownCreation);
  }

  /** A reference that is unique in the life of this node. */
  createRef(): Ref {
    this.lastRef += 1;
    const low = this.lastRef % 0x40000;
    return new Ref(this.name, this.ownCreation, [low, Math.floor(this.lastRef / 0x40000) >>> 0, this.refSalt]);
  }

  // --- who is there

  nodes(kind: NodeKind = 'members'): string[] {
    if (kind === 'members') return this.mesh.members();
    return [...this.connections]
      .filter(
        ([, { link }]) => kind === 'connected' || ((link.peer.flags & FLAG.published) !== 0n) === (kind === 'visible'),
      )
      .map(([node]) => node);
  }

  /** What a connected node is; undefined: not connected, or not known yet. */
  kindOf(node: string): PeerKind | undefined {
    return this.mesh.kindOf(node);
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
    return link === undefined ? undefined : { ...link.counters, pendingBytes: link.pendingBytes };
  }

  /** Returns the function that ends it. */
  subscribe(listener: NodeListener): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  // --- connecting

  /** Names of the configuration: dialled at once, and again for ever. Bad names are logged and left out. */
  seed(nodes: readonly string[]): void {
    this.act(this.mesh.seed(this.usable(nodes), this.clock.now()));
  }

  /** Names to try, such as those of DNS: dialled, retried for 10 minutes, then forgotten. */
  learn(nodes: readonly string[]): void {
    this.act(this.mesh.learn(this.usable(nodes), this.clock.now()));
  }

  private usable(nodes: readonly string[]): string[] {
    return nodes.filter((node) => {
      if (node === this.name) return false;
      try {
        checkKind(parseNodeName(node), this.options.mode);
        return true;
      } catch (error) {
        this.options.log.warn(`unable to connect to :"${node}"`, { reason: (error as Error).message });
        return false;
      }
    });
  }

  /**
   * Resolves when there is a connection to that node. Throws BadNodeName, NameKindMismatch, NodeUnreachable,
   * NodeNotRegistered, HandshakeFailed or NodeStopped.
   */
  async connect(node: string): Promise<void> {
    if (this.stopping !== undefined) throw new NodeStopped();
    const target = parseNodeName(node);
    checkKind(target, this.options.mode);
    if (node === this.name || this.connections.has(node)) return;
    await (this.connecting.get(node) ?? this.dial(target)).promise;
  }

  private dial(target: NodeName): Connecting {
    const { mapper, resolve = defaultResolve } = this.options;
    const attempt = new Attempt({
      target,
      self: this.identity,
      secrets: this.secrets,
      mapperPort: mapper.port,
      resolve,
      clock: this.clock,
      stepTimeoutMs: this.limits.stepTimeoutMs,
    });
    let settle: (error?: Error) => void = () => {};
    const promise = new Promise<void>((done, fail) => {
      settle = (error) => (error === undefined ? done() : fail(error));
    });
    // Whoever waits hears of it; nobody need.
    promise.catch(() => {});
    const connecting: Connecting = { promise, attempt, settle, yielded: false, timer: undefined };
    this.connecting.set(target.full, connecting);
    attempt.result.then(
      (dialled) => this.attemptUp(target.full, connecting, dialled),
      (error: Error) => this.attemptFailed(target.full, connecting, error),
    );
    return connecting;
  }

  private attemptUp(node: string, connecting: Connecting, { socket, peer, rest }: Dialled): void {
    if (this.stopping !== undefined || this.connecting.get(node) !== connecting || connecting.yielded) {
      socket.destroy();
      return;
    }
    this.adopt(socket, peer, rest, true);
  }

  private attemptFailed(node: string, connecting: Connecting, error: Error): void {
    if (this.connecting.get(node) !== connecting) return;
    const reason = error instanceof HandshakeFailed ? error.reason : undefined;
    const silent = reason === 'closed' && connecting.attempt.waitsForStatus && this.listener.isShaking(node);
    if (connecting.yielded || reason === 'nok' || silent) this.awaitPeer(node, connecting);
    else this.giveUp(node, connecting, error);
  }

  /** The peer's own attempt to reach us goes on; ours is settled by it. */
  private awaitPeer(node: string, connecting: Connecting): void {
    connecting.yielded = true;
    this.clock.clearTimeout(connecting.timer);
    connecting.timer = this.clock.setTimeout(
      () =>
        this.giveUp(
          node,
          connecting,
          new HandshakeFailed(node, 'timeout', 'its own attempt to reach us did not arrive'),
        ),
      this.limits.stepTimeoutMs,
    );
  }

  private giveUp(node: string, connecting: Connecting, error: Error): void {
    this.clock.clearTimeout(connecting.timer);
    this.connecting.delete(node);
    if (error instanceof HandshakeFailed) this.count(error.reason);
    connecting.settle(error);
  }

  private decide(peer: Identity): Status | undefined {
    if (this.stopping !== undefined || peer.name === this.name || !this.admissible(peer.name)) return 'not_allowed';
    const shaking = this.listener.isShaking(peer.name);
    // A second newcomer while a replacement is under way is not worth a word.
    if (this.connections.has(peer.name)) return shaking ? undefined : 'alive';
    const connecting = this.connecting.get(peer.name);
    if (connecting === undefined || connecting.yielded) return 'ok';
    if (isLower(peer.name, this.name)) return 'nok';
    this.awaitPeer(peer.name, connecting);
    connecting.attempt.abort();
    return 'ok_simultaneous';
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
    this.connections.get(peer.name)?.link.close('replaced', 'it connected again');
    acknowledge();
    this.adopt(socket, peer, rest, false);
  }

  private adopt(socket: Socket, peer: Identity, rest: Buffer, dialled: boolean): void {
    const { name: node } = peer;
    this.connections.get(node)?.link.close('replaced', 'it connected again');
    const link = new Link({
      peer,
      dialled,
      ownFlags: this.flags,
      wire: socketWire(socket),
      limits: this.limits,
      defer: (run) => setImmediate(run),
      events: {
        control: (_, control, payload) => this.control(connection, control, payload),
        closed: (_, reason, detail) => this.closed(connection, reason, detail),
      },
    });
    const signals = new Signals({
      link,
      table: this.table,
      self: { name: this.name, creation: this.ownCreation },
      maxEntries: this.limits.maxSignals,
      guard: (what, run) => this.guard(what, run),
    });
    const connection: Connection = { link, signals };
    this.connections.set(node, connection);
    socket.on('data', (bytes) => link.receive(bytes));
    socket.on('end', () => link.lost('it closed the connection'));
    socket.on('error', (error) => link.lost(error.message));
    socket.on('close', () => link.lost('the connection was closed'));

    const connecting = this.connecting.get(node);
    if (connecting !== undefined) {
      this.connecting.delete(node);
      this.clock.clearTimeout(connecting.timer);
      if (!dialled) connecting.attempt.abort();
    }
    this.act(this.mesh.connected(node, peer.creation, dialled, hasOwnFlags(peer.flags), this.clock.now()));
    connecting?.settle();
    if (rest.length > 0) link.receive(rest);
    socket.resume();
    if (socket.destroyed) link.lost('the connection was closed');
  }

  private closed(connection: Connection, reason: CloseReason, detail: string): void {
    const node = connection.link.peer.name;
    if (this.connections.get(node) === connection) this.connections.delete(node);
    this.counters.closed[reason] = (this.counters.closed[reason] ?? 0) + 1;
    if (
      reason !== 'leave' &&
      reason !== 'disconnect' &&
      reason !== 'connection_closed' &&
      this.limited.allows(`${reason} ${node}`)
    ) {
      this.options.log.warn('distribution.closed', { node, reason, detail });
    }
    connection.signals.lost();
    this.act(this.mesh.lost(node, reason, this.clock.now()));
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
    const connection = this.connections.get(node);
    connection?.link.close('disconnect', 'we disconnected');
    return connection !== undefined;
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
    return connected && (await this.askAlive(node));
  }

  private askAlive(node: string): Promise<boolean> {
    const ref = this.createRef();
    const key = ref.words.join('.');
    return new Promise((resolve) => {
      const settle = (reply: boolean): void => {
        this.clock.clearTimeout(timer);
        this.pings.delete(key);
        resolve(reply);
      };
      const timer = this.clock.setTimeout(() => settle(false), PING_MS);
      this.pings.set(key, settle);
      const from = this.systemPid;
      const call = tuple(atom('$gen_call'), tuple(from, ref), tuple(atom('is_auth'), atom(this.name)));
      if (this.send({ node, name: 'net_kernel' }, call, { from, kind: 'query' }) !== 'sent') settle(false);
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
      queueMicrotask(() => this.guard('down', () => this.table.down(watcher, ref, target, atom('noconnection'))));
    } else connection.signals.monitor(watcher, wireTarget(target), ref);
  }

  /** Whether there was such a monitor. */
  demonitor(ref: Ref): boolean {
    for (const { signals } of this.connections.values()) if (signals.demonitor(ref)) return true;
    return false;
  }

  /** Links a process here with one there; without connection its exit signal is `noconnection`. */
  link(local: Pid, remote: Pid): void {
    const connection = this.connections.get(remote.node);
    if (connection !== undefined) connection.signals.linkTo(local, remote);
    else queueMicrotask(() => this.guard('exit', () => this.table.exit(local, remote, atom('noconnection'), true)));
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
    for (const { signals } of this.connections.values()) signals.exited(pid, reason);
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
    if (typeof to !== 'string' && (to.creation !== this.ownCreation || to.node !== this.name)) return;
    try {
      this.table.deliver(to, payload, control.from, connection.link.peer.name);
    } catch (error) {
      this.fault('deliver', error);
    }
  }

  private guard(what: string, run: () => void): void {
    try {
      run();
    } catch (error) {
      this.fault(what, error);
    }
  }

  private fault(what: string, error: unknown): void {
    this.options.log.error('distribution.handler-failed', {
      what,
      reason: error instanceof Error ? error.message : String(error),
    });
  }

  // --- membership

  private act(actions: readonly MeshAction[]): void {
    for (const action of actions) this.carryOut(action);
    this.clock.clearTimeout(this.meshTimer);
    if (this.stopping !== undefined) return;
    const due = this.mesh.nextDue();
    if (due === undefined) return;
    this.meshTimer = this.clock.setTimeout(
      () => this.act(this.mesh.poll(this.clock.now())),
      Math.max(0, due - this.clock.now()),
    );
  }

  private carryOut(action: MeshAction): void {
    switch (action.do) {
      case 'dial':
        if (this.stopping === undefined) this.dialMember(action.node);
        return;
      case 'send':
        this.send({ node: action.node, name: MESH_NAME }, action.message, { from: this.systemPid, kind: 'signal' });
        return;
      case 'up':
        if (action.kind === 'member')
          this.options.log.info(`connected to :"${action.node}"`, { dialled: action.dialled });
        this.publish(action.kind, (listener) => listener.nodeup?.(action));
        return;
      default: {
        const { node, kind, reason } = action;
        if (kind === 'member') this.options.log.info(`disconnected from :"${node}"`, { reason });
        this.publish(kind, (listener) => listener.nodedown?.({ node, kind, reason: reason as CloseReason }));
      }
    }
  }

  private dialMember(node: string): void {
    this.connect(node).then(
      () => this.act(this.mesh.dialDone(node, this.clock.now())),
      (error: Error) => {
        if (this.limited.allows(`dial ${node}`)) {
          this.options.log.warn(`unable to connect to :"${node}"`, { reason: error.message });
        }
        this.act(this.mesh.failed(node, !isFinal(error), this.clock.now()));
      },
    );
  }

  private publish(kind: PeerKind, tell: (listener: NodeListener) => void): void {
    if (kind === 'tool' || (kind === 'foreign' && this.options.announceForeign !== true)) return;
    for (const listener of this.listeners) this.guard('listener', () => tell(listener));
  }

  // --- the end

  /** Says goodbye to the members and closes everything. */
  stop(): Promise<void> {
    this.stopping ??= this.shutDown();
    return this.stopping;
  }

  private async shutDown(): Promise<void> {
    this.ticker.stop();
    this.clock.clearTimeout(this.meshTimer);
    this.registration?.close();
    for (const [node, connecting] of this.connecting) {
      connecting.attempt.abort();
      this.giveUp(node, connecting, new NodeStopped());
    }
    for (const settle of this.pings.values()) settle(false);
    const bye = this.mesh.bye();
    for (const { link } of this.connections.values()) {
      link.send(MESH_NAME, bye, this.systemPid, 'signal');
      link.close('leave', 'we stopped');
    }
    await this.listener.close();
  }
}

function wireTarget(target: Watched): Target {
  return target instanceof Pid ? target : target.name;
}

/** Failures that a quick retry does not change. */
function isFinal(error: Error): boolean {
  return (
    error instanceof HandshakeFailed &&
    ['not_allowed', 'closed', 'bad_cookie', 'missing_flags', 'name_mismatch'].includes(error.reason)
  );
}

async function defaultResolve(host: string): Promise<string> {
  return (await lookup(host)).address;
}
