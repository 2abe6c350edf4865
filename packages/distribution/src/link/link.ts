import { Atom, isDecodeError, Pid, type Ref, type Term, TermReader, TermWriter, Tuple } from '@bloom/etf';
import type { BusyWait } from './busy-wait.js';
import { type Control, hasPayload, parseControl, reasonIsPayload, write } from './control.js';
import { DistributionError } from '../errors.js';
import type { LinkLimits } from '../limits.js';
import { FLAG } from '../handshake/flags.js';
import { type FrameBudget, FrameDecoder } from './frames.js';
import { readPayload } from './gen-call.js';
import type { Identity } from '../handshake/handshake.js';
import type { Wire } from '../world.js';

/** Why a connection ended. */
export type CloseReason =
  | 'connection_closed'
  | 'net_tick_timeout'
  | 'disconnect'
  | 'leave'
  | 'malformed'
  | 'frame_too_big'
  | 'slow_peer'
  | 'replaced'
  /** An operator has cut the node off. */
  | 'cut';

/**
 * `query`: fails fast. `one-way`: follows the policy. `signal`: must arrive; a link that cannot accept it is closed.
 */
export type SendKind = 'query' | 'one-way' | 'signal';

export interface SendOptions {
  readonly from: Pid;
  /** Default `one-way`. */
  readonly kind?: SendKind;
}

/** `overflow`: not queued, because the connection has too many unsent bytes. */
export type SendResult = 'sent' | 'overflow' | 'no_connection';

export interface LinkCounters {
  framesIn: number;
  framesOut: number;
  bytesIn: number;
  bytesOut: number;
  ticksIn: number;
  ticksOut: number;
  /** One-way messages dropped because the other side was too slow. */
  dropped: number;
  /** Dropped control messages in the name of a third node. */
  foreign: number;
}

export interface LinkEvents {
  control(link: Link, control: Control, payload: Term): void;
  closed(link: Link, reason: CloseReason, detail: string): void;
}

export interface LinkOptions {
  readonly remote: Identity;
  readonly ownFlags: bigint;
  /** True when we dialled. */
  readonly dialled: boolean;
  readonly wire: Wire;
  readonly limits: LinkLimits;
  readonly events: LinkEvents;
  /** Runs a function at the end of this turn of the event loop. */
  readonly defer: (run: () => void) => void;
  /** Memory for incomplete frames, shared by all connections of a node. */
  readonly budget?: FrameBudget;
  /** Waits for the answers to queries. */
  readonly wait?: BusyWait;
}

/** A batch is written when it reaches this size, or at the end of the turn. */
const BATCH_BYTES = 64 * 1024;
const SPARE_BUFFERS = 4;
/** Batches up to this size are copied for the transport. */
const SMALL_BYTES = 1_024;
/** Initial size of the batch buffer: most connections send little. */
const IDLE_BYTES = 1_024;
const TICK = Buffer.alloc(4);
const SILENT_CHECKS = 4;
const SEND_SENDER = Buffer.from([131, 104, 3, 97, 22]);
const REG_SEND = Buffer.from([131, 104, 4, 97, 6]);
const UNUSED = Buffer.from([119, 0]);

/** An established connection: frames in and out, ticks, and the limit on unsent bytes. */
export class Link {
  readonly remote: Identity;
  readonly dialled: boolean;
  readonly counters: LinkCounters = {
    framesIn: 0,
    framesOut: 0,
    bytesIn: 0,
    bytesOut: 0,
    ticksIn: 0,
    ticksOut: 0,
    dropped: 0,
    foreign: 0,
  };
  readonly #wire: Wire;
  readonly #limits: LinkLimits;
  readonly #options: LinkOptions;
  readonly #flags: bigint;
  readonly #sendSender: boolean;
  readonly #exitPayload: boolean;
  readonly #decoder: FrameDecoder;
  readonly #reader = new TermReader();
  readonly #writer: TermWriter;
  readonly #spare: Buffer[] = [];
  #lastFrom: Pid | undefined;
  #lastTo: Pid | undefined;
  #frameStart = 0;
  /** Size of the message that raised the unsent bytes above the high-water mark; 0 when it was a small one. */
  #largest = 0;
  #flushPending = false;
  #seenIn = 0;
  #seenOut = 0;
  #silentChecks = 0;
  #over = false;

  constructor(options: LinkOptions) {
    this.#options = options;
    this.remote = options.remote;
    this.dialled = options.dialled;
    this.#wire = options.wire;
    this.#limits = options.limits;
    this.#flags = options.remote.flags & options.ownFlags;
    this.#sendSender = this.negotiated(FLAG.sendSender);
    this.#exitPayload = this.negotiated(FLAG.exitPayload);
    this.#decoder = new FrameDecoder(options.limits.maxFrameBytes, options.budget);
    this.#writer = new TermWriter(IDLE_BYTES, options.limits.maxFrameBytes + BATCH_BYTES);
  }

