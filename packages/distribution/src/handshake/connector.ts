import { Timer } from '@bloom/time';
import { HandshakeFailed, type HandshakeFailure } from '../errors.js';
import { Attempt, type Authenticated, type DialOptions } from './dialer.js';
import type { Identity, Status } from './handshake.js';
import { isLower, type NodeName } from './names.js';

export interface ConnectorOptions extends Omit<DialOptions, 'target' | 'mustWait'> {
  /** True while the node is in the middle of a handshake that it started; with `address`, one from there. */
  readonly isShaking: (node: string, address?: string) => boolean;
  readonly isConnected: (node: string) => boolean;
  /** False for a node that must not connect at all. */
  readonly admits: (node: string) => boolean;
  readonly up: (dialled: Authenticated) => void;
  readonly failed: (why: HandshakeFailure) => void;
}

interface Connecting {
  readonly promise: Promise<void>;
  readonly attempt: Attempt;
  readonly settle: (error?: Error) => void;
  readonly timer: Timer;
  /** True when our attempt lost to one of the other node, which we are waiting for. */
  yielded: boolean;
}

/**
 * Attempts to connect, one per node. When two nodes dial each other, the attempt of the node with the greater name
 * wins.
 *
 * A name that dials us proves nothing, so it never ends our own attempt; only a complete handshake does.
 */
export class Connector {
  readonly #options: ConnectorOptions;
  readonly #connecting = new Map<string, Connecting>();

  constructor(options: ConnectorOptions) {
    this.#options = options;
  }

  /** Resolves when the node is connected, whichever side dialled. Rejects with the reason why the attempt failed. */
  connect(target: NodeName): Promise<void> {
    return (this.#connecting.get(target.full) ?? this.#dial(target)).promise;
  }

  /** Returns the status for a node that dials us; undefined closes without a status. */
  decide({ name: node }: Identity, address: string): Status | undefined {
    const { admits, isConnected, isShaking, self } = this.#options;
    if (!admits(node)) return 'not_allowed';
    // Only from the same address: a stranger who uses the name must not keep the node itself from returning.
    if (isConnected(node)) return isShaking(node, address) ? undefined : 'alive';
    const connecting = this.#connecting.get(node);
    if (connecting === undefined || connecting.yielded) return 'ok';
    // While our attempt is still looking for the node it may take long, so let the other one try.
    if (connecting.attempt.isUnderWay && isLower(node, self.name)) return 'nok';
    return 'ok_simultaneous';
  }

  /** Ends the attempt because the node is connected. Returns a function that settles it for its callers. */
  take(node: string, dialled: boolean): () => void {
    const connecting = this.#connecting.get(node);
    if (connecting === undefined) return () => {};
    this.#connecting.delete(node);
    connecting.timer.stop();
    if (!dialled) connecting.attempt.abort();
    return connecting.settle;
  }

  /** Ends the attempt, if there is one, with the error. */
  abandon(node: string, error: Error): void {
    const connecting = this.#connecting.get(node);
    if (connecting === undefined) return;
    connecting.attempt.abort();
    this.#giveUp(node, connecting, error);
  }

  stop(error: Error): void {
    for (const node of this.#connecting.keys()) this.abandon(node, error);
  }

  #dial(target: NodeName): Connecting {
    const { isShaking, clock } = this.#options;
    const attempt = new Attempt({ ...this.#options, target, mustWait: () => isShaking(target.full) });
    let settle: (error?: Error) => void = () => {};
    const promise = new Promise<void>((done, fail) => {
      settle = (error) => (error === undefined ? done() : fail(error));
    });
    // Callers await it, but an attempt without callers must not become an unhandled rejection.
    promise.catch(() => {});
    const connecting: Connecting = { promise, attempt, settle, timer: new Timer(clock), yielded: false };
    this.#connecting.set(target.full, connecting);
    attempt.result.then(
      (dialled) => this.#attemptUp(target.full, connecting, dialled),
      (error: Error) => this.#attemptFailed(target.full, connecting, error),
    );
    return connecting;
  }

  #attemptUp(node: string, connecting: Connecting, dialled: Authenticated): void {
    if (this.#connecting.get(node) === connecting && !connecting.yielded) this.#options.up(dialled);
    else dialled.socket.destroy();
  }

  #attemptFailed(node: string, connecting: Connecting, error: Error): void {
    if (this.#connecting.get(node) !== connecting || connecting.yielded) return;
    const reason = error instanceof HandshakeFailed ? error.reason : undefined;
    const silent = reason === 'closed' && connecting.attempt.waitsForStatus && this.#options.isShaking(node);
    if (reason === 'nok' || silent) this.#awaitOther(node, connecting);
    else this.#giveUp(node, connecting, error);
  }

  /** Leaves our attempt to the other node's own attempt to reach us, which will settle it. */
  #awaitOther(node: string, connecting: Connecting): void {
    connecting.yielded = true;
    const late = new HandshakeFailed(node, 'timeout', { detail: 'its own attempt to reach us did not arrive' });
    connecting.timer.start(this.#options.stepTimeoutMs, () => this.#giveUp(node, connecting, late));
  }

  #giveUp(node: string, connecting: Connecting, error: Error): void {
    connecting.timer.stop();
    this.#connecting.delete(node);
    if (error instanceof HandshakeFailed) this.#options.failed(error.reason);
    connecting.settle(error);
  }
}
