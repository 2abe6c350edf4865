import {
  type AnnouncedParts,
  DependencyDescriptors,
  InsertedPackets,
  LossTracker,
  PacketStore,
  type PayloadFormat,
  type PayloadReader,
  ReceiveStatistics,
  type RedReader,
  RtpView,
  SenderClock,
  SequenceUnwrapper,
  timestampDelta,
} from '@bloom/rtp';
import type { Allowance } from '@bloom/time';
import { KeyframeRequests } from './keyframe-requests.js';
import type { Variant } from '../media-engine.js';
import type { TrackKind } from '../media-frames.js';
import { LayerRates } from '../variants/layer-rates.js';
import type { VariantSelection } from '../variants/variant-selection.js';
import { variantIndex } from '../variants/variants.js';
import { SmoothedRate } from './smoothed-rate.js';

const STORE = {
  // Two seconds at 2 Mbit/s. Pages of a slower stream are never touched.
  video: { packets: 1024, bytes: 640 * 1024, maxAgeMs: 2000 },
  audio: { packets: 128, bytes: 48 * 1024, maxAgeMs: 1000 },
  /** Video of a publisher whose stores hold `MAX_STORE_BYTES`. */
  crowded: { packets: 256, bytes: 96 * 1024, maxAgeMs: 2000 },
} as const;

/**
 * Total bytes in the stores of one publisher's streams above which further stores are small. Calls need a tenth of it.
 */
const MAX_STORE_BYTES = 16 * 1024 * 1024;

/** Weight of the last second in the measured rate: a single keyframe must not look like a rate. */
const RATE_SMOOTHING = 0.25;

/**
 * How many packets to search back from a slice. Parameter sets come first in a picture, so a slice this deep in a
 * picture starts nothing.
 */
const MAX_LOOK_BACK = 32;

/** Pictures that must precede an earlier one in display order before a stream counts as having B-frames. */
const REORDERED_PICTURES = 3;
/** Farthest that a B-frame steps back, in 90 kHz units; a larger step means that the clock was set. */
const MAX_REORDER = 90_000;

/** A stream whose last packet is older than this, ms, may be taken over by the source that it replaced. */
const FLOWING_MS = 500;

/** Restored packets that are remembered: more than the 128 within which SRTP takes an original that comes late. */
const RESTORED = 256;

interface InboundStreamOptions {
  variant: Variant;
  kind: TrackKind;
  clockRate: number;
  format: PayloadFormat;
  /** True if packets of the stream's upper layers may be left out. */
  mayBeLayered: boolean;
  ssrc: number;
  /** Id of the dependency descriptor's header extension. */
  descriptorId: number | undefined;
  /** Identifies the stream in the subscribers' send histories, 0..255. */
  id: number;
  openedMs: number;
  /** Parts of key frames that the sender may omit from its packets. */
  announced: AnnouncedParts | undefined;
  /** Bytes in the stores of the publisher's other streams. */
  storeBytes: number;
}

/** Receives the packets of a published track: a slot of a client, or the tap of a component. */
export interface TrackSubscriber {
  readonly selection: VariantSelection;
  /** The client to notify of voice activity; absent for a tap. */
  readonly receiver?: { readonly peerId: string };
  /** Must be called after anything that may have changed the selection. */
  selectionChanged(): void;
  /** Starts with the packet in `view` and in the stream's `payload`, an entry point; the caller forwards it next. */
  switchTo(stream: InboundStream, view: RtpView, sequence: number, nowMs: number): void;
  /** Forwards one packet of the current source. `audioLevel` is -1 if there is none. */
  forward(view: RtpView, payload: PayloadReader, sequence: number, audioLevel: number, nowMs: number): void;
  /** Forwards the packet that was `InboundStream.openEnd`, if the subscriber has waited for the one after it. */
  forwardEnd?(view: RtpView, payload: PayloadReader, sequence: number, nowMs: number): void;
  /**
   * Sends the packets at and after the switch point that arrived before the packet we switched at: they are in the
   * store.
   */
  catchUp(stream: InboundStream, first: number, nowMs: number): void;
  /** Skips a packet of the current source that carries no media. */
  skip(sequence: number): void;
  sourceReplaced(old: InboundStream): void;
  trackGone(): void;
  fault(error: unknown): void;
}

