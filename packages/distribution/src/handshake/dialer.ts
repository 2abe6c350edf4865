import { connect, type Socket } from 'node:net';
import { connectTcp, inRacingOrder, race, systemResolver } from '@bloom/discovery';
import { lookUp } from '@bloom/port-mapper';
import { Timer, type Clock } from '@bloom/time';
import { DistributionError, HandshakeFailed, type HandshakeFailure } from '../errors.js';
import { type Identity, Initiator, type Secrets, type Step } from './handshake.js';
import type { NodeName } from './names.js';
import type { NodeNetwork } from '../world.js';

/** How long an attempt gives precedence to a handshake that the other node has started. */
const GO_FIRST_MS = 500;
const KEEP_ALIVE_MS = 30_000;

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
  /** Undefined: the network of the machine. */
  readonly network?: Pick<NodeNetwork, 'connect'> | undefined;
  readonly clock: Clock;
  /** Time limit for each step of the handshake. */
  readonly stepTimeoutMs: number;
  /** True while the other node is in a handshake with us, which takes precedence. */
  readonly mustWait: () => boolean;
}

/** The connection of a node that has proved its name. `rest` holds the bytes after the handshake. */
export interface Authenticated {
  readonly socket: Socket;
  readonly remote: Identity;
  readonly rest: Buffer;
}

/** One attempt to connect: host, port mapper, TCP, handshake. */
export class Attempt {
  /** Rejects with DistributionError NODE_UNREACHABLE or NODE_NOT_REGISTERED, or with HandshakeFailed. */
  readonly result: Promise<Authenticated>;
  readonly #options: DialOptions;
  readonly #machine: Initiator;
  readonly #timer: Timer;
  #socket: Socket | undefined;
  readonly #aborted = new AbortController();
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
    const error = new HandshakeFailed(this.#options.target.full, 'aborted');
    this.#aborted.abort(error);
    this.#socket?.destroy();
    this.#fail(error);
  }

  async #run(): Promise<Authenticated> {
    const { target, resolve, via, network } = this.#options;
    if (via !== undefined) return await this.#shakeHands(connect({ path: via }));
    if (network !== undefined) return await this.#shakeHands(await network.connect(target, this.#aborted.signal));
    const noAddress = (error?: unknown): DistributionError =>
      unreachable(target, `the host ${target.host} has no address`, error);
    const addresses = await resolve(target.host).catch((error: unknown) => {
      throw noAddress(error);
    });
    if (addresses.length === 0) throw noAddress();
    const socket = await race({
      candidates: addresses,
      attempt: (address, signal) => this.#dial(address, signal),
      discard: (late) => late.destroy(),
      signal: this.#aborted.signal,
      clock: this.#options.clock,
    });

    return await this.#shakeHands(socket);
  }

  /** Connects to the node at one address of its host. */
  async #dial(address: string, signal: AbortSignal): Promise<Socket> {
    const { target, mapperPort, stepTimeoutMs, clock } = this.#options;
    const entry = await lookUp({ host: address, port: mapperPort, signal }, target.alive).catch((error: unknown) => {
      throw unreachable(target, (error as Error).message, error);
    });
    if (entry === undefined) {
      const message = `the port mapper of its host does not know ${target.full}`;
      throw new DistributionError('NODE_NOT_REGISTERED', message);
    }
    const at = { host: address, port: entry.port, timeoutMs: stepTimeoutMs, signal, clock };
    const socket = await connectTcp(at).catch((error: Error) => {
      throw unreachable(target, error.message, error);
    });

    return socket.setKeepAlive(true, KEEP_ALIVE_MS);
  }

  #refused(why: HandshakeFailure): HandshakeFailed {
    const answered = why === 'name_mismatch' ? this.#machine.answered?.name : undefined;
    const detail = answered === undefined ? {} : { detail: `it calls itself ${answered}`, answered };

    return new HandshakeFailed(this.#options.target.full, why, detail);
  }

  #shakeHands(socket: Socket): Promise<Authenticated> {
    const { target, stepTimeoutMs, mustWait } = this.#options;
    const timer = this.#timer;
    return new Promise((resolve, reject) => {
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
      const perform = (step: Step): void => {
        if (step.send.length > 0) {
          socket.write(Buffer.concat(step.send));
          expect();
        }
        if (step.failed !== undefined) fail(this.#refused(step.failed));
        else if (step.up !== undefined) {
          leave();
          // Data that arrives before the link listens must wait.
          socket.pause();
          resolve({ socket, ...step.up });
        }
      };
      const data = (bytes: Buffer): void => perform(this.#machine.data(bytes));
      const closed = (): void => fail(new HandshakeFailed(target.full, 'closed'));
      const begin = (): void => {
        this.#begun = true;
        perform(this.#machine.start());
      };

      this.#fail = fail;
      expect();
      socket.on('data', data).on('close', closed);
      socket.on('error', (error) => fail(unreachable(target, error.message, error)));
      const connected = (): void => {
        // Two simultaneous handshakes could each end the other.
        if (mustWait()) timer.start(GO_FIRST_MS, begin);
        else begin();
      };
      if (socket.connecting) socket.on('connect', connected);
      else connected();
    });
  }
}

function unreachable({ full }: NodeName, why: string, cause: unknown): DistributionError {
  return new DistributionError('NODE_UNREACHABLE', `${full} cannot be reached: ${why}`, { cause });
}

/**
 * Returns the addresses of a host, the families alternating. IPv4 comes first: names such as `localhost` have both,
 * while a node listens on only one, usually IPv4 as Erlang does.
 */
export async function resolveHost(host: string): Promise<string[]> {
  return inRacingOrder(await systemResolver().addresses(host), 4);
}
