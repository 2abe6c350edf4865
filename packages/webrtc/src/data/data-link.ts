import { Association, type DownCause } from './association.js';
import { type ChannelKind, type ChannelName, readControl, writeAck, writeOpen } from './dcep.js';
import { MAX_STREAMS } from './sctp-packet.js';
import { type QueuedMessage, SendQueue } from './send-queue.js';

/** Payload protocol identifiers (RFC 8831 section 8). */
const Ppid = { dcep: 50, text: 51, binary: 53 } as const;
const RELIABLE: ChannelKind = { ordered: true };

interface OutMessage extends QueuedMessage {
  isText: boolean;
  kind: ChannelKind;
}

interface Channel {
  /** False until the client acknowledges the channel. Until then all messages are sent in order after the DCEP OPEN. */
  confirmed: boolean;
}

export interface DataLinkHandlers {
  /** Sends one SCTP packet, which is only valid during the call. */
  send(packet: Buffer): void;
  /** Runs a step in a later turn of the event loop. Returns false when too many steps are queued. */
  inTurn(step: () => void): boolean;
  /** Called when channels can be opened. */
  onUp(): void;
  /** Called when the client opens a channel. The handler refuses it by calling `close`. */
  onOpened(stream: number, channel: ChannelName): void;
  onMessage(stream: number, isText: boolean, message: Buffer): void;
  /** Called when the client has closed a channel. */
  onClosed(stream: number): void;
  /** Called when lossy messages were dropped because the client reads too slowly. */
  onDropped(messages: number): void;
  /** Called at most once, when the association ends without a call of `end`; all channels are then closed. */
  onDown(cause: DownCause): void;
}

/**
 * The data channels of one client (RFC 8831, RFC 8832), identified by stream. As the DTLS server we open odd streams,
 * as the DTLS client even ones.
 */
export class DataLink {
  readonly #handlers: DataLinkHandlers;
  readonly #association: Association;
  readonly #channels = new Map<number, Channel>();
  /** Closed channels' streams: those whose reset is unconfirmed, then those the client has not reset itself. */
  readonly #unconfirmed = new Set<number>();
  readonly #halfOpen = new Set<number>();
  readonly #queue = new SendQueue<OutMessage>();
  /** 1: we open odd streams. */
  readonly #ownParity: 0 | 1;
  #nextStream: number;
  #isPumping = false;

