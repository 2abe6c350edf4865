import type { Term } from '@bloom/etf';
import type { Log } from '@bloom/log';
import { type Clock, type LogThrottle, Timer } from '@bloom/time';
import type { ClusterEvents } from './cluster-events.js';
import { HandshakeFailed } from '../errors.js';
import type { CloseReason } from '../link/link.js';
import type { Announcement, Spoken } from './announcement.js';
import type { NodeKind, NodeListener, NodeRefused } from './link-state.js';
import type { LinkPlan } from './known-node.js';
import { Mesh, type MeshAction, type NewConnection } from './mesh.js';
import { checkKind, type NameMode, parseNodeName } from '../handshake/names.js';

export interface MembershipOptions {
  readonly self: string;
  readonly mode: NameMode;
  readonly tool: boolean;
  readonly announceForeign: boolean;
  /** True when a name announced by a member may be dialled. */
  readonly acceptable: (node: string) => boolean;
  readonly connect: (node: string) => Promise<void>;
  readonly send: (node: string, message: Term) => void;
  readonly guard: (what: string, run: () => void) => void;
  readonly disconnect: (node: string) => void;
  /** What this node announces as a member. */
  readonly spoken?: Spoken | undefined;
  readonly events: ClusterEvents;
  readonly random: () => number;
  readonly clock: Clock;
  readonly throttle: LogThrottle;
  readonly log: Log;
}

/** Carries out the decisions of the mesh: dials, messages, events, log lines. */
export class Membership {
  readonly #options: MembershipOptions;
  readonly #mesh: Mesh;
  readonly #listeners = new Set<NodeListener>();
  readonly #timer: Timer;
  #timerDue: number | undefined;
  #stopped = false;

  constructor(options: MembershipOptions) {
    this.#options = options;
    const { spoken, clock } = options;
    this.#mesh = new Mesh({ ...options, spoken: spoken && { ...spoken, startedAt: clock.now() } });
    this.#timer = new Timer(options.clock);
  }

  members(): string[] {
    return this.#mesh.members();
  }

  kindOf(node: string): NodeKind | undefined {
    return this.#mesh.kindOf(node);
  }

  /** Returns what a connected member has announced; undefined for others. */
  announced(node: string): Announcement | undefined {
    return this.#mesh.announced(node);
  }

  subscribe(listener: NodeListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  seed(nodes: readonly string[]): void {
    this.#act(this.#mesh.seed(this.#usable(nodes), this.#now));
  }

  learn(nodes: readonly string[]): void {
    this.#act(this.#mesh.learn(this.#usable(nodes), this.#now));
  }

  /** Dials a wanted node now instead of later. */
  retry(node: string): void {
    this.#act(this.#mesh.retry(node, this.#now));
  }

  /** Returns the state of every known node and of `others`. */
  links(others: readonly string[]): LinkPlan[] {
    return this.#mesh.links(others, this.#now);
  }

  connected(node: string, connection: NewConnection): void {
    this.#act(this.#mesh.connected(node, connection, this.#now));
  }

  lost(node: string, reason: CloseReason): void {
    this.#act(this.#mesh.lost(node, reason, this.#now));
  }

  message(node: string, message: Term): void {
    this.#act(this.#mesh.message(node, message, this.#now));
  }

  /** Stops dialling. Lost connections are still reported. */
  stop(): void {
    this.#stopped = true;
    this.#timer.stop();
  }

  bye(): Term {
    return this.#mesh.bye();
  }

  get #now(): number {
    return this.#options.clock.now();
  }

  #usable(nodes: readonly string[]): string[] {
    return nodes.filter((node) => {
      if (node === this.#options.self) return false;
      try {
        checkKind(parseNodeName(node), this.#options.mode);
        return true;
      } catch (error) {
        this.#options.log.warn(`unable to connect to :"${node}"`, { reason: (error as Error).message });
        return false;
      }
    });
  }

  #act(actions: readonly MeshAction[]): void {
    for (const action of actions) this.#perform(action);
    if (this.#stopped) return;
    const due = this.#mesh.nextDue();
    if (due === this.#timerDue) return;
    this.#timerDue = due;
    if (due === undefined) this.#timer.stop();
    else this.#timer.start(Math.max(0, due - this.#now), this.#onTimer);
  }

  readonly #onTimer = (): void => {
    this.#timerDue = undefined;
    this.#act(this.#mesh.poll(this.#now));
  };

  #perform(action: MeshAction): void {
    switch (action.do) {
      case 'dial':
        if (!this.#stopped) this.#dial(action.node);
        return;
      case 'send':
        this.#options.send(action.node, action.message);
        return;
      case 'up':
        if (action.kind === 'member') {
          this.#options.log.info(`connected to :"${action.node}"`, { dialled: action.dialled });
          this.#options.events.up(action);
        }
        this.#publish(action.kind, (listener) => listener.nodeup?.(action));
        return;
      case 'refuse':
        this.#refuse(action);
        return;
      default: {
        const { node, kind } = action;
        const reason = action.reason as CloseReason;
        if (kind === 'member') {
          this.#options.log.info(`disconnected from :"${node}"`, { reason });
          this.#options.events.down({ node, reason });
        }
        this.#publish(kind, (listener) => listener.nodedown?.({ node, kind, reason }));
      }
    }
  }

  #refuse({ node, why, joins }: NodeRefused): void {
    const { throttle, log, disconnect } = this.#options;
    if (throttle.allows(`refused ${node}`)) log.error('cluster.member_refused', { node, reason: why });
    this.#publish('member', (listener) => listener.refused?.({ node, why, joins }));
    disconnect(node);
  }

  #dial(node: string): void {
    const { connect, throttle, log } = this.#options;
    connect(node).then(
      () => this.#act(this.#mesh.dialDone(node, this.#now)),
      (error: Error) => {
        if (throttle.allows(`dial ${node}`)) log.warn(`unable to connect to :"${node}"`, { reason: error.message });
        const failure = { fast: !isFinal(error), reason: error.message, calledItself: answeredBy(error) };
        this.#act(this.#mesh.failed(node, failure, this.#now));
      },
    );
  }

  #publish(kind: NodeKind, notify: (listener: NodeListener) => void): void {
    if (kind === 'tool' || (kind === 'foreign' && !this.#options.announceForeign)) return;
    for (const listener of this.#listeners) this.#options.guard('listener', () => notify(listener));
  }
}

const FINAL = new Set(['not_allowed', 'closed', 'bad_cookie', 'missing_flags', 'name_mismatch']);

/** Returns the name of the node that answered in place of the dialled one. */
function answeredBy(error: Error): string | undefined {
  return error instanceof HandshakeFailed ? error.answered : undefined;
}

/** True for failures that a quick retry would not fix. */
function isFinal(error: Error): boolean {
  return error instanceof HandshakeFailed && FINAL.has(error.reason);
}
