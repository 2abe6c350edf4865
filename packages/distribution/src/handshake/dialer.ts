import { lookup } from 'node:dns/promises';
import { connect, isIP, type NetConnectOpts, type Socket } from 'node:net';
import { lookUp } from '@bloom/port-mapper';
import { Timer, type Clock } from '@bloom/time';
import { DistributionError, HandshakeFailed } from '../errors.js';
import { type Identity, Initiator, type Secrets, type Step } from './handshake.js';
import type { NodeName } from './names.js';

/** How long an attempt gives precedence to a handshake that the other node has started. */
const GO_FIRST_MS = 500;
const TCP = { noDelay: true, keepAlive: true, keepAliveInitialDelay: 30_000 };

export interface DialOptions {
  readonly target: NodeName;
  readonly self: Identity;
  readonly secrets: Secrets;
  /** Port of the port mapper on the target's host. */
  readonly mapperPort: number;
  /** The Unix socket of the target, instead of its host and port. */
  readonly via?: string | undefined;
  /** Returns the addresses of a host name in the order in which to try them. */
  readonly resolve: (host: string) => Promise<readonly string[]>;
  readonly clock: Clock;
  /** Time limit for each step of the handshake. */
  readonly stepTimeoutMs: number;
  /** True while the other node is in a handshake with us, which takes precedence. */
  readonly mustWait: () => boolean;
}

export interface Dialled {
  readonly socket: Socket;
  readonly remote: Identity;
  readonly rest: Buffer;
}

/** One attempt to connect: host, port mapper, TCP, handshake. */
export class Attempt {
  /** Rejects with DistributionError NODE_UNREACHABLE or NODE_NOT_REGISTERED, or with HandshakeFailed. */
  readonly result: Promise<Dialled>;
  readonly #options: DialOptions;
  readonly #machine: Initiator;
  readonly #timer: Timer;
  #socket: Socket | undefined;
  #aborted = false;
  #begun = false;
  #fail: (error: Error) => void = () => {};

  constructor(options: DialOptions) {
    this.#options = options;
    this.#machine = new Initiator(options.self, options.target.full, options.secrets);
    this.#timer = new Timer(options.clock);
    this.result = this.#run();
  }

  /** True while the other side has sent no status. If it closes now, it may prefer its own attempt to reach us. */
  get waitsForStatus(): boolean {
    return this.#machine.waitsForStatus;
  }

  /** True once the other side may know of the attempt, because our name has been sent. */
  get isUnderWay(): boolean {
    return this.#begun;
  }

  abort(): void {
    this.#aborted = true;
    this.#socket?.destroy();
    this.#fail(new HandshakeFailed(this.#options.target.full, 'aborted'));
  }

  async #run(): Promise<Dialled> {
    const { target, resolve, via } = this.#options;
    if (via !== undefined) return await this.#shakeHands({ path: via });
    const noAddress = (error?: unknown): DistributionError =>
      unreachable(target, `the host ${target.host} has no address`, error);
    const addresses = await resolve(target.host).catch((error: unknown) => {
      throw noAddress(error);
    });
    let failure: unknown;
    for (const address of addresses) {
      try {
        return await this.#dial(address);
      } catch (error) {
        failure ??= error;
        // Once the node knows of the attempt, it has been found: another address would not change its answer.
        if (this.#begun || this.#aborted) throw error;
      }
    }
    throw failure ?? noAddress();
  }

  async #dial(address: string): Promise<Dialled> {
    const { target, mapperPort } = this.#options;
    const entry = await lookUp({ host: address, port: mapperPort }, target.alive).catch((error: unknown) => {
      throw unreachable(target, (error as Error).message, error);
    });
    if (entry === undefined) {
      const message = `the port mapper of its host knows no node ${target.full}`;
      throw new DistributionError('NODE_NOT_REGISTERED', message);
    }
    if (this.#aborted) throw new HandshakeFailed(target.full, 'aborted');
    return await this.#shakeHands({ host: address, port: entry.port, ...TCP });
  }

  #shakeHands(where: NetConnectOpts): Promise<Dialled> {
    const { target, stepTimeoutMs, mustWait } = this.#options;
    const timer = this.#timer;
    return new Promise((resolve, reject) => {
      const socket = connect(where);
      this.#socket = socket;

      const leave = (): void => {
        timer.stop();
        socket.off('data', data).off('close', closed);
      };
      const fail = (error: Error): void => {
        leave();
        socket.destroy();
        reject(error);
      };
      const expect = (): void => {
        timer.start(stepTimeoutMs, () => fail(new HandshakeFailed(target.full, 'timeout')));
      };
      const carryOut = (step: Step): void => {
        if (step.send.length > 0) {
          socket.write(Buffer.concat(step.send));
          expect();
        }
        if (step.failed !== undefined) fail(new HandshakeFailed(target.full, step.failed));
        else if (step.up !== undefined) {
          leave();
          // Data that arrives before the link listens must wait.
          socket.pause();
          resolve({ socket, ...step.up });
        }
      };
      const data = (bytes: Buffer): void => carryOut(this.#machine.data(bytes));
      const closed = (): void => fail(new HandshakeFailed(target.full, 'closed'));
      const begin = (): void => {
        this.#begun = true;
        carryOut(this.#machine.start());
      };

      this.#fail = fail;
      expect();
      socket.on('connect', () => {
        // Two simultaneous handshakes could each end the other.
        if (mustWait()) timer.start(GO_FIRST_MS, begin);
        else begin();
      });
      socket.on('data', data).on('close', closed);
      socket.on('error', (error) => fail(unreachable(target, error.message, error)));
    });
  }
}

function unreachable({ full }: NodeName, why: string, cause: unknown): DistributionError {
  return new DistributionError('NODE_UNREACHABLE', `${full} cannot be reached: ${why}`, { cause });
}

/**
 * Returns the first IPv4 and the first IPv6 address to which the system resolves a host name. Names such as `localhost`
 * have both, while a node listens on only one of them, usually IPv4 as Erlang does.
 */
export async function resolveHost(host: string): Promise<string[]> {
  if (isIP(host) !== 0) return [host];
  const found = await lookup(host, { all: true, order: 'ipv4first' });

  return [4, 6].flatMap((version) => found.find(({ family }) => family === version)?.address ?? []);
}
