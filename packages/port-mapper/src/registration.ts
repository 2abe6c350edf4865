import type { Log } from '@bloom/log';
import { type Clock, Timer } from '@bloom/time';
import { type Lease, type MapperAddress, registerOnce } from './client.js';
import { NODE_TYPE, type NodeEntry } from './protocol.js';

/** Pause before the first attempt after the mapper was lost, and between later ones; each varies by 20 %. */
const FIRST_RETRY_MS = 500;
const RETRY_MS = 2_000;

export interface RegistrationOptions {
  readonly mapper: MapperAddress;
  /** The part of the node name before `@`. */
  readonly name: string;
  /** Port of the distribution listener, which must already be bound. */
  readonly port: number;
  readonly hidden: boolean;
  /** Starts another mapper; called when nothing listens on the mapper's port. */
  readonly revive?: () => Promise<void>;
  readonly clock?: Clock;
  readonly random?: () => number;
  readonly log: Log;
}

/** Keeps a name registered: when the mapper is lost, registers again with the next one. */
export class Registration {
  readonly #options: RegistrationOptions;
  readonly #entry: NodeEntry;
  #lease: Lease | undefined;
  readonly #timer: Timer;
  #closed = false;

  private constructor(
    options: RegistrationOptions,
    entry: NodeEntry,
    /** From the first registration. It never changes, because every pid created since contains it. */
    readonly creation: number,
  ) {
    this.#options = options;
    this.#entry = entry;
    this.#timer = new Timer(options.clock);
  }

  /** @throws PortMapperError NAME_IN_USE, PORT_MAPPER_UNREACHABLE, PORT_MAPPER_PROTOCOL */
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
    registration.#hold(lease);
    return registration;
  }

  /** True while a mapper has the name registered. */
  get registered(): boolean {
    return this.#lease !== undefined;
  }

  /** Releases the name. */
  close(): void {
    this.#closed = true;
    this.#timer.stop();
    this.#lease?.socket.destroy();
    this.#lease = undefined;
  }

  #hold(lease: Lease): void {
    this.#lease = lease;
    lease.socket.resume();
    lease.socket.once('close', () => this.#lost());
    // The socket closed between the answer and here: 'close' has already been emitted.
    if (lease.socket.destroyed) this.#lost();
  }

  #lost(): void {
    if (this.#closed || this.#lease === undefined) return;
    this.#lease = undefined;
    this.#options.log.warn('port_mapper.lost', { name: this.#entry.name });
    this.#schedule(FIRST_RETRY_MS);
  }

  #schedule(ms: number): void {
    const jitter = 0.8 + 0.4 * (this.#options.random ?? Math.random)();
    this.#timer.start(ms * jitter, () => void this.#retry());
  }

  async #retry(): Promise<void> {
    try {
      this.#restored(await this.#register());
    } catch (error) {
      this.#options.log.debug('port_mapper.retry', { name: this.#entry.name, reason: (error as Error).message });
      if (!this.#closed) this.#schedule(RETRY_MS);
    }
  }

  async #register(): Promise<Lease> {
    const { mapper, revive } = this.#options;
    try {
      return await registerOnce(mapper, this.#entry);
    } catch (error) {
      const refused = ((error as Error).cause as NodeJS.ErrnoException | undefined)?.code === 'ECONNREFUSED';
      if (!refused || revive === undefined || this.#closed) throw error;
      await revive();
      return await registerOnce(mapper, this.#entry);
    }
  }

  #restored(lease: Lease): void {
    if (this.#closed) {
      lease.socket.destroy();
      return;
    }
    this.#hold(lease);
    this.#options.log.info('port_mapper.registered_again', { name: this.#entry.name });
  }
}
