import { SCTP } from 'werift-sctp';
import type { ChannelKind } from './dcep.js';
import { isSafePacket, MAX_GAP_SPAN, MAX_STREAMS } from './sctp-packet.js';
import { mendSctp, type SctpInternals } from './mended-sctp.js';
import { type StreamResetHandlers, StreamResets } from './stream-resets.js';
import { DONE, receiveData, receiveSack, sendMessage, transmitQuickly, writeQuickly } from './sctp-fast-path.js';

/** Receive window in bytes: what the client may send beyond what we have read. */
const RECEIVE_WINDOW = 256 * 1024;
/** Bound on the fragments of incomplete messages: their objects take more memory than their bytes. */
const MAX_FRAGMENTS = 2_048;
/** Bound on unacknowledged packets: messages, which `hasRoom` limits, and channel acknowledgements. */
const MAX_KEPT = 3_072;
const SCTP_PORT = 5_000;

export interface AssociationHandlers extends StreamResetHandlers {
  /** Sends one SCTP packet of at most 1,228 bytes. The buffer is only valid during the call. */
  send(packet: Buffer): void;
  onUp(): void;
  /** Takes one message, possibly as a view. */
  onMessage(stream: number, protocol: number, data: Buffer): void;
  /** Called when further messages can be sent. */
  onRoom(): void;
  /** Called at most once, when the association ends without a call of `close`. */
  onDown(cause: DownCause): void;
}

/** `client`: it ended the association or no longer answers; `limit`: it exceeded one. */
export type DownCause = 'client' | 'limit';

/**
 * One of werift's SCTP associations over DTLS (RFC 8261), with bounds: packets are checked before werift sees them,
 * werift holds at most one message beyond the congestion window, and no input makes the association throw. The client
 * initiates it.
 */
export class Association {
  readonly #handlers: AssociationHandlers;
  readonly #sctp: SCTP;
  readonly #internals: SctpInternals;
  readonly #resets: StreamResets;
  /** True while werift processes a packet, which it does chunk by chunk in later promise steps. */
  #isTaking = false;
  /** Packets that arrived during `#isTaking`; at most those of one event loop turn. */
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

  /** True when werift can take another message. Its queue stays empty: werift scans it for each packet it sends. */
  get hasRoom(): boolean {
    return this.isUp && this.#sctp.outboundQueue.length === 0 && this.#internals.sentQueue.length < MAX_GAP_SPAN / 2;
  }

  /** Takes one SCTP packet. Returns false if it was dropped. */
  receive(packet: Buffer): boolean {
    if (this.#ended || !this.#isSafe(packet)) return false;
    if (!this.#isTaking) return this.#take(packet);
    // Processing it now would let it overtake the rest of the previous packet, and our SACK would report that as lost.
    this.#behind.push(packet);
    return true;
  }

  #take(packet: Buffer): boolean {
    if (receiveSack(this.#internals, packet)) return true;
    if (receiveData(this.#internals, packet)) return this.#isWithinBounds();
    this.#isTaking = true;
    // Fails on a wrong checksum or an unreadable field. DTLS authenticated the packet, so the client is at fault.
    const taken = this.#internals.handleData(packet).catch(() => undefined);
    void taken.then(() => this.#guard(() => this.#taken()));
    return this.#isWithinBounds();
  }

  /** Processes packets that arrived in the meantime. Rechecks them: the last packet may have changed what is safe. */
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

  /** Sends a message. Ends the association when the client acknowledges nothing and too much is queued. */
  send(stream: number, protocol: number, data: Buffer, kind: ChannelKind): void {
    if (this.#sctp.outboundQueue.length + this.#internals.sentQueue.length > MAX_KEPT) return this.#fail();
    sendMessage(this.#internals, stream, protocol, data, kind);
  }

  /** Resets the stream, which closes its channel (RFC 8831 section 6.7). */
  reset(stream: number): void {
    if (this.isUp) this.#resets.reset(stream);
  }

  /** Treats our pending reset as done: the client uses the stream again, so only its response is missing. */
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
    // A repeated COOKIE ECHO reports the connection a second time.
    if (this.#up || this.#ended) return;
    this.#up = true;
    this.#guard(() => this.#handlers.onUp());
  }

  #end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#guard(() => this.#handlers.onDown('client'));
  }

  #fragments(): number {
    let fragments = 0;
    for (const stream in this.#internals.inboundStreams) {
      fragments += this.#internals.inboundStreams[stream]?.reassembly.length ?? 0;
    }
    return fragments;
  }

  /** Keeps our own exceptions out of werift, where they would interrupt the processing of a packet. */
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
    this.#handlers.onDown('limit');
  }
}
