import { type AnnouncedParts, restoreRtx } from '@bloom/rtp';
import type { MediaContext } from '../context.js';
import type { InboundTrack } from '../media-engine.js';
import type { InboundStream } from './inbound-stream.js';

/** Fixed part of an RTP header, bytes. */
const FIXED_HEADER = 12;
/**
 * Minimum time between two insertions, ms: every viewer gets the inserted packets, however little the publisher sends.
 */
const INSERT_INTERVAL_MS = 100;

/** How many packets a retransmission may be ahead of the media: the end of a burst that was lost. */
const MAX_RTX_LEAD = 32;

/** A published track, as far as its packets matter. */
interface IntakeTrack {
  readonly params: InboundTrack;
  /** Takes the packet in the context's view under its number. */
  accept(stream: InboundStream, sequence: number, nowMs: number): void;
}

/** Numbers the packets of a published track, with what its sender leaves out or sends again. */
export class PacketIntake {
  readonly #context: MediaContext;
  readonly #track: IntakeTrack;
  readonly #restored = { ssrc: 0, payloadType: 0 };

  constructor(context: MediaContext, track: IntakeTrack) {
    this.#context = context;
    this.#track = track;
  }

  /** Takes the media packet in `context.view`. */
  receive(stream: InboundStream, nowMs: number): void {
    const { view } = this.#context;
    if (stream.announced !== undefined) this.#insertMissing(stream, stream.announced, nowMs);
    const number = stream.unwrapper.unwrap(view.sequence);
    const sequence = stream.oursOf(number);
    stream.losses.received(sequence, nowMs);
    stream.statistics.received(number, view.timestamp, view.payloadLength, nowMs);
    if (stream.wasRestored(sequence)) return;
    this.#track.accept(stream, sequence, nowMs);
  }

  /** Inserts the parts that the key frame starting in `context.view` lacks, as a packet of their own. */
  #insertMissing(stream: InboundStream, announced: AnnouncedParts, nowMs: number): void {
    const { view } = this.#context;
    const part = announced.missingBefore(view);
    if (part === undefined || stream.inserted === undefined || nowMs - stream.insertedMs < INSERT_INTERVAL_MS) return;
    const number = stream.unwrapper.peek(view.sequence);
    // Packets after a late one already have their numbers.
    if (number <= stream.unwrapper.newest) return;
    stream.insertedMs = nowMs;
    const { buffer, start, end } = view;
    const packet = Buffer.alloc(FIXED_HEADER + part.length);
    buffer.copy(packet, 0, start, start + FIXED_HEADER);
    packet[0] = 0x80;
    packet[1] = view.payloadType;
    part.copy(packet, FIXED_HEADER);
    if (view.parse(packet)) {
      const sequence = stream.inserted.insertBefore(number);
      stream.losses.received(sequence, nowMs);
      this.#track.accept(stream, sequence, nowMs);
    }
    view.parse(buffer, start, end);
  }

  /** Takes the retransmission stream's packet in `context.view`. Probes and duplicates are not media. */
  receiveRtx(stream: InboundStream, nowMs: number): void {
    const { view } = this.#context;
    stream.rtxPackets++;
    stream.rtxBytes += view.payloadLength;
    if (!stream.started) return;
    this.#restored.ssrc = stream.ssrc;
    this.#restored.payloadType = this.#track.params.codec.payloadType;
    if (!restoreRtx(view, this.#restored)) return;
    // A number far ahead would make everything after it late, so viewers would get nothing.
    if (stream.unwrapper.peek(view.sequence) - stream.unwrapper.newest > MAX_RTX_LEAD) return;
    const before = stream.losses.recovered;
    const { newest } = stream;
    const sequence = stream.oursOf(stream.unwrapper.unwrap(view.sequence));
    stream.losses.received(sequence, nowMs);
    if (sequence <= newest && stream.losses.recovered === before) return;
    stream.statistics.repaired(view.payloadLength);
    stream.markRestored(sequence);
    this.#track.accept(stream, sequence, nowMs);
  }
}
