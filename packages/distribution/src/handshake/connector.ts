import type { Clock } from '../clock.js';
import { Attempt, type Dialled } from './dialer.js';
import { HandshakeFailed, type HandshakeFailure } from '../errors.js';
import type { Identity, Secrets, Status } from './handshake.js';
import { isLower, type NodeName } from './names.js';

export interface ConnectorOptions {
  readonly self: () => Identity;
  readonly secrets: Secrets;
  readonly mapperPort: number;
  readonly resolve: (host: string) => Promise<string>;
  readonly clock: Clock;
  readonly stepTimeoutMs: number;
  /** Whether that node is in the middle of a handshake it began. */
  readonly isShaking: (node: string) => boolean;
  readonly isConnected: (node: string) => boolean;
  /** Whether a node of that name may be let in at all. */
  readonly admits: (node: string) => boolean;
  readonly up: (dialled: Dialled) => void;
  readonly failed: (why: HandshakeFailure) => void;
}

interface Connecting {
  readonly promise: Promise<void>;
  readonly attempt: Attempt;
  readonly settle: (error?: Error) => void;
  /** The own attempt lost against one of the peer, which is awaited. */
  yielded: boolean;
  timer: unknown;
}

/**
 * Attempts to connect, one per node, and who wins when two nodes dial each other: the attempt of the greater name is
 * the one that is kept.
 */
export class Connector {
  private readonly connecting = new Map<string, Connecting>();

  constructor(private readonly options: ConnectorOptions) {}

  /** Resolves when there is a connection, whoever made it. Rejects with the reason of the attempt. */
  connect(target: NodeName): Promise<void> {
    return (this.connecting.get(target.full) ?? this.dial(target)).promise;
  }

  /** What becomes of a node that dials us; undefined closes without a word. */
  decide(peer: Identity): Status | undefined {
    const { admits, isConnected, isShaking, self } = this.options;
    const { name: node } = peer;
    if (!admits(node)) return 'not_allowed';
    // A second newcomer while a replacement is under way is not worth a word.
    if (isConnected(node)) return isShaking(node) ? undefined : 'alive';
    const connecting = this.connecting.get(node);
    if (connecting === undefined || connecting.yielded) return 'ok';
    // An attempt that still looks for the node, for as long as a name server or a lost packet likes, is not worth a refusal.
    if (connecting.attempt.isUnderWay && isLower(node, self().name)) return 'nok';
    this.awaitPeer(node, connecting);
    connecting.attempt.abort();
    return 'ok_simultaneous';
  }

  /** There is a connection now: ends the attempt, if any. What is returned tells those who wait. */
  take(node: string, dialled: boolean): () => void {
    const connecting = this.connecting.get(node);
    if (connecting === undefined) return () => {};
    this.connecting.delete(node);
    this.options.clock.clearTimeout(connecting.timer);
    if (!dialled) connecting.attempt.abort();
    return connecting.settle;
  }

  /** Gives the attempt up, if there is one. */
  abandon(node: string, error: Error): void {
    const connecting = this.connecting.get(node);
    if (connecting === undefined) return;
    connecting.attempt.abort();
    this.giveUp(node, connecting, error);
  }

  stop(error: Error): void {
    for (const node of this.connecting.keys()) this.abandon(node, error);
  }

  private dial(target: NodeName): Connecting {
    const attempt = new Attempt({ ...this.options, target, self: this.options.self() });
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

  private attemptUp(node: string, connecting: Connecting, dialled: Dialled): void {
    if (this.connecting.get(node) === connecting && !connecting.yielded) this.options.up(dialled);
    else dialled.socket.destroy();
  }

  private attemptFailed(node: string, connecting: Connecting, error: Error): void {
    if (this.connecting.get(node) !== connecting || connecting.yielded) return;
    const reason = error instanceof HandshakeFailed ? error.reason : undefined;
    const silent = reason === 'closed' && connecting.attempt.waitsForStatus && this.options.isShaking(node);
    if (reason === 'nok' || silent) this.awaitPeer(node, connecting);
    else this.giveUp(node, connecting, error);
  }

  /** The peer's own attempt to reach us goes on; ours is settled by it. */
  private awaitPeer(node: string, connecting: Connecting): void {
    const { clock, stepTimeoutMs } = this.options;
    connecting.yielded = true;
    clock.clearTimeout(connecting.timer);
    const late = new HandshakeFailed(node, 'timeout', 'its own attempt to reach us did not arrive');
    connecting.timer = clock.setTimeout(() => this.giveUp(node, connecting, late), stepTimeoutMs);
  }

  private giveUp(node: string, connecting: Connecting, error: Error): void {
    this.options.clock.clearTimeout(connecting.timer);
    this.connecting.delete(node);
    if (error instanceof HandshakeFailed) this.options.failed(error.reason);
    connecting.settle(error);
  }
}
