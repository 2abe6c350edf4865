import { lookup } from 'node:dns/promises';
import { connect, isIP, type Socket } from 'node:net';
import { lookUp, type PortMapperError } from '@bloom/port-mapper';
import type { Clock } from '../clock.js';
import { HandshakeFailed, NodeNotRegistered, NodeUnreachable } from '../errors.js';
import { type Identity, Initiator, type Secrets, type Step } from './handshake.js';
import type { NodeName } from './names.js';

export interface DialOptions {
  readonly target: NodeName;
  readonly self: Identity;
  readonly secrets: Secrets;
  /** Port of the port mapper on the target's host. */
  readonly mapperPort: number;
  /** Address of a host name. */
  readonly resolve: (host: string) => Promise<string>;
  readonly clock: Clock;
  /** For each step of the handshake. */
  readonly stepTimeoutMs: number;
}

export interface Dialled {
  readonly socket: Socket;
  readonly peer: Identity;
  readonly rest: Buffer;
}

/** One attempt to connect: host, port mapper, TCP, handshake. */
export class Attempt {
  /** Rejects with NodeUnreachable, NodeNotRegistered or HandshakeFailed. */
  readonly result: Promise<Dialled>;
  private readonly machine: Initiator;
  private socket: Socket | undefined;
  private aborted = false;
  private begun = false;
  private fail: (error: Error) => void = () => {};

  constructor(private readonly options: DialOptions) {
    this.machine = new Initiator(options.self, options.target.full, options.secrets);
    this.result = this.run();
  }

  /** Whether the other side has sent no status; when it closes then, it may prefer its own attempt to reach us. */
  get waitsForStatus(): boolean {
    return this.machine.waitsForStatus;
  }

  /** Whether the other side can know of the attempt: host and port are found, and our name is on its way. */
  get isUnderWay(): boolean {
    return this.begun;
  }

  /** Gives the attempt up. */
  abort(): void {
    this.aborted = true;
    this.socket?.destroy();
    this.fail(new HandshakeFailed(this.options.target.full, 'aborted'));
  }

  private async run(): Promise<Dialled> {
    const { target, resolve, mapperPort } = this.options;
    const address = await resolve(target.host).catch((error: unknown) => {
      throw new NodeUnreachable(target.full, `the host ${target.host} has no address`, error);
    });
    const entry = await lookUp({ host: address, port: mapperPort }, target.alive).catch((error: unknown) => {
      throw new NodeUnreachable(target.full, (error as PortMapperError).message, error);
    });
    if (entry === undefined) throw new NodeNotRegistered(target.full);
    if (this.aborted) throw new HandshakeFailed(target.full, 'aborted');
    return await this.shakeHands(address, entry.port);
  }

  private shakeHands(host: string, port: number): Promise<Dialled> {
    const { target, clock, stepTimeoutMs } = this.options;
    return new Promise((resolve, reject) => {
      const socket = connect({ host, port, noDelay: true, keepAlive: true, keepAliveInitialDelay: 30_000 });
      this.socket = socket;
      let timer: unknown;

      const leave = (): void => {
        clock.clearTimeout(timer);
        socket.off('data', data).off('close', closed);
      };
      const fail = (error: Error): void => {
        leave();
        socket.destroy();
        reject(error);
      };
      const expect = (): void => {
        clock.clearTimeout(timer);
        timer = clock.setTimeout(() => fail(new HandshakeFailed(target.full, 'timeout')), stepTimeoutMs);
      };
      const carryOut = (step: Step): void => {
        if (step.send.length > 0) socket.write(Buffer.concat(step.send));
        if (step.failed !== undefined) fail(new HandshakeFailed(target.full, step.failed));
        else if (step.up !== undefined) {
          leave();
          // What arrives before the link listens must wait.
          socket.pause();
          resolve({ socket, ...step.up });
        } else expect();
      };
      const data = (bytes: Buffer): void => carryOut(this.machine.data(bytes));
      const closed = (): void => fail(new HandshakeFailed(target.full, 'closed'));

      this.fail = fail;
      expect();
      socket.on('connect', () => {
        this.begun = true;
        carryOut(this.machine.start());
      });
      socket.on('data', data).on('close', closed);
      socket.on('error', (error) => fail(new NodeUnreachable(target.full, error.message, error)));
    });
  }
}

/** The address of a host name, as the system resolves it. */
export async function resolveHost(host: string): Promise<string> {
  return isIP(host) === 0 ? (await lookup(host)).address : host;
}
