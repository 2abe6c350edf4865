import {
  type CodecName,
  type FrameAssembler,
  type OrderedPacket,
  PART_BYTES,
  type PayloadReader,
  payloadFormat,
  ReorderBuffer,
  type RtpView,
  TimestampUnwrapper,
  timestampDelta,
} from '@bloom/rtp';
import { TAP_LIMITS, type TapEvent, type TapOptions, type TappedFrame } from '../media-frames.js';
import { VariantSelection } from '../variants/variant-selection.js';
import { BacklogShare } from '../backlog.js';
import type { MediaContext } from '../context.js';
import type { InboundStream, TrackSubscriber } from './inbound-stream.js';
import type { PublishedTrack } from './published-track.js';

const NTP_TO_UNIX_SECONDS = 2208988800;
const TWO_TO_32 = 4294967296;
/** Incomplete pictures whose arrival time is remembered. */
const MAX_ARRIVALS = 64;
/** A source that has been silent for this long gets no key frame requests, ms. */
const SILENT_MS = 1000;

interface TapPacket extends OrderedPacket {
  atMs: number;
}

/**
 * Turns the packets of one track into whole frames for a component. It is a subscriber like any other: the same rules
 * choose its variant (the highest active one) and request keyframes. The packet path only stores packets; frames are
 * delivered on the tick, so that no consumer runs inside the packet path.
 */
export class FrameTap implements TrackSubscriber {
  readonly #context: MediaContext;
  readonly #roomId: string;
  readonly trackId: string;
  readonly #codecs: TapOptions['codecs'];
  readonly #emit: (event: TapEvent) => void;
  readonly selection = new VariantSelection();
  #track: PublishedTrack | undefined;
  #source: InboundStream | undefined;
  #reorder = new ReorderBuffer();
  #timestamps = new TimestampUnwrapper();
  #assembler: FrameAssembler | undefined;
  /** Everything the tap holds, from packets that wait for others to frames held by its consumer. */
  readonly #share: BacklogShare;
  readonly #arrivals = new Map<number, number>();
  readonly #outbox: TapEvent[] = [];
  /** Added to unwrapped RTP timestamps of the current source. */
  #offset = 0;
  #newest = 0;
  #newestAtMs = -1;
  #packetAtMs = 0;
  #switchedAt = -1;
  #lostPackets = 0;
  #droppedFrames = 0;
  #heldFrames = 0;
  #heldBytes = 0;
  #dropping = false;
  #isDropLogged = false;
  #closed = false;
  /** Codec that the consumer does not take; reported with the next tick, since the fallback follows its track. */
  #refused: CodecName | undefined;

  constructor(
    context: MediaContext,
    { roomId, trackId, codecs }: Pick<TapOptions, 'trackId' | 'codecs'> & { roomId: string },
    emit: (event: TapEvent) => void,
  ) {
    this.#context = context;
    this.#roomId = roomId;
    this.trackId = trackId;
    this.#codecs = codecs;
    this.#emit = emit;
    this.#share = new BacklogShare(context.backlog);
    this.selection.setTarget('h');
  }