  /** Bytes waiting to be sent. */
  get pendingBytes(): number {
    return this.#writer.length + this.#wire.pendingBytes;
  }

  negotiated(flag: bigint): boolean {
    return (this.#flags & flag) !== 0n;
  }

  // --- receiving

  receive(chunk: Buffer): void {
    if (this.#over) return;
    this.counters.bytesIn += chunk.length;
    this.#options.wait?.received();
    const result = this.#decoder.push(chunk, this.#onFrame);
    if (result === 'too_big')
      this.close(
        'frame_too_big',
        `a frame of more than ${this.#limits.maxFrameBytes} bytes, or too many unfinished ones`,
      );
  }

  readonly #onFrame = (bytes: Buffer, start: number, end: number): boolean => {
    if (start === end) {
      this.counters.ticksIn += 1;
      return true;
    }
    this.counters.framesIn += 1;
    let control: Control | undefined;
    let payload: Term;
    try {
      if (bytes[start] !== 112) return this.#malformed(`a frame of type ${bytes[start]}`);
      const reader = this.#reader.open(bytes, start + 1, end);
      control = this.#readSend(reader);
      if (control !== undefined) payload = readPayload(reader);
      else {
        const tuple = reader.term();
        const op = tuple instanceof Tuple ? tuple.elements[0] : undefined;
        control = tuple instanceof Tuple ? parseControl(tuple.elements) : undefined;
        if (control === undefined) return this.#malformed(`control message ${String(op)}`);
        if (hasPayload(op)) {
          payload = control.op === 'send' ? readPayload(reader) : reader.term();
          if (reasonIsPayload(op)) control = { ...control, reason: { term: payload } } as Control;
        }
      }
      if (reader.remaining > 0) return this.#malformed(`${reader.remaining} bytes after a message`);
    } catch (error) {
      if (isDecodeError(error)) return this.#malformed(error.message);
      throw error;
    } finally {
      this.#reader.close();
    }
    if (isForeign(control, this.remote.name)) this.counters.foreign += 1;
    else this.#options.events.control(this, control, payload);
    return !this.#over;
  };

  /**
   * Reads {22, From, To} and {6, From, '', Name} without building a tuple: nearly all messages have one of these forms,
   * mostly between the same two processes as before. For any other message the reader stays where it was.
   */
  #readSend(reader: TermReader): Control | undefined {
    const start = reader.position;
    const toPid = reader.skip(SEND_SENDER);
    if (!toPid && !reader.skip(REG_SEND)) return undefined;
    const from = readPid(reader, this.#lastFrom);
    if (from !== undefined && toPid) {
      const to = readPid(reader, this.#lastTo);
      if (to !== undefined) {
        this.#lastFrom = from;
        this.#lastTo = to;
        return { op: 'send', from, to };
      }
    } else if (from !== undefined && reader.skip(UNUSED)) {
      const name = reader.part();
      if (name instanceof Atom) {
        this.#lastFrom = from;
        return { op: 'send', from, to: name.name };
      }
    }
    reader.rewind(start);
    return undefined;
  }

  #malformed(detail: string): false {
    this.close('malformed', detail);
    return false;
  }

  // --- sending

  /** @throws EtfError NOT_ENCODABLE, DistributionError FRAME_TOO_BIG; nothing was queued then */
  send(to: Pid | string | Ref, message: Term, { from, kind = 'one-way' }: SendOptions): SendResult {
    if (!this.#admit(kind)) return 'overflow';
    if (kind === 'query') this.#options.wait?.asked();
    return this.#frame(kind, (writer) => {
      if (typeof to === 'string') write.sendName(writer, from, to);
      else if (!('id' in to)) write.sendAlias(writer, from, to);
      else if (this.#sendSender) write.sendSender(writer, from, to);
      else write.send(writer, to);
      writer.term(message);
    });
  }

  /** Queues a message on which others depend: monitors, links, exits. */
  signal(put: (writer: TermWriter, exitPayload: boolean) => void): SendResult {
    if (!this.#admit('signal')) return 'overflow';
    return this.#frame('signal', (writer) => put(writer, this.#exitPayload));
  }

  #admit(kind: SendKind): boolean {
    if (this.#over) return false;
    const { highWaterBytes } = this.#limits;
    if (this.pendingBytes <= highWaterBytes) this.#largest = 0;
    if (this.#waitingBytes <= (kind === 'signal' ? 2 : 1) * highWaterBytes) return true;
    this.#refuse(kind);
    return false;
  }

  /** Unsent bytes without one large message, since queueing it whole says nothing about the pace of the other side. */
  get #waitingBytes(): number {
    return this.pendingBytes - this.#largest;
  }

  #refuse(kind: SendKind): void {
    if (kind === 'query') return;
    if (kind === 'one-way') this.counters.dropped += 1;
    if (kind === 'signal' || this.#limits.overflow === 'close')
      this.close('slow_peer', `${this.pendingBytes} bytes that it did not read`);
  }

  #frame(kind: SendKind, put: (writer: TermWriter) => void): SendResult {
    const writer = this.#writer;
    const { maxFrameBytes, highWaterBytes } = this.#limits;
    this.#frameStart = writer.length;
    try {
      writer.u32(0);
      writer.byte(112);
      put(writer);
      const size = writer.length - this.#frameStart - 4;
      if (size > maxFrameBytes) throw tooBig(size, maxFrameBytes);
      writer.patchU32(this.#frameStart, size);
      if (this.#largest > 0) {
        // A second large message has to wait for the first.
        if (kind !== 'signal' && this.#waitingBytes > 2 * highWaterBytes) {
          writer.length = this.#frameStart;
          this.#refuse(kind);
          return 'overflow';
        }
      } else if (size > BATCH_BYTES && this.pendingBytes > highWaterBytes) this.#largest = size;
    } catch (error) {
      writer.length = this.#frameStart;
      throw error;
    }
    this.counters.framesOut += 1;
    if (writer.length >= BATCH_BYTES) this.flush();
    else if (!this.#flushPending) {
      this.#flushPending = true;
      this.#options.defer(this.#deferredFlush);
    }
    return 'sent';
  }

  readonly #deferredFlush = (): void => {
    this.#flushPending = false;
    this.flush();
  };

  /** Passes queued frames to the transport. */
  flush(): void {
    const writer = this.#writer;
    if (writer.length === 0 || this.#over) return;
    if (writer.length <= SMALL_BYTES) {
      // Copying a little is cheaper than allocating another buffer for the next batch.
      const bytes = Buffer.allocUnsafe(writer.length);
      writer.bytes.copy(bytes, 0, 0, writer.length);
      writer.clear();
      this.#transmit(bytes);
      return;
    }
    const batch = this.#writer.take(this.#spare.pop());
    this.#transmit(batch, () => {
      // Do not keep a buffer that grew for one large message.
      const whole = batch.buffer;
      const useful = whole.byteLength >= BATCH_BYTES && whole.byteLength <= 2 * BATCH_BYTES;
      if (useful && this.#spare.length < SPARE_BUFFERS) this.#spare.push(Buffer.from(whole));
    });
  }

  #transmit(bytes: Buffer, done?: () => void): void {
    this.counters.bytesOut += bytes.length;
    this.#wire.write(bytes, done);
  }

