import {
  type OutboundHeader,
  type PayloadNumbering,
  type PayloadReader,
  payloadFormat,
  RedWriter,
  RoundTripClock,
  type RtpView,
  type SenderInfo,
  timestampDelta,
} from '@bloom/rtp';
import type { SealStream } from '@bloom/webrtc';
import type { OutboundSlot } from '../media-engine.js';
import type { LayerRates } from '../variants/layer-rates.js';
import { LayerSelection } from '../variants/layer-selection.js';
import { layersToLeaveOut } from '../variants/reduced-bitrates.js';
import { VariantSelection } from '../variants/variant-selection.js';
import { wireReason } from '../variants/variants.js';
import type { MediaContext } from '../context.js';
import { HeldPackets } from './held-packets.js';
import type { InboundStream, TrackSubscriber } from './inbound-stream.js';
import type { PublishedTrack } from './published-track.js';
import { type SlotHeaders, slotHeaders } from './slot-headers.js';
import type { SlotNumbering } from './slot-numbering.js';
import { SmoothedRate } from './smoothed-rate.js';
import type { SlotReceiver } from './slot-receiver.js';
import { MARKED, SlotRepair } from './slot-repair.js';

/** A slot's allocation is not negotiable for this long after its first media, ms. */
const PROTECTED_MS = 500;
/** A keyframe request is stale while the last keyframe may still be on its way: the round trip plus this, ms. */
const KEYFRAME_GRACE_MS = 50;
/** Upper limit of the period in which a keyframe request is stale, ms. */
const KEYFRAME_GRACE_MAX_MS = 400;
/** Weight of the last interval in the measured sending rate. */
const RATE_SMOOTHING = 0.3;

interface OutboundTrackOptions {
  params: OutboundSlot;
  receiver: SlotReceiver;
  numbering: SlotNumbering;
  /** Cycle that introduced the slot, which flows once that cycle has ended. */
  generation: number;
  /** Called before the first packet. */
  onBegin?: () => void;
}

/** One track on its way to one client: the sending half of the packet path. */
export class OutboundTrack implements TrackSubscriber {
  readonly #context: MediaContext;
  readonly receiver: SlotReceiver;
  readonly numbering: SlotNumbering;
  readonly generation: number;
  readonly selection = new VariantSelection();
  /** Selects a part of a source with layers. */
  readonly layers = new LayerSelection();
  readonly roundTrip = new RoundTripClock();
  params: OutboundSlot;
  /** True once the cycle has ended and the transport is up. */
  live = false;
  track: PublishedTrack | undefined;
  /** Stream that currently flows. */
  source: InboundStream | undefined;

  readonly repair: SlotRepair;
  #stream: SealStream | undefined;
  /** Set once the receiver reports on our SSRC: it then knows the mid, and the shorter header suffices. */
  #known = false;
  #headers!: SlotHeaders;
  /** Undefined if the client does not take redundancy. */
  #red: RedWriter | undefined;
  readonly #onBegin: (() => void) | undefined;
  #paused = false;
  #withheld = false;
  /** Undefined if payloads are sent unchanged. */
  readonly #payloads: PayloadNumbering | undefined;
  readonly #held = new HeldPackets();
  #firstMediaMs = -1;
  reportDueMs = 0;

  packets = 0;
  bytes = 0;
  markers = 0;
  keyframes = 0;
  nacks = 0;
  plis = 0;
  /** Packets that repeated earlier ones. */
  redundant = 0;
  lost = 0;
  roundTripMs = -1;
  #lastKeyframeTimestamp = -1;
  #lastKeyframeMs = Number.NEGATIVE_INFINITY;
  /** Number of the packet at which the last switch was made. */
  #switchedAt = -1;
  /** Packet that waits for the one after it: see `InboundStream.openEnd`. */
  #openEnd = -1;
  /** First packet of the source that the client gets. */
  #firstOfSource = 0;

  readonly #rate = new SmoothedRate(RATE_SMOOTHING);