  constructor(handlers: DataLinkHandlers, { isDtlsClient = false }: { isDtlsClient?: boolean } = {}) {
    this.#handlers = handlers;
    this.#ownParity = isDtlsClient ? 0 : 1;
    this.#nextStream = this.#ownParity;
    this.#association = new Association({
      send: (packet) => handlers.send(packet),
      onUp: () => handlers.onUp(),
      onMessage: (stream, protocol, data) => this.#received(stream, protocol, data),
      onReset: (streams) => {
        for (const stream of streams) this.#wasReset(stream);
      },
      onResetDone: (streams) => {
        for (const stream of streams) this.#unconfirmed.delete(stream);
      },
      onRoom: () => this.#pumpLater(),
      onDown: (cause) => {
        this.#channels.clear();
        handlers.onDown(cause);
      },
    });
  }

  get isUp(): boolean {
    return this.#association.isUp;
  }

  get channels(): number {
    return this.#channels.size;
  }

  get waitingBytes(): number {
    return this.#queue.bytes;
  }

  /** Takes one SCTP packet. Returns false if it was dropped. */
  receive(packet: Buffer): boolean {
    return this.#association.receive(packet);
  }

  /** Opens a channel and returns its stream; undefined when no stream is free. */
  open(channel: ChannelName): number | undefined {
    const stream = this.isUp ? this.#freeStream() : undefined;
    if (stream === undefined) return undefined;
    this.#channels.set(stream, { confirmed: false });
    this.#association.send(stream, Ppid.dcep, writeOpen(channel), RELIABLE);
    return stream;
  }

  close(stream: number): void {
    if (!this.#channels.delete(stream)) return;
    this.#queue.forget(stream);
    this.#resetBoth(stream);
  }

  /** Sends a message of at least one byte. Returns false if it is reliable and does not fit: close the channel then. */
  send(message: OutMessage): boolean {
    if (!this.#channels.has(message.stream)) return true;
    const before = this.#queue.dropped;
    const isQueued = this.#queue.push(message);
    if (this.#queue.dropped > before) this.#handlers.onDropped(this.#queue.dropped - before);
    this.#pumpLater();
    return isQueued;
  }

  /** Resumes sending after a step was refused, since no other event may trigger it. Call every 20 ms. */
  tick(): void {
    this.#pumpLater();
  }

  /** Ends the association without calling any handler again. Idempotent. */
  end(): void {
    this.#channels.clear();
    this.#association.close();
  }

  #received(stream: number, protocol: number, data: Buffer): void {
    if (protocol === Ppid.dcep) return this.#control(stream, data);
    if (!this.#channels.has(stream)) return;
    // Empty messages have their own PPIDs and carry no frame header.
    if (protocol === Ppid.text || protocol === Ppid.binary) {
      this.#handlers.onMessage(stream, protocol === Ppid.text, data);
    } else {
      this.#handlers.onMessage(stream, false, EMPTY);
    }
  }

  #control(stream: number, data: Buffer): void {
    const message = readControl(data);
    const channel = this.#channels.get(stream);
    if (message.type === 'ack') {
      if (channel !== undefined) channel.confirmed = true;
    } else if (message.type === 'invalid') {
      if (channel === undefined) this.#resetBoth(stream);
    } else if (channel === undefined) {
      if ((stream & 1) === this.#ownParity) return this.#resetBoth(stream);
      this.#halfOpen.delete(stream);
      this.#association.reused(stream);
      this.#channels.set(stream, { confirmed: true });
      this.#association.send(stream, Ppid.dcep, writeAck(), RELIABLE);
      this.#handlers.onOpened(stream, message.channel);
    }
  }

  /** Closes a stream. The client resets its own direction in response. */
  #resetBoth(stream: number): void {
    this.#halfOpen.add(stream);
    this.#reset(stream);
  }

  #reset(stream: number): void {
    this.#unconfirmed.add(stream);
    this.#association.reset(stream);
  }

  #wasReset(stream: number): void {
    this.#halfOpen.delete(stream);
    if (!this.#channels.delete(stream)) return;
    this.#queue.forget(stream);
    this.#reset(stream);
    this.#handlers.onClosed(stream);
  }

  #freeStream(): number | undefined {
    for (let tried = 0; tried < MAX_STREAMS / 2; tried++) {
      const stream = this.#nextStream;
      this.#nextStream = (stream + 2) % MAX_STREAMS;
      if (![this.#channels, this.#unconfirmed, this.#halfOpen].some((streams) => streams.has(stream))) return stream;
    }
    return undefined;
  }

  /** Sends one message per step, so that a broadcast is spread over several turns. */
  #pumpLater(): void {
    if (this.#isPumping || this.#queue.length === 0 || !this.#association.hasRoom) return;
    this.#isPumping = true;
    const isQueued = this.#handlers.inTurn(() => {
      this.#isPumping = false;
      this.#pump();
    });
    if (!isQueued) this.#isPumping = false;
  }

  #pump(): void {
    if (!this.#association.hasRoom) return;
    const message = this.#queue.shift();
    if (message === undefined) return;
    const { stream, isText, frame, kind } = message;
    const isConfirmed = this.#channels.get(stream)?.confirmed === true;
    this.#association.send(
      stream,
      isText ? Ppid.text : Ppid.binary,
      frame,
      isConfirmed ? kind : { ...kind, ordered: true },
    );
    this.#pumpLater();
  }
}

const EMPTY = Buffer.alloc(0);
