import {
  LossTracker,
  PacketStore,
  type PayloadFormat,
  type PayloadReader,
  ReceiveStatistics,
  type RtpView,
  SenderClock,
  SequenceUnwrapper,
  timestampDelta,
} from '@bloom/rtp';
import { KeyframeRequests } from './keyframe-requests.js';
import type { Variant } from '../media-engine.js';
import type { TrackKind } from '../media-frames.js';
import type { VariantSelection } from '../variants/variant-selection.js';
import { variantIndex } from '../variants/variants.js';
import { SmoothedRate } from './smoothed-rate.js';

const STORE = {
  // Two seconds at 2 Mbit/s. Pages of a slower stream are never touched.
  video: { packets: 1024, bytes: 640 * 1024, maxAgeMs: 2000 },
  audio: { packets: 128, bytes: 48 * 1024, maxAgeMs: 1000 },
} as const;

/** Weight of the last second in the measured rate: a single keyframe must not look like a rate. */
const RATE_SMOOTHING = 0.25;

/**
 * Packets to search back from a slice. Parameter sets come first in a picture, so a slice this deep in one starts
 * nothing.
 */
const MAX_LOOK_BACK = 32;

/** Pictures that must follow a later one before a stream counts as having B-frames. */
const REORDERED_PICTURES = 3;
/** Farthest that a B-frame goes back, in 90 kHz units; a clock that is set goes farther. */
const MAX_REORDER = 90_000;

interface InboundStreamOptions {
  variant: Variant;
  kind: TrackKind;
  clockRate: number;
  format: PayloadFormat;
  ssrc: number;
  /** Identifies the stream in the subscribers' send histories, 0..255. */
  id: number;
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
  /** Sends the packets that overtook the one switched at, which arrived late: they are in the store. */
  catchUp(stream: InboundStream, first: number, nowMs: number): void;
  /** Skips a packet of the current source that carries no media. */
  skip(sequence: number): void;
  sourceReplaced(old: InboundStream): void;
  trackGone(): void;
  fault(error: unknown): void;
}

/** One variant of a published track as it arrives: one SSRC with its retransmission stream. Bookkeeping only. */
export class InboundStream {
  readonly variant: Variant;
  readonly index: number;
  readonly id: number;
  readonly ssrc: number;
  rtxSsrc = -1;
  /** The payload of the packet being received. */
  readonly payload: PayloadReader;
  /** The payload of a packet read from the store. */
  readonly storedPayload: PayloadReader;
  readonly unwrapper = new SequenceUnwrapper();
  readonly losses: LossTracker;
  readonly statistics: ReceiveStatistics;
  readonly store: PacketStore;
  readonly clock: SenderClock;
  readonly keyframes = new KeyframeRequests();
  /** Subscribers that currently receive this variant. */
  readonly forwarding: TrackSubscriber[] = [];
  /** Sources not named in the SDP that have taken this variant since `learntSinceMs`, including this one. */
  learnt = 0;
  learntSinceMs = Number.NEGATIVE_INFINITY;
  /** True once media has arrived; before that the SDP only announces the stream. */
  started = false;

  readonly #storedPackets: number;
  readonly #rate = new SmoothedRate(RATE_SMOOTHING);

  #lastTimestamp = -1;
  #reordered = 0;
  lastKeyframeTimestamp = -1;
  markers = 0;
  keyframeCount = 0;
  nacks = 0;
  plis = 0;
  rtxPackets = 0;
  rtxBytes = 0;
  firSequence = 0;

  constructor(options: InboundStreamOptions) {
    this.variant = options.variant;
    this.index = variantIndex(options.variant);
    this.id = options.id;
    this.ssrc = options.ssrc;
    this.payload = options.format.createReader();
    this.storedPayload = options.format.createReader();
    this.losses = new LossTracker({ maxMissing: options.kind === 'video' ? 512 : 64 });
    this.statistics = new ReceiveStatistics(options.clockRate);
    this.store = new PacketStore(STORE[options.kind]);
    this.#storedPackets = STORE[options.kind].packets;
    this.clock = new SenderClock(options.clockRate);
  }

  /** Number of the oldest packet that may still be in the store. */
  get oldestStored(): number {
    return this.unwrapper.newest - this.#storedPackets + 1;
  }

  /** Received bitrate, bits per second, smoothed over some seconds. */
  get measuredBps(): number {
    return this.#rate.bps;
  }

  /** Measures the bitrate. Call it at a steady interval. */
  measure(intervalMs: number): void {
    this.#rate.measure(this.statistics.bytes, intervalMs);
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
