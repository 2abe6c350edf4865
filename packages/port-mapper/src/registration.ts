import type { Log } from '@bloom/log';
import { type Lease, type MapperAddress, registerOnce } from './client.js';
import { NODE_TYPE, type NodeEntry } from './protocol.js';

/** First attempt after the mapper was lost, and then every so often; each time between 80 and 120 % of it. */
const FIRST_RETRY_MS = 500;
const RETRY_MS = 2_000;

export interface Timers {
  set(callback: () => void, ms: number): unknown;
  clear(timer: unknown): void;
}

export const systemTimers: Timers = {
  set: (callback, ms) => setTimeout(callback, ms),
  clear: (timer) => clearTimeout(timer as NodeJS.Timeout),
};

export interface RegistrationOptions {
  readonly mapper: MapperAddress;
  /** The part of the node name before `@`. */
  readonly name: string;
  /** Port of the distribution listener, which must be bound already. */
  readonly port: number;
  readonly hidden: boolean;
  /** Brings a mapper back after the one we were registered with is gone; called when nothing listens. */
  readonly revive?: () => Promise<void>;
  readonly timers?: Timers;
  readonly random?: () => number;
  readonly log: Log;
}

/** A name kept registered: when the mapper goes, it is registered again with the next one. */
export class Registration {
  private lease: Lease | undefined;
  private timer: unknown;
  private closed = false;
  private keepsAlive = true;

  private constructor(
    private readonly options: RegistrationOptions,
    private readonly entry: NodeEntry,
    /** What the first registration gave; it stays, because it is in every pid we have made. */
    readonly creation: number,
  ) {}

  /** Throws NameInUse, PortMapperUnreachable or PortMapperProtocolError. */
  static async open(options: RegistrationOptions): Promise<Registration> {
    const entry: NodeEntry = {
      name: options.name,
      port: options.port,
      nodeType: options.hidden ? NODE_TYPE.hidden : NODE_TYPE.normal,
      protocol: 0,
      highest: 6,
      lowest: 6,
      extra: Buffer.alloc(0),
    };
    const lease = await registerOnce(options.mapper, entry);
    const registration = new Registration(options, entry, lease.creation);
    registration.hold(lease);
    return registration;
  }

  /** Whether a mapper knows the name at this moment. */
  get registered(): boolean {
    return this.lease !== undefined;
  }

  /** Lets the process end although the name is registered. */
  unref(): this {
    this.keepsAlive = false;
    this.lease?.socket.unref();
    return this;
  }

  /** Gives the name up. */
  close(): void {
    this.closed = true;
    (this.options.timers ?? systemTimers).clear(this.timer);
    this.lease?.socket.destroy();
    this.lease = undefined;
  }

  private hold(lease: Lease): void {
    this.lease = lease;
    lease.socket.resume();
    if (!this.keepsAlive) lease.socket.unref();
    lease.socket.once('close', () => this.lost());
    // Closed between the answer and here: 'close' has been emitted.
    if (lease.socket.destroyed) this.lost();
  }

  private lost(): void {
    if (this.closed || this.lease === undefined) return;
    this.lease = undefined;
    this.options.log.warn('port-mapper.lost', { name: this.entry.name });
    this.schedule(FIRST_RETRY_MS);
  }

  private schedule(ms: number): void {
    const jitter = 0.8 + 0.4 * (this.options.random ?? Math.random)();
    const timers = this.options.timers ?? systemTimers;
    timers.clear(this.timer);
    this.timer = timers.set(() => void this.retry(), ms * jitter);
    if (!this.keepsAlive) (this.timer as { unref?: () => void }).unref?.();
  }

  private async retry(): Promise<void> {
    try {
      this.restored(await this.register());
    } catch (error) {
      this.options.log.debug('port-mapper.retry', { name: this.entry.name, reason: (error as Error).message });
      if (!this.closed) this.schedule(RETRY_MS);
    }
  }

  private async register(): Promise<Lease> {
    const { mapper, revive } = this.options;
    try {
      return await registerOnce(mapper, this.entry);
    } catch (error) {
      const nobody = ((error as Error).cause as NodeJS.ErrnoException | undefined)?.code === 'ECONNREFUSED';
      if (!nobody || revive === undefined || this.closed) throw error;
      await revive();
      return await registerOnce(mapper, this.entry);
    }
  }

  private restored(lease: Lease): void {
    if (this.closed) {
      lease.socket.destroy();
      return;
    }
    this.hold(lease);
    this.options.log.info('port-mapper.registered-again', { name: this.entry.name });
  }
}