/** Carries the packets of one variant to another worker. */
export interface PacketCrossing {
  forward(view: RtpView, sequence: number): void;
  /** Skips a packet that carries no media. */
  skip(view: RtpView, sequence: number): void;
}

/** One variant of a published track as it arrives: one SSRC with its retransmission stream. Bookkeeping only. */
export class InboundStream {
  readonly variant: Variant;
  readonly index: number;
  readonly id: number;
  readonly ssrc: number;
  rtxSsrc = -1;
  readonly descriptors: DependencyDescriptors;
  /** The payload of the packet being received. */
  readonly payload: PayloadReader;
  /** The payload of a packet read from the store. */
  readonly storedPayload: PayloadReader;
  /** Follows the sender's numbers; all other numbers are ours. */
  readonly unwrapper = new SequenceUnwrapper();
  announced: AnnouncedParts | undefined;
  /** Absent if subscribers always get the whole stream. */
  readonly layers: LayerRates | undefined;
  /** Present once packets may be inserted: then our sequence numbers differ from the sender's. */
  inserted: InsertedPackets | undefined;
  insertedMs = Number.NEGATIVE_INFINITY;
  /** Present once packets repeat earlier ones. */
  redundancy: RedReader | undefined;
  readonly losses: LossTracker;
  readonly statistics: ReceiveStatistics;
  readonly store: PacketStore;
  readonly clock: SenderClock;
  readonly keyframes = new KeyframeRequests();
  /** Subscribers that currently receive this variant. */
  readonly forwarding: TrackSubscriber[] = [];
  /**
   * Limits how often a source that the SDP does not name replaces this variant's source. Created with the first one.
   */
  replacements: Allowance | undefined;
  /** The newest packet if only the next one tells whether its picture goes on; otherwise -1. */
  openEnd = -1;
  /** True once media has arrived; before that the SDP only announces the stream. */
  started = false;

  readonly #openedMs: number;
  readonly #format: PayloadFormat;
  /** Reads the packet after one that is sent. Created with the first one. */
  #next: { view: RtpView; payload: PayloadReader } | undefined;
  readonly #storedPackets: number;
  readonly #rate = new SmoothedRate(RATE_SMOOTHING);
  /** Received, and forwarded to nobody. */
  #unneededBytes = 0;

  /** Our numbers of the packets restored last, each at its remainder. */
  #restored: Float64Array | undefined;
  #lastTimestamp = -1;
  #reordered = 0;
  lastKeyframeTimestamp = -1;
  /** Timestamp of the key picture before that, whose packets may still wait to be sent. */
  #keyframeBefore = -1;
  markers = 0;
  keyframeCount = 0;
  nacks = 0;
  plis = 0;
  rtxPackets = 0;
  rtxBytes = 0;
  /** Lost packets that later ones repeated. */
  recovered = 0;
  firSequence = 0;

  constructor(options: InboundStreamOptions) {
    this.variant = options.variant;
    this.index = variantIndex(options.variant);
    this.id = options.id;
    this.#openedMs = options.openedMs;
    this.announce(options.announced);
    this.ssrc = options.ssrc;
    this.descriptors = new DependencyDescriptors(options.descriptorId);
    this.#format = options.format;
    this.payload = options.format.createReader(this.descriptors);
    this.storedPayload = options.format.createReader(this.descriptors);
    this.layers = options.mayBeLayered ? new LayerRates() : undefined;
    this.losses = new LossTracker({ maxMissing: options.kind === 'video' ? 512 : 64 });
    this.statistics = new ReceiveStatistics(options.clockRate);
    const isCrowded = options.kind === 'video' && options.storeBytes >= MAX_STORE_BYTES;
    const limits = STORE[isCrowded ? 'crowded' : options.kind];
    this.store = new PacketStore(limits);
    this.#storedPackets = limits.packets;
    this.clock = new SenderClock(options.clockRate);
  }

  /** Takes over the parts that a new offer announces. */
  announce(parts: AnnouncedParts | undefined): void {
    this.announced = parts;
    if (parts !== undefined) this.inserted ??= new InsertedPackets();
  }

  /** Counts a picture with its last packet, which is in `payload`. */
  countPicture(): void {
    this.markers++;
    this.layers?.countPicture(this.payload);
  }

  /** Newest sequence number. */
  get newest(): number {
    return this.oursOf(this.unwrapper.newest);
  }

