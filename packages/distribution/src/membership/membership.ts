import type { Term } from '@bloom/etf';
import type { Log } from '@bloom/log';
import type { Clock, OncePerMinute } from '../clock.js';
import type { ClusterEvents } from './cluster-events.js';
import { HandshakeFailed } from '../errors.js';
import type { CloseReason } from '../link/link.js';
import type { NodeKind } from './link-state.js';
import { type LinkPlan, Mesh, type MeshAction } from './mesh.js';
import { checkKind, type NameMode, parseNodeName } from '../handshake/names.js';
import type { NodeListener } from '../node-options.js';

export interface MembershipOptions {
  readonly self: string;
  readonly mode: NameMode;
  readonly tool: boolean;
  readonly announceForeign: boolean;
  /** Whether a name that a member told us may be dialled. */
  readonly acceptable: (node: string) => boolean;
  readonly connect: (node: string) => Promise<void>;
  readonly send: (node: string, message: Term) => void;
  readonly guard: (what: string, run: () => void) => void;
  readonly events: ClusterEvents;
  readonly random: () => number;
  readonly clock: Clock;
  readonly limited: OncePerMinute;
  readonly log: Log;
}

/** Carries out what the mesh decides: dials, messages, events, log lines. */
export class Membership {
  private readonly mesh: Mesh;
  private readonly listeners = new Set<NodeListener>();
  private timer: unknown;
  private timerDue: number | undefined;
  private stopped = false;

  constructor(private readonly options: MembershipOptions) {
    this.mesh = new Mesh(options);
  }

  members(): string[] {
    return this.mesh.members();
  }

  kindOf(node: string): NodeKind | undefined {
    return this.mesh.kindOf(node);
  }

  subscribe(listener: NodeListener): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  seed(nodes: readonly string[]): void {
    this.act(this.mesh.seed(this.usable(nodes), this.now));
  }

  learn(nodes: readonly string[]): void {
    this.act(this.mesh.learn(this.usable(nodes), this.now));
  }

  /** Dials a node that is wanted now instead of later. */
  retry(node: string): void {
    this.act(this.mesh.retry(node, this.now));
  }

  /** What is known of every node, and of those. */
  links(others: readonly string[]): LinkPlan[] {
    return this.mesh.links(others, this.now);
  }

  connected(node: string, creation: number, dialled: boolean, mayBeOurs: boolean): void {
    this.act(this.mesh.connected(node, creation, dialled, mayBeOurs, this.now));
  }

  lost(node: string, reason: CloseReason): void {
    this.act(this.mesh.lost(node, reason, this.now));
  }

  message(node: string, message: Term): void {
    this.act(this.mesh.message(node, message, this.now));
  }

  /** Nothing is dialled any more; what is lost is still told. */
  stop(): void {
    this.stopped = true;
    this.options.clock.clearTimeout(this.timer);
  }

  bye(): Term {
    return this.mesh.bye();
  }

  private get now(): number {
    return this.options.clock.now();
  }

  private usable(nodes: readonly string[]): string[] {
    return nodes.filter((node) => {
      if (node === this.options.self) return false;
      try {
        checkKind(parseNodeName(node), this.options.mode);
        return true;
      } catch (error) {
        this.options.log.warn(`unable to connect to :"${node}"`, { reason: (error as Error).message });
        return false;
      }
    });
  }

  private act(actions: readonly MeshAction[]): void {
    for (const action of actions) this.carryOut(action);
    const { clock } = this.options;
    if (this.stopped) return;
    const due = this.mesh.nextDue();
    if (due === this.timerDue) return;
    clock.clearTimeout(this.timer);
    this.timerDue = due;
    if (due === undefined) return;
    this.timer = clock.setTimeout(this.onTimer, Math.max(0, due - this.now));
  }

  private readonly onTimer = (): void => {
    this.timerDue = undefined;
    this.act(this.mesh.poll(this.now));
  };

  private carryOut(action: MeshAction): void {
    switch (action.do) {
      case 'dial':
        if (!this.stopped) this.dial(action.node);
        return;
      case 'send':
        this.options.send(action.node, action.message);
        return;
      case 'up':
        if (action.kind === 'member') {
          this.options.log.info(`connected to :"${action.node}"`, { dialled: action.dialled });
          this.options.events.up(action);
        }
        this.publish(action.kind, (listener) => listener.nodeup?.(action));
        return;
      default: {
        const { node, kind } = action;
        const reason = action.reason as CloseReason;
        if (kind === 'member') {
          this.options.log.info(`disconnected from :"${node}"`, { reason });
          this.options.events.down({ node, reason });
        }
        this.publish(kind, (listener) => listener.nodedown?.({ node, kind, reason }));
      }
    }
  }

  private dial(node: string): void {
    const { connect, limited, log } = this.options;
    connect(node).then(
      () => this.act(this.mesh.dialDone(node, this.now)),
      (error: Error) => {
        if (limited.allows(`dial ${node}`)) log.warn(`unable to connect to :"${node}"`, { reason: error.message });
        this.act(this.mesh.failed(node, !isFinal(error), this.now, error.message));
      },
    );
  }

  private publish(kind: NodeKind, tell: (listener: NodeListener) => void): void {
    if (kind === 'tool' || (kind === 'foreign' && !this.options.announceForeign)) return;
    for (const listener of this.listeners) this.options.guard('listener', () => tell(listener));
  }
}

const FINAL = new Set(['not_allowed', 'closed', 'bad_cookie', 'missing_flags', 'name_mismatch']);

/** Failures that a quick retry does not change. */
function isFinal(error: Error): boolean {
  return error instanceof HandshakeFailed && FINAL.has(error.reason);
}
