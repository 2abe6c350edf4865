import {
  type OutboundHeader,
  type RedWriter,
  type RtpView,
  SendHistory,
  timestampDelta,
  writeRtxPrefix,
} from '@bloom/rtp';
import type { SealStream } from '@bloom/webrtc';
import type { TrackKind } from '../media-frames.js';
import type { MediaContext } from '../context.js';
import type { InboundStream } from './inbound-stream.js';
import type { SlotReceiver } from './slot-receiver.js';
import type { PublishedTrack } from './published-track.js';
import type { SlotNumbering } from './slot-numbering.js';

/** Bit of the numbers in the send history: the packet was sent with a marker that the source lacks. */
export const MARKED = 0x8000_0000 | 0;

/** Number in the send history for the source of an empty packet. */
const EMPTY = -1;

const PADDING = Buffer.alloc(255).fill(255, 254);

/** Headers of retransmissions and padding. */
interface RepairHeaders {
  /** SSRC of the retransmission stream. */
  ssrc: number;
  /** True if payload headers are rewritten for each receiver. */
  rewrites: boolean;
  /** Undefined if the client does not take redundancy. */
  red: RedWriter | undefined;
  again: OutboundHeader;
  rtx: OutboundHeader | undefined;
}

/** Sends everything of one slot except its media: retransmissions, empty packets, and padding for probes. */
export class SlotRepair {
  readonly #context: MediaContext;
  retransmitted = 0;
  paddingPackets = 0;
  paddingBytes = 0;
  readonly history: SendHistory;
  readonly #receiver: SlotReceiver;
  readonly #numbering: SlotNumbering;
  #headers!: RepairHeaders;
  readonly #kind: TrackKind;
  /** Timestamp of the last key picture as the client gets it; -1 = none. */
  keyTimestamp = -1;
  #rtxStream: SealStream | undefined;

  constructor(context: MediaContext, options: { receiver: SlotReceiver; numbering: SlotNumbering; kind: TrackKind }) {
    this.#context = context;
    this.#receiver = options.receiver;
    this.#numbering = options.numbering;
    this.#kind = options.kind;
    this.history = new SendHistory(options.kind === 'video' ? 1024 : 64);
  }

  update(headers: RepairHeaders): void {
    this.#headers = headers;
  }

  /** Reads a packet from a publisher's store into the context's `storedView` and the stream's `storedPayload`. */
  readStored(stream: InboundStream, sequence: number, nowMs: number): boolean {
    const { storedView } = this.#context;
    const isRead = this.#headers.rewrites || stream.layers !== undefined;
    if (isRead) return stream.readStored(storedView, sequence, nowMs);
    const { store } = stream;
    return store.find(sequence, nowMs) && storedView.parse(store.buffer, store.start, store.end);
  }

  /**
   * Sends an empty packet in place of one that is left out and comes late, when packets after it have been sent. The
   * receiver would wait for its number, which has just been mapped; where pictures have no numbers, until the next key
   * picture. `media` is the slot's own stream, `source` the id of the publisher's.
   */
  fillGap(media: SealStream | undefined, header: OutboundHeader, view: RtpView, source: number, nowMs: number): void {
    const { mapper } = this.#numbering;
    const { sealer } = this.#context;
    this.history.record(mapper.sequence, source, EMPTY, mapper.timestamp, 0);
    const at = sealer.reserve();
    if (at < 0 || media === undefined) return;
    const transportSequence = this.#receiver.nextTransportSequence(header.hasTransportSequence);
    const length = header.write(sealer.arena, at, false, mapper.sequence, mapper.timestamp, transportSequence);
    if (!sealer.commit(media, length, 0, view.payloadLength, mapper.sequence)) return;
    this.#receiver.packetSent(length, transportSequence >= 0, nowMs);
    this.#numbering.packetsSent++;
  }