  /** Remembers that this packet came by a retransmission, or was repeated by a later one. */
  markRestored(sequence: number): void {
    this.#restored ??= new Float64Array(RESTORED).fill(-1);
    this.#restored[sequence % RESTORED] = sequence;
  }

  /** Returns whether viewers have this packet: its number must never be used for another payload. */
  wasRestored(sequence: number): boolean {
    return this.#restored?.[sequence % RESTORED] === sequence;
  }

  /** Returns whether this is the timestamp of one of the last two key pictures. */
  isKeyPicture(timestamp: number): boolean {
    return timestamp === this.lastKeyframeTimestamp || timestamp === this.#keyframeBefore;
  }

  /** Counts a key picture. */
  countKeyframe(timestamp: number): void {
    this.#keyframeBefore = this.lastKeyframeTimestamp;
    this.lastKeyframeTimestamp = timestamp;
    this.keyframeCount++;
  }

  /** Returns our number of the sender's packet with this unwrapped number. */
  oursOf(number: number): number {
    return this.inserted === undefined ? number : this.inserted.oursOf(number);
  }

  /** Number of the oldest packet that may still be in the store. */
  get oldestStored(): number {
    return this.newest - this.#storedPackets + 1;
  }

  /** Returns true if media arrived recently, or has not had time to arrive. */
  isFlowing(nowMs: number): boolean {
    if (nowMs - this.#openedMs < FLOWING_MS) return true;

    return this.started && this.store.find(this.newest, nowMs, FLOWING_MS);
  }

  /** Received bitrate, bits per second, smoothed over some seconds. */
  get measuredBps(): number {
    return this.#rate.bps;
  }

  /** Measures the bitrate. Must be called at a steady interval. */
  measure(intervalMs: number): void {
    this.#rate.measure(this.statistics.bytes - this.#unneededBytes, intervalMs);
  }

  /** Reads a packet into `payload`, without what no receiver needs. Returns false if it is malformed. */
  read(view: RtpView): boolean {
    const bytes = view.payloadLength;
    const isRead = this.payload.read(view);
    this.#unneededBytes += bytes - view.payloadLength;
    return isRead;
  }

  /** Reads a packet of the store into `view` and `storedPayload`. Returns false if it is not there. */
  readStored(view: RtpView, sequence: number, nowMs: number): boolean {
    const { store } = this;
    return (
      store.find(sequence, nowMs) && view.parse(store.buffer, store.start, store.end) && this.storedPayload.read(view)
    );
  }

  /**
   * Returns the spatial layer of the packet after this one, `Infinity` if it is of another picture than that with this
   * timestamp, and -1 if it has not arrived.
   */
  layerAfter(sequence: number, timestamp: number, nowMs: number): number {
    const { store } = this;
    this.#next ??= { view: new RtpView(), payload: this.#format.createReader(this.descriptors) };
    const { view, payload } = this.#next;
    if (!store.find(sequence + 1, nowMs) || !view.parse(store.buffer, store.start, store.end)) return -1;
    if (view.timestamp !== timestamp) return Infinity;
    return payload.read(view) ? payload.spatialLayer : -1;
  }

  /** Returns true while earlier packets of the picture are missing, or if this one is too deep in it to tell. */
  missesBefore(sequence: number, timestamp: number, nowMs: number): boolean {
    const end = sequence - MAX_LOOK_BACK;
    for (let before = sequence - 1; before >= end && !this.losses.isMissing(before); before--) {
      if (!this.store.find(before, nowMs)) return false;
      if (this.store.buffer.readUInt32BE(this.store.start + 4) !== timestamp) return false;
    }
    return true;
  }

  /**
   * Records the timestamp of the newest video packet. Returns true once, when pictures have been sent in a different
   * order than they are shown: WebRTC receivers show them as they arrive.
   */
  hasBFrames(timestamp: number): boolean {
    const behind = this.#lastTimestamp < 0 ? 0 : timestampDelta(timestamp, this.#lastTimestamp);
    this.#lastTimestamp = timestamp;
    if (behind <= 0 || behind > MAX_REORDER) return false;
    this.#reordered += 1;

    return this.#reordered === REORDERED_PICTURES;
  }

  addSubscriber(slot: TrackSubscriber): void {
    if (!this.forwarding.includes(slot)) this.forwarding.push(slot);
  }

  removeSubscriber(slot: TrackSubscriber): void {
    const at = this.forwarding.indexOf(slot);
    if (at >= 0) this.forwarding.splice(at, 1);
  }
}