  // --- life

  /**
   * Sends a tick if necessary and closes a silent link. Must be called every quarter of the tick time. With `judge`
   * false silence does not count, because we could not read.
   */
  check(judge: boolean): void {
    if (this.#over) return;
    this.flush();
    if (this.counters.bytesOut === this.#seenOut) {
      this.counters.ticksOut += 1;
      this.#transmit(TICK);
    }
    this.#seenOut = this.counters.bytesOut;
    if (this.counters.bytesIn !== this.#seenIn) this.#silentChecks = 0;
    else if (judge) this.#silentChecks += 1;
    this.#seenIn = this.counters.bytesIn;
    if (this.#silentChecks >= SILENT_CHECKS) this.close('net_tick_timeout', 'it was silent for too long');
  }

  /** Closes the link because the other side closed or the transport failed. */
  lost(detail: string): void {
    this.close('connection_closed', detail);
  }

  close(reason: CloseReason, detail = ''): void {
    if (this.#over) return;
    if (reason === 'disconnect' || reason === 'leave') this.flush();
    this.#over = true;
    this.#decoder.clear();
    if (reason === 'disconnect' || reason === 'leave') this.#wire.end();
    else this.#wire.destroy();
    this.#options.events.closed(this, reason, detail);
  }
}

/** Reads the next term if it is a pid. It usually equals the last one, and comparing bytes is cheaper than decoding. */
function readPid(reader: TermReader, last: Pid | undefined): Pid | undefined {
  if (last !== undefined && reader.skip(last.wire)) return last;
  const term = reader.part();
  return term instanceof Pid ? term : undefined;
}

function isForeign(control: Control, remote: string): boolean {
  switch (control.op) {
    case 'ignored':
    case 'spawned':
      return false;
    case 'spawn':
      return control.request.from.node !== remote;
    default:
      return control.from !== undefined && typeof control.from !== 'string' && control.from.node !== remote;
  }
}

function tooBig(bytes: number, limit: number): DistributionError {
  return new DistributionError(
    'FRAME_TOO_BIG',
    `a message of ${bytes} bytes is larger than the limit of ${limit} bytes`,
  );
}