  /** Takes a track in one of the consumer's codecs; one with a fallback has two chances. */
  attach(track: PublishedTrack): void {
    if (this.#closed || this.#track !== undefined) return;
    const { codec, fallback } = track.params;
    if (!this.#codecs.includes(codec.name)) {
      if (fallback !== true) this.#refused = codec.name;
      return;
    }
    this.#refused = undefined;
    this.#track = track;
    this.#share.moveTo(track.owner.backlog);
    track.addSlot(this);
  }

  /** Releases frames that the consumer has finished with. */
  consumed(frames: number, bytes: number): void {
    this.#heldFrames = Math.max(0, this.#heldFrames - frames);
    this.#heldBytes = Math.max(0, this.#heldBytes - bytes);
    this.#settle();
  }

  requestKeyframe(): void {
    const { wanted } = this.selection;
    if (wanted !== undefined) this.#track?.requestKeyframe(wanted, this.#context.world.now());
  }

  // --- subscriber

  selectionChanged(): void {
    const { queued } = this.selection;
    if (queued !== undefined) this.#track?.requestKeyframe(queued, this.#context.world.now());
  }

  switchTo(stream: InboundStream, view: RtpView, sequence: number, nowMs: number): void {
    if (!this.selection.keyframe(stream.variant)) return;
    this.#source?.removeSubscriber(this);
    if (this.#source !== undefined) this.#finishSource();
    this.#source = stream;
    this.#reorder = new ReorderBuffer();
    this.#timestamps = new TimestampUnwrapper();
    const { name, clockRate } = this.#track!.params.codec;
    this.#assembler = payloadFormat(name).createAssembler();
    const elapsed = this.#newestAtMs < 0 ? 0 : Math.max(1, Math.round(((nowMs - this.#newestAtMs) * clockRate) / 1000));
    this.#offset = this.#newest + elapsed - this.#timestamps.unwrap(view.timestamp);
    this.#switchedAt = sequence;
    stream.addSubscriber(this);
  }

  forward(view: RtpView, _payload: PayloadReader, sequence: number, _audioLevel: number, nowMs: number): void {
    const timestamp = this.#timestamps.unwrap(view.timestamp);
    const bytes = view.payloadLength + PART_BYTES;
    if (!this.#share.fits(bytes)) return this.#refuse();
    this.#share.add(bytes);
    const payload = Buffer.from(view.buffer.subarray(view.payloadStart, view.payloadEnd));
    this.#packetAtMs = nowMs;
    const packet: TapPacket = { sequence, timestamp, marker: view.marker, payload, atMs: nowMs };
    this.#reorder.push(packet, nowMs);
  }

  /** Drops the picture in progress and all later ones up to a key picture; holding them would keep the backlog full. */
  #refuse(): void {
    this.#reorder = new ReorderBuffer();
    this.#assembler?.gap();
    this.#settle();
    if (this.#dropping) return;
    this.#dropping = true;
    this.#dropped();
  }

  catchUp(stream: InboundStream, first: number, nowMs: number): void {
    if (this.#switchedAt !== first) return;
    this.#switchedAt = -1;
    const { storedView } = this.#context;
    const { store } = stream;
    for (let sequence = Math.max(first + 1, stream.oldestStored); sequence <= stream.newest; sequence++) {
      if (!store.find(sequence, nowMs) || !storedView.parse(store.buffer, store.start, store.end)) continue;
      this.forward(storedView, stream.storedPayload, sequence, -1, nowMs);
    }
  }

  skip(sequence: number): void {
    const empty: TapPacket = { sequence, timestamp: 0, marker: false, payload: Buffer.alloc(0), atMs: 0 };
    this.#reorder.push(empty, this.#context.world.now());
  }

  sourceReplaced(old: InboundStream): void {
    old.removeSubscriber(this);
    if (this.#source === old) {
      this.#finishSource();
      this.#source = undefined;
    }
    this.selection.sourceReplaced(old.variant);
    this.selectionChanged();
  }

  trackGone(): void {
    this.#source?.removeSubscriber(this);
    this.#finishSource();
    this.#source = undefined;
    this.#track = undefined;
    this.selection.reset();
    this.#outbox.push({ type: 'ended' });
  }

  fault(error: unknown): void {
    this.#context.world.log.error('media.tap_fault', { roomId: this.#roomId, trackId: this.trackId, error });
  }

  // --- delivery

  /** Delivers what is in order. Called about every 20 ms. */
  tick(nowMs: number): void {
    if (this.#closed) return;
    if (this.#refused !== undefined) {
      this.#context.world.log.warn('media.tap_codec_refused', {
        roomId: this.#roomId,
        trackId: this.trackId,
        codec: this.#refused,
      });
      this.#refused = undefined;
    }
    if (this.#source !== undefined) this.#drain(nowMs);
    if (nowMs - this.#packetAtMs < SILENT_MS && this.#needsKeyframe()) this.requestKeyframe();
    this.#flush();
  }

  /** Delivers everything received so far and stops. Idempotent. */
  close(): void {
    if (this.#closed) return;
    this.#finishSource();
    this.#flush();
    this.#closed = true;
    this.#source?.removeSubscriber(this);
    this.#source = undefined;
    this.#track?.removeSlot(this);
    this.#track = undefined;
    this.#share.set(0);
  }

  /** Returns true only once the source has started; before that the selection requests keyframes. */
  #needsKeyframe(): boolean {
    if (this.#source === undefined || this.selection.queued !== undefined) return false;
    if (this.#dropping) return this.#hasRoom;
    return this.#assembler?.needsKeyframe === true;
  }

  /** With room for no more than a frame or two, a key frame would be dropped as well. */
  get #hasRoom(): boolean {
    if (this.#heldFrames >= TAP_LIMITS.frames / 2 || this.#heldBytes >= TAP_LIMITS.bytes / 2) return false;
    return this.#share.fitsPicture;
  }

  #flush(): void {
    for (const event of this.#outbox.splice(0)) this.#emit(event);
  }

  #finishSource(): void {
    this.#drain(Number.POSITIVE_INFINITY);
    this.#arrivals.clear();
  }

  #drain(nowMs: number): void {
    this.#reorder.drain(nowMs, this.#sorted);
    this.#settle();
  }

  #settle(): void {
    const picture = this.#assembler?.heldBytes ?? 0;
    this.#share.set(this.#reorder.heldBytes + picture + this.#heldBytes + this.#heldFrames * PART_BYTES);
  }

  readonly #sorted = {
    packet: (packet: OrderedPacket): void => this.#inOrder(packet as TapPacket),
    gap: (missing: number): void => {
      this.#lostPackets += missing;
      this.#assembler?.gap();
    },
  };

  #inOrder(packet: TapPacket): void {
    // Padding belongs to no frame.
    if (packet.payload.length === 0) return;
    if (!this.#arrivals.has(packet.timestamp)) {
      if (this.#arrivals.size >= MAX_ARRIVALS) this.#arrivals.clear();
      this.#arrivals.set(packet.timestamp, packet.atMs);
    }
    for (const { timestamp, key, data } of this.#assembler!.push(packet))
      this.#frame(timestamp, key, data, packet.atMs);
  }

  #frame(rtpTimestamp: number, key: boolean, data: Buffer, nowMs: number): void {
    const arrivalMs = this.#arrivals.get(rtpTimestamp) ?? nowMs;
    this.#arrivals.delete(rtpTimestamp);
    if (!this.#mayHold(key, data.length)) {
      this.#dropped();
      return;
    }
    const timestamp = rtpTimestamp + this.#offset;
    // A jump of the publisher's clock must not move time backwards.
    this.#newest = Math.max(this.#newest, timestamp);
    this.#newestAtMs = nowMs;
    if (this.#lostPackets > 0 || this.#droppedFrames > 0) {
      const lostPackets = this.#lostPackets;
      const droppedFrames = this.#droppedFrames;
      this.#outbox.push({ type: 'gap', lostPackets, droppedFrames });
      this.#lostPackets = 0;
      this.#droppedFrames = 0;
    }
    this.#heldFrames++;
    this.#heldBytes += data.length;
    const senderMs = this.#senderTime(rtpTimestamp);
    const frame: TappedFrame = {
      codec: this.#track!.params.codec.name,
      ssrc: this.#source!.ssrc,
      timestamp,
      key,
      data,
      arrivalMs,
      ...(senderMs === undefined ? {} : { senderMs }),
    };
    this.#outbox.push({ type: 'frame', frame });
  }

  #mayHold(key: boolean, bytes: number): boolean {
    const full = this.#heldFrames >= TAP_LIMITS.frames || this.#heldBytes + bytes > TAP_LIMITS.bytes;
    if (full) this.#dropping = true;
    else if (this.#dropping && key) this.#dropping = false;
    return !this.#dropping;
  }

  #dropped(): void {
    this.#droppedFrames++;
    this.#context.dropped.tap_overrun++;
    if (!this.#isDropLogged) this.#context.world.log.warn('media.tap_dropped', { trackId: this.trackId });
    this.#isDropLogged = true;
  }

  #senderTime(rtpTimestamp: number): number | undefined {
    const { senderInfo, world } = this.#context;
    const { clockRate } = this.#track!.params.codec;
    if (this.#source === undefined || !this.#source.clock.report(world.now(), senderInfo)) return undefined;
    const seconds = (senderInfo.ntpSeconds - NTP_TO_UNIX_SECONDS + TWO_TO_32) % TWO_TO_32;
    const atMs = seconds * 1000 + (senderInfo.ntpFraction * 1000) / TWO_TO_32;
    return atMs - (timestampDelta(rtpTimestamp % TWO_TO_32, senderInfo.rtpTimestamp) * 1000) / clockRate;
  }
}