  /** Resends the packet that was sent under this 16-bit number; `media` is the slot's own stream. */
  resend(track: PublishedTrack, media: SealStream | undefined, sequence16: number, nowMs: number): void {
    const { history } = this;
    const context = this.#context;
    const receiver = this.#receiver;
    if (!history.find(sequence16)) return;
    if (history.sourceSequence === EMPTY) return this.#resendEmpty(media, nowMs);
    const from = track.streamById(history.source);
    // The order matters: a packet that the budget does not allow must not count as sent.
    if (from === undefined || !this.#mayResend(nowMs)) return;
    if (!this.readStored(from, history.sourceSequence, nowMs)) return;
    const view = context.storedView;
    const { rtx, again, red, rewrites } = this.#headers;
    const repeated = rewrites || rtx !== undefined ? 0 : history.numbers & ~MARKED;
    // A number may be used again only for the same bytes, including those of the packets that it repeated.
    if (repeated > 0 && red?.find(from.store, view, history.sourceSequence, repeated, nowMs) !== repeated) return;
    receiver.repairs.spend(view.payloadLength);
    const stream = rtx === undefined ? media : this.#openRtxStream();
    if (stream === undefined) return;
    const { sealer } = context;
    const { arena } = sealer;
    sealer.begin(view.buffer, view.payloadStart, view.payloadEnd);
    const at = sealer.reserve();
    if (at >= 0) {
      const header = rtx ?? again;
      const transportSequence = receiver.nextTransportSequence(header.hasTransportSequence);
      const sequence = rtx === undefined ? history.sequence : this.#numbering.rtxSequence++;
      header.copyDescriptor(view, from.descriptors.id);
      const marker = view.marker || (history.numbers & MARKED) !== 0;
      const headerLength = header.write(arena, at, marker, sequence, history.timestamp, transportSequence);
      let prefix = rtx === undefined ? 0 : writeRtxPrefix(arena, at + headerLength, history.sequence);
      let skip = 0;
      if (rewrites) {
        prefix += from.storedPayload.write(arena, at + headerLength + prefix, history.numbers);
        skip = from.storedPayload.headerLength;
      } else if (repeated > 0) {
        prefix = red!.write(from.store, arena, at, headerLength);
      }
      if (sealer.commit(stream, headerLength, prefix, skip, sequence)) {
        receiver.packetSent(headerLength + view.payloadLength - skip + prefix, transportSequence >= 0, nowMs);
        this.retransmitted++;
      }
    }
    sealer.end();
  }

  /** Returns whether the packet that the history has found may be resent, and marks it as resent. */
  #mayResend(nowMs: number): boolean {
    const { history } = this;
    const { repairs, roundTripMs } = this.#receiver;
    const isOld = this.keyTimestamp >= 0 && timestampDelta(history.timestamp, this.keyTimestamp) > 0;
    return repairs.isLeftFor(this.#kind, isOld) && history.mayResend(nowMs, roundTripMs);
  }

  /** Resends the packet that the history has found, which is an empty one. */
  #resendEmpty(media: SealStream | undefined, nowMs: number): void {
    const { history } = this;
    const receiver = this.#receiver;
    if (!this.#mayResend(nowMs)) return;
    receiver.repairs.spend(0);
    const { rtx, again } = this.#headers;
    const stream = rtx === undefined ? media : this.#openRtxStream();
    if (stream === undefined) return;
    const { sealer } = this.#context;
    const { arena } = sealer;
    sealer.begin(PADDING, 0, 0);
    const at = sealer.reserve();
    if (at >= 0) {
      const header = rtx ?? again;
      const transportSequence = receiver.nextTransportSequence(header.hasTransportSequence);
      const sequence = rtx !== undefined ? this.#numbering.rtxSequence++ : history.sequence;
      const headerLength = header.write(arena, at, false, sequence, history.timestamp, transportSequence);
      const prefix = rtx === undefined ? 0 : writeRtxPrefix(arena, at + headerLength, history.sequence);
      if (sealer.commit(stream, headerLength, prefix, 0, sequence)) {
        receiver.packetSent(headerLength + prefix, transportSequence >= 0, nowMs);
        this.retransmitted++;
      }
    }
    sealer.end();
  }

  /** False without a retransmission stream. */
  get canPad(): boolean {
    return this.#headers.rtx !== undefined;
  }

  /** Sends one padding packet on the retransmission stream. Returns the bytes sent, or 0 if there is no such stream. */
  sendPadding(nowMs: number): number {
    const { rtx } = this.#headers;
    if (rtx === undefined || !this.#numbering.mapper.started) return 0;
    const stream = this.#openRtxStream();
    if (stream === undefined) return 0;
    const { sealer } = this.#context;
    let sent = 0;
    sealer.begin(PADDING, 0, PADDING.length);
    const at = sealer.reserve();
    if (at >= 0) {
      const transportSequence = this.#receiver.nextTransportSequence(rtx.hasTransportSequence);
      const { timestamp } = this.#numbering.mapper;
      const sequence = this.#numbering.rtxSequence++;
      const headerLength = rtx.write(sealer.arena, at, false, sequence, timestamp, transportSequence);
      // Padding bit; the last payload byte holds the length of the padding.
      sealer.arena[at]! |= 0x20;
      if (sealer.commit(stream, headerLength, 0, 0, sequence)) {
        sent = headerLength + PADDING.length;
        this.#receiver.packetSent(sent, transportSequence >= 0, nowMs);
        this.paddingPackets++;
        this.paddingBytes += PADDING.length;
      }
    }
    sealer.end();
    return sent;
  }

  #openRtxStream(): SealStream | undefined {
    this.#rtxStream ??= this.#receiver.openStream(this.#headers.ssrc);
    return this.#rtxStream;
  }

  close(): void {
    if (this.#rtxStream !== undefined) this.#receiver.closeStream(this.#rtxStream);
    this.#rtxStream = undefined;
  }
}