  constructor(context: MediaContext, options: OutboundTrackOptions) {
    this.#context = context;
    this.receiver = options.receiver;
    this.numbering = options.numbering;
    this.generation = options.generation;
    this.params = options.params;
    this.#onBegin = options.onBegin;
    this.#payloads = options.numbering.payloadsOf(payloadFormat(options.params.codec.name));
    this.repair = new SlotRepair(context, {
      receiver: this.receiver,
      numbering: this.numbering,
      kind: options.params.kind,
    });
    this.update(options.params);
  }

  get trackId(): string {
    return this.params.trackId;
  }

  get isSimulcast(): boolean {
    return this.track?.simulcast === true;
  }

  /** Updates the slot from a later answer: payload types and extension ids may have changed. */
  update(params: OutboundSlot): void {
    this.params = params;
    const { rtxSsrc, codec } = params;
    const { payloadType, redPayloadType } = codec;
    this.#red = redPayloadType === undefined ? undefined : new RedWriter({ red: redPayloadType, blocks: payloadType });
    this.#headers = slotHeaders(params);
    const { full, rtx } = this.#headers;
    // Without a retransmission stream the packet itself is repeated.
    const headers = { again: full, rtx };
    this.repair.update({ ssrc: rtxSsrc, rewrites: this.#payloads !== undefined, red: this.#red, ...headers });
  }

  /** Lets media flow: the cycle that introduced the slot has ended and keys are agreed. */
  goLive(): void {
    this.live = true;
    this.#stream = this.receiver.openStream(this.params.ssrc);
  }

  /** A track that returned in another codec has to wait for a slot negotiated for it. */
  attach(track: PublishedTrack): void {
    if (this.track === track || track.params.codec.name !== this.params.codec.name) return;
    this.track?.removeSlot(this);
    this.track = track;
    track.addSlot(this);
  }

  /** Stops immediately; the numbering stays with the transport. */
  detach(): void {
    this.source?.removeSubscriber(this);
    this.source = undefined;
    this.track?.removeSlot(this);
    this.track = undefined;
    this.live = false;
    if (this.#stream !== undefined) this.receiver.closeStream(this.#stream);
    this.#stream = undefined;
    this.repair.close();
  }

  /** Handles a withdrawn track; another may appear under the same id. */
  trackGone(): void {
    this.source?.removeSubscriber(this);
    this.source = undefined;
    this.track = undefined;
    this.selection.reset();
  }

  sourceReplaced(old: InboundStream): void {
    old.removeSubscriber(this);
    if (this.source === old) this.source = undefined;
    this.selection.sourceReplaced(old.variant);
    this.selectionChanged();
  }

  /** The client wants nothing of the track, or wants it again. */
  setPaused(paused: boolean): void {
    this.#paused = paused;
    this.#stop(paused || this.#withheld);
  }

  /** The client may not receive the track, or may again. */
  setWithheld(withheld: boolean): void {
    this.#withheld = withheld;
    this.#stop(withheld || this.#paused);
  }

  /** Stops immediately, or resumes with the next keyframe. */
  #stop(paused: boolean): void {
    if (paused === this.selection.paused) return;
    this.selection.paused = paused;
    if (paused && this.source !== undefined) this.sourceReplaced(this.source);
    else this.selectionChanged();
  }

  /** Must be called after anything that may have changed the selection. */
  selectionChanged(): void {
    const { awaited } = this.selection;
    if (awaited !== undefined) this.track?.requestKeyframe(awaited, this.#context.world.now());
  }

  /** Layers of the source; undefined if it has none, so that everything flows. */
  get layerRates(): LayerRates | undefined {
    const layers = this.source?.layers;
    return layers?.isLayered === true ? layers : undefined;
  }

  /** Takes the slot's share of the bandwidth, bits per second; `Infinity` if there is no limit. Called repeatedly. */
  setAllocation(bps: number, nowMs: number): void {
    const rates = this.layerRates;
    if (rates === undefined || this.isSimulcast) {
      this.selection.setAllocation(bps);
      this.selectionChanged();
    }
    if (rates === undefined) return;
    this.layers.limitFrameRate(rates);
    if (this.isSimulcast) this.#leaveOutLayers(rates);
    else if (this.isNegotiable(nowMs)) this.layers.setAllocation(bps, rates);
    if (this.track?.muted === true || this.track?.blocked === true) this.layers.stopWaiting();
    else if (this.layers.wantsKeyframe(rates, nowMs)) this.track?.requestKeyframe(this.source!.variant, nowMs);
  }

  /** Chooses the layers of a stream that begins to flow. `isFirst`: nothing has been sent before. */
  #beginLayers(rates: LayerRates, isFirst: boolean): void {
    if (this.isSimulcast) this.#leaveOutLayers(rates);
    else if (isFirst && rates.spatial > 1) this.layers.begin(this.receiver.startBps(this.sendingBps), rates);
  }

  /** Leaves out temporal layers of the flowing variant that do not fit. */
  #leaveOutLayers(rates: LayerRates): void {
    const { bitrates, reducedBps } = this.track!;
    const { variant } = this.source!;
    const { allocationBps } = this.selection;
    this.layers.leaveOut(layersToLeaveOut(allocationBps, bitrates[variant], reducedBps[variant]), rates);
  }

  /**
   * Takes over the bandwidth share of the slot whose stream this one continues. Must be called before the first media.
   */
  continueFrom(former: OutboundTrack): void {
    this.#firstMediaMs = former.#firstMediaMs;
    this.#rate.bps = former.#rate.bps;
  }

  fault(error: unknown): void {
    this.receiver.fault(error);
  }

  switchTo(stream: InboundStream, view: RtpView, sequence: number, nowMs: number): void {
    if (!this.selection.keyframe(stream.variant)) return;
    const isFirst = this.#firstMediaMs < 0;
    if (isFirst) this.#onBegin?.();
    this.source?.removeSubscriber(this);
    this.source = stream;
    this.numbering.mapper.switchTo(sequence, view.timestamp, nowMs);
    this.#payloads?.switchTo(stream.payload);
    this.layers.reset();
    this.#lastKeyframeTimestamp = -1;
    if (stream.layers !== undefined) this.#beginLayers(stream.layers, isFirst);
    if (this.#firstMediaMs < 0) this.#firstMediaMs = nowMs;
    this.reportDueMs = nowMs;
    stream.addSubscriber(this);
    this.receiver.emit({
      type: 'encodingSwitched',
      peerId: this.receiver.peerId,
      trackId: this.trackId,
      variant: stream.variant,
      reason: wireReason(this.selection.reason),
    });
    this.#switchedAt = sequence;
    this.#firstOfSource = sequence;
    this.#openEnd = -1;
    this.#held.start(sequence);
  }

  /**
   * Sends the packets at and after the switch point that arrived before the packet we switched at: they are in the
   * store.
   */
  catchUp(stream: InboundStream, first: number, nowMs: number): void {
    if (this.#switchedAt !== first) return;
    this.#switchedAt = -1;
    for (let sequence = Math.max(first + 1, stream.oldestStored); sequence <= stream.newest; sequence++) {
      if (this.#waits(sequence, nowMs)) return;
      this.#sendStored(stream, sequence, nowMs);
    }
  }

  /** True if packets wait for room on the client's link. */
  get hasHeld(): boolean {
    return this.source !== undefined && this.#held.waits;
  }

  /**
   * Sends the next packet that waits for room on the client's link, if there is room or the packet can wait no longer.
   * Returns false if none does.
   */
  sendHeld(nowMs: number): boolean {
    const { source } = this;
    if (source === undefined || !this.#held.mayLeave(source, this.receiver.pacer, nowMs)) return false;
    const sequence = this.#held.take(source.newest);
    if (sequence < 0) return false;
    if (this.#held.isEmpty(sequence)) this.numbering.mapper.drop(sequence);
    // A publisher's numbers may leap: the store cannot have what is between.
    else if (!this.#sendStored(source, sequence, nowMs)) this.#held.passOver(source.oldestStored);
    return true;
  }

  /** Returns false if the packet is not in the store; its number then stays missing. */
  #sendStored(stream: InboundStream, sequence: number, nowMs: number): boolean {
    if (!this.repair.readStored(stream, sequence, nowMs)) return false;
    const { storedView, sealer } = this.#context;
    sealer.begin(storedView.buffer, storedView.payloadStart, storedView.payloadEnd);
    try {
      this.#send(storedView, stream.storedPayload, sequence, -1, nowMs);
    } finally {
      sealer.end();
    }
    return true;
  }

  /** Skips a packet of the current source that carries no media: later ones close the gap. */
  skip(sequence: number): void {
    if (!this.#held.holdsEmpty(sequence)) this.numbering.mapper.drop(sequence);
  }

  /**
   * Forwards one packet of the current source, within a round started with its payload. `audioLevel` is -1 if there is
   * none.
   */
  forward(view: RtpView, payload: PayloadReader, sequence: number, audioLevel: number, nowMs: number): void {
    if (this.#waits(sequence, nowMs)) return;
    if (sequence === this.source?.openEnd && this.layers.mayGoOn(payload)) this.#openEnd = sequence;
    else this.#send(view, payload, sequence, audioLevel, nowMs);
  }

  forwardEnd(view: RtpView, payload: PayloadReader, sequence: number, nowMs: number): void {
    if (this.#openEnd !== sequence) return;
    this.#openEnd = -1;
    this.forward(view, payload, sequence, -1, nowMs);
  }

  /** Returns whether a packet that has arrived waits for room on the client's link. Sound never does. */
  #waits(sequence: number, nowMs: number): boolean {
    if (this.params.kind !== 'video' || !this.#held.holds(sequence, this.receiver.pacer, nowMs)) return false;
    this.receiver.hasHeld = true;
    return true;
  }

  #send(view: RtpView, payload: PayloadReader, sequence: number, audioLevel: number, nowMs: number): void {
    const { numbering, receiver } = this;
    const { mapper } = numbering;
    const source = this.source!;
    let { marker } = view;
    const isNewest = this.#held.passes(sequence);
    if (source.layers?.isLayered === true) {
      if (!this.layers.takes(payload, view.timestamp, isNewest)) {
        this.#payloads?.drop(payload);
        if (mapper.drop(sequence) || !mapper.map(sequence, view.timestamp, nowMs)) return;
        return this.repair.fillGap(this.#stream, this.#header, view, source.id, nowMs);
      }
      if (!marker && payload.endsLayer) {
        marker = this.layers.endsPicture(payload, source.layerAfter(sequence, view.timestamp, nowMs));
      }
    }
    if (!mapper.map(sequence, view.timestamp, nowMs)) return;
    const payloads = this.#payloads;
    const red = this.#red;
    let repeated = 0;
    if (red !== undefined && receiver.redundancy > 0) {
      // Packets from before the switch may be ones that the client must not get.
      const distance = Math.min(receiver.redundancy, sequence - this.#firstOfSource);
      repeated = red.find(source.store, view, sequence, distance, nowMs);
    }
    const numbers = (payloads === undefined ? repeated : payloads.map(payload)) | (marker === view.marker ? 0 : MARKED);
    // Record the packet even if it cannot be sent now: the receiver will ask for it.
    this.repair.history.record(mapper.sequence, source.id, sequence, mapper.timestamp, numbers);
    const { sealer } = this.#context;
    const at = sealer.reserve();
    if (at < 0 || this.#stream === undefined) return;
    const header = this.#header;
    const transportSequence = receiver.nextTransportSequence(header.hasTransportSequence);
    const { arena } = sealer;
    header.copyDescriptor(view, source.descriptors.id);
    const headerLength = header.write(
      arena,
      at,
      marker,
      mapper.sequence,
      mapper.timestamp,
      transportSequence,
      audioLevel,
    );
    let prefix = 0;
    let skip = 0;
    if (payloads !== undefined) {
      prefix = payload.write(arena, at + headerLength, numbers);
      skip = payload.headerLength;
    } else if (repeated > 0) {
      prefix = red!.write(source.store, arena, at, headerLength);
      this.redundant++;
    }
    if (!sealer.commit(this.#stream, headerLength, prefix, skip, mapper.sequence)) return;
    const payloadLength = view.payloadLength - skip + prefix;
    receiver.packetSent(headerLength + payloadLength, transportSequence >= 0, nowMs);
    this.packets++;
    this.bytes += payloadLength;
    numbering.packetsSent++;
    numbering.octetsSent += payloadLength;
    this.#context.packetsForwarded++;
    if (marker) this.markers++;
    const before = this.#lastKeyframeTimestamp;
    if (source.isKeyPicture(view.timestamp) && (before < 0 || timestampDelta(before, view.timestamp) > 0)) {
      this.#lastKeyframeTimestamp = view.timestamp;
      this.repair.keyTimestamp = mapper.timestamp;
      this.#lastKeyframeMs = nowMs;
      this.keyframes++;
    }
  }

  get #header(): OutboundHeader {
    return this.#known ? this.#headers.plain : this.#headers.full;
  }

  /** Resends the packet that was sent under this 16-bit number. */
  resend(sequence16: number, nowMs: number): void {
    if (this.track !== undefined) this.repair.resend(this.track, this.#stream, sequence16, nowMs);
  }

  /** True if the slot may send padding now. */
  get canPad(): boolean {
    return this.live && !this.selection.paused && this.repair.canPad;
  }

  /** Sends one padding packet of a probe. Returns the bytes sent, or 0 if the slot cannot send padding. */
  sendPadding(nowMs: number): number {
    return this.live && !this.selection.paused ? this.repair.sendPadding(nowMs) : 0;
  }

  /** Requests a keyframe of the stream that is flowing or awaited. */
  keyframeWanted(nowMs: number): void {
    this.plis++;
    if (this.selection.paused) return;
    const grace = Math.min(KEYFRAME_GRACE_MAX_MS, this.receiver.roundTripMs + KEYFRAME_GRACE_MS);
    if (nowMs - this.#lastKeyframeMs < grace) return;
    const { wanted } = this.selection;
    if (wanted !== undefined) this.track?.requestKeyframe(wanted, nowMs);
  }

  /** Takes a report block on our SSRC. */
  reported(lost: number, roundTripMs: number): void {
    this.#known = true;
    this.lost = Math.max(this.lost, lost);
    if (roundTripMs >= 0) this.roundTripMs = roundTripMs;
  }

  /** Fills a sender report on the publisher's wall clock; returns false while that is unknown. */
  senderReport(nowMs: number, out: SenderInfo): boolean {
    if (this.source === undefined || !this.source.clock.report(nowMs, out)) return false;
    out.ssrc = this.params.ssrc;
    out.rtpTimestamp = this.numbering.mapper.mapTimestamp(out.rtpTimestamp);
    out.packetCount = this.numbering.packetsSent % 4294967296;
    out.octetCount = this.numbering.octetsSent % 4294967296;
    this.roundTrip.sent(out.ntpSeconds, out.ntpFraction, nowMs);
    return true;
  }

  /** Sending rate for the allocation, bits per second, smoothed. */
  get sendingBps(): number {
    return this.#rate.bps;
  }

  /** True until the first picture, if there may be one. */
  get isWaiting(): boolean {
    return this.#firstMediaMs < 0 && this.live && !this.selection.paused && this.params.kind === 'video';
  }

  /** Rate that is sent, or soon will be, bits per second. */
  get expectedBps(): number {
    return Math.max(this.sendingBps, this.isSimulcast ? 0 : (this.layerRates?.bpsOf(this.layers.wanted) ?? 0));
  }

  /** Measures the sending rate; called at a steady interval. */
  measure(intervalMs: number): void {
    this.#rate.measure(this.bytes, intervalMs);
  }

  isNegotiable(nowMs: number): boolean {
    return this.#firstMediaMs >= 0 && nowMs - this.#firstMediaMs >= PROTECTED_MS;
  }
}
