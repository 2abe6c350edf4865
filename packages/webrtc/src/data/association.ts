import { SCTP } from 'werift-sctp';
import type { ChannelKind } from './dcep.js';
import { isSafePacket, MAX_GAP_SPAN, MAX_STREAMS } from './sctp-packet.js';
import { mendSctp, type SctpInternals } from './mended-sctp.js';
import { type StreamResetHandlers, StreamResets } from './stream-resets.js';
import { DONE, receiveData, receiveSack, sendMessage, transmitQuickly, writeQuickly } from './sctp-fast-path.js';

/** Bytes that the client may send beyond what we have read. */
const RECEIVE_WINDOW = 256 * 1024;
/** Fragments of incomplete messages, whose objects outweigh their bytes. */
const MAX_FRAGMENTS = 2_048;
/** Packets that are not acknowledged: those of messages, which `hasRoom` bounds, and confirmations of channels. */
const MAX_KEPT = 3_072;
const SCTP_PORT = 5_000;

export interface AssociationHandlers extends StreamResetHandlers {
  /** Sends one SCTP packet of at most 1,228 bytes. It is valid during the call. */
  send(packet: Buffer): void;
  onUp(): void;
  /** Takes one message, which may be a view. */
  onMessage(stream: number, protocol: number, data: Buffer): void;
  /** Called when there is room for further messages. */
  onRoom(): void;
  /** Called when the association has ended by itself; at most once. */
  onDown(): void;
}

/**
 * One SCTP association of werift over DTLS (RFC 8261), bounded: packets are checked before werift sees them, it holds at most one
 * message beyond what the congestion window admits, and no input makes it throw. The client begins.
 */
export class Association {
  readonly #handlers: AssociationHandlers;
  readonly #sctp: SCTP;
  readonly #internals: SctpInternals;
  readonly #resets: StreamResets;
  /** True while werift takes a packet: chunk by chunk, each in a later step of its promises. */
  #isTaking = false;
  /** Packets that arrived meanwhile; at most those of one turn of the event loop. */
  #behind: Buffer[] = [];
  #up = false;
  #ended = false;

  constructor(handlers: AssociationHandlers) {
    this.#handlers = handlers;
    const transport = {
      send: (packet: Buffer): Promise<void> => {
        if (!this.#ended) handlers.send(packet);
        return DONE;
      },
      close: () => undefined,
    };
    const onTransmitted = (): void => {
      if (this.hasRoom) this.#guard(() => handlers.onRoom());
    };
    const sctp = SCTP.server(transport, SCTP_PORT);
    this.#sctp = sctp;
    this.#internals = mendSctp(sctp, RECEIVE_WINDOW);
    writeQuickly(this.#internals);
    transmitQuickly(this.#internals, onTransmitted);
    sctp._inboundStreamsMax = MAX_STREAMS;
    sctp._outboundStreamsCount = MAX_STREAMS;
    sctp.onReceive.subscribe((stream, protocol, data) => this.#guard(() => handlers.onMessage(stream, protocol, data)));
    this.#resets = new StreamResets(sctp, this.#internals, {
      onReset: (streams) => this.#guard(() => handlers.onReset(streams)),
      onResetDone: (streams) => this.#guard(() => handlers.onResetDone(streams)),
    });
    sctp.stateChanged.connected.subscribe(() => this.#connected());
    sctp.stateChanged.closed.subscribe(() => this.#end());
    sctp.flush.subscribe(onTransmitted);
    void sctp.start(SCTP_PORT);
  }

  get isUp(): boolean {
    return this.#up && !this.#ended;
  }

  /** True while a message may be given to werift, which searches all that wait for each packet it sends. */
  get hasRoom(): boolean {
    return this.isUp && this.#sctp.outboundQueue.length === 0 && this.#internals.sentQueue.length < MAX_GAP_SPAN / 2;
  }

  /** Takes one SCTP packet. Returns false when it was dropped. */
  receive(packet: Buffer): boolean {
    if (this.#ended || !this.#isSafe(packet)) return false;
    if (!this.#isTaking) return this.#take(packet);
    // It would overtake the rest of the packet before it, which an acknowledgement would report as lost.
    this.#behind.push(packet);
    return true;
  }

  #take(packet: Buffer): boolean {
    if (receiveSack(this.#internals, packet)) return true;
    if (receiveData(this.#internals, packet)) return this.#isWithinBounds();
    this.#isTaking = true;
    // A checksum that is wrong, or a field that werift cannot read. DTLS has authenticated it, so the client is to blame.
    const taken = this.#internals.handleData(packet).catch(() => undefined);
    void taken.then(() => this.#guard(() => this.#taken()));
    return this.#isWithinBounds();
  }

  /** Goes on with what arrived behind the packet that is done, which may have changed what is safe. */
  #taken(): void {
    this.#isTaking = false;
    const behind = this.#behind;
    this.#behind = [];
    if (this.#ended || !this.#isWithinBounds()) return;
    for (const packet of behind) this.receive(packet);
  }

  #isWithinBounds(): boolean {
    if (this.#internals.advertisedRwnd >= 0 && this.#fragments() <= MAX_FRAGMENTS) return true;
    this.#fail();
    return false;
  }

  /** Sends a message. Ends the association when too much waits for a client that acknowledges nothing. */
  send(stream: number, protocol: number, data: Buffer, kind: ChannelKind): void {
    if (this.#sctp.outboundQueue.length + this.#internals.sentQueue.length > MAX_KEPT) return this.#fail();
    sendMessage(this.#internals, stream, protocol, data, kind);
  }

  /** Resets the stream: the channel on it is closed (RFC 8831 section 6.7). */
  reset(stream: number): void {
    if (this.isUp) this.#resets.reset(stream);
  }

  /** The client uses a stream again: a reset of ours on it is done, although its answer has not come. */
  reused(stream: number): void {
    this.#resets.assumeDone(stream);
  }

  /** Aborts the association. Idempotent. */
  close(): void {
    if (this.#ended) return;
    this.#sctp.stop().catch(() => undefined);
    this.#ended = true;
  }

  #isSafe(packet: Buffer): boolean {
    return isSafePacket(packet, { established: this.#up, nextTsn: this.#internals.localTsn });
  }

  #connected(): void {
    // A repeated COOKIE ECHO connects once more.
    if (this.#up || this.#ended) return;
    this.#up = true;
    this.#guard(() => this.#handlers.onUp());
  }

  #end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#guard(() => this.#handlers.onDown());
  }

  #fragments(): number {
    let fragments = 0;
    for (const stream in this.#internals.inboundStreams) {
      fragments += this.#internals.inboundStreams[stream]?.reassembly.length ?? 0;
    }
    return fragments;
  }

  /** Keeps a fault of ours out of werift's state, where it would end in the middle of a packet. */
  #guard(call: () => void): void {
    try {
      call();
    } catch {
      this.#fail();
    }
  }

  #fail(): void {
    if (this.#ended) return;
    this.close();
    this.#handlers.onDown();
  }
}
