import { EntryPoint, type PayloadFormat, payloadFormat, restoreRtx, VoiceActivity } from '@bloom/rtp';
import type { InboundTrack, MediaRoomEvent, Variant } from '../media-engine.js';
import { VariantActivity } from '../variants/variant-activity.js';
import { bitratesOf, type PerVariant, VARIANTS, variantIndex } from '../variants/variants.js';
import type { Backlog } from './backlog.js';
import type { MediaContext } from './context.js';
import { InboundStream, type TrackSubscriber } from './inbound-stream.js';

/** How long to wait for a target variant after the first media, ms. */
const SETTLE_MS = 500;
/** Interval of the bitrate measurement, ms. */
const MEASURE_MS = 1000;

/** Room for the longest header and the SRTP tag. */
export const PACKET_OVERHEAD = 64;

/** The transport of a published track, as the track uses it. */
export interface TrackOwner {
  readonly peerId: string;
  /** Limits the queued media of this owner's tracks. */
  readonly backlog: Backlog;
  requestKeyframe(track: PublishedTrack, stream: InboundStream): void;
  emit(event: MediaRoomEvent): void;
}

/** A track that one client publishes: its variants and its subscribers. The receiving half of the packet path. */
export class PublishedTrack {
  readonly #context: MediaContext;
  /** Indexed by `variantIndex`; a track without simulcast has only `h`. */
  readonly streams: (InboundStream | undefined)[] = [undefined, undefined, undefined];
  readonly slots = new Set<TrackSubscriber>();
  readonly activity = new VariantActivity();
  readonly simulcast: boolean;
  /**
   * Bitrate of each variant, bits per second: the announced or the measured one, whichever is higher. Browsers derive
   * it from the picture size and send up to twice what a client library announces.
   */
  bitrates: PerVariant<number>;
  muted = false;
  /** True if nothing of the track is forwarded, whatever its publisher sends. */
  blocked = false;

  readonly #voice: VoiceActivity | undefined;
  readonly #format: PayloadFormat;
  #firstMediaMs = -1;
  #measuredAtMs = -1;
  #settled = false;
  #bFramesReported = false;
  #nextStreamId = 0;
  readonly #restored = { ssrc: 0, payloadType: 0 };

  constructor(
    context: MediaContext,
    readonly owner: TrackOwner,
    public params: InboundTrack,
  ) {
    this.#context = context;
    this.simulcast = params.rids.length > 0;
    this.bitrates = bitratesOf(params.bitratesBps);
    this.#format = payloadFormat(params.codec.name);
    this.#voice = params.kind === 'audio' ? new VoiceActivity() : undefined;
  }

  get trackId(): string {
    return this.params.trackId;
  }

  stream(variant: Variant): InboundStream | undefined {
    return this.streams[variantIndex(variant)];
  }

  streamById(id: number): InboundStream | undefined {
    return this.streams.find((stream) => stream?.id === id);
  }

  /**
   * Returns the stream of this variant on this SSRC. A changed SSRC is a new source, whose keyframe its subscribers
   * await.
   */
  openStream(variant: Variant, ssrc: number): InboundStream {
    const index = variantIndex(variant);
    const old = this.streams[index];
    if (old?.ssrc === ssrc) return old;
    const stream = new InboundStream({
      variant,
      kind: this.params.kind,
      clockRate: this.params.codec.clockRate,
      format: this.#format,
      ssrc,
      id: this.#nextStreamId,
    });
    this.#nextStreamId = (this.#nextStreamId + 1) & 0xff;
    this.streams[index] = stream;
    if (old !== undefined) {
      stream.rtxSsrc = old.rtxSsrc;
      for (const slot of old.forwarding.splice(0)) slot.sourceReplaced(old);
    }
    return stream;
  }

  /** Takes the media packet in `context.view`. */
  receive(stream: InboundStream, nowMs: number): void {
    const { view } = this.#context;
    if (view.payloadType !== this.params.codec.payloadType) {
      this.#context.dropped.unexpected_payload++;
      return;
    }
    const sequence = stream.unwrapper.unwrap(view.sequence);
    stream.losses.received(sequence, nowMs);
    stream.statistics.received(sequence, view.timestamp, view.payloadLength, nowMs);
    this.#accept(stream, sequence, nowMs);
  }

  /** Takes the retransmission stream's packet in `context.view`. Probes and duplicates are not media. */
  receiveRtx(stream: InboundStream, nowMs: number): void {
    const { view } = this.#context;
    stream.rtxPackets++;
    stream.rtxBytes += view.payloadLength;
    if (!stream.started) return;
    this.#restored.ssrc = stream.ssrc;
    this.#restored.payloadType = this.params.codec.payloadType;
    if (!restoreRtx(view, this.#restored)) return;
    const before = stream.losses.recovered;
    const newest = stream.unwrapper.newest;
    const sequence = stream.unwrapper.unwrap(view.sequence);
    stream.losses.received(sequence, nowMs);
    if (sequence <= newest && stream.losses.recovered === before) return;
    stream.statistics.repaired(view.payloadLength);
    this.#accept(stream, sequence, nowMs);
  }

  /** Does the bookkeeping for an authentic packet, then forwards it to all subscribers of this variant. */
  #accept(stream: InboundStream, sequence: number, nowMs: number): void {
    const { view, sealer } = this.#context;
    const { forwarding, payload } = stream;
    if (view.isPaddingOnly || this.blocked) {
      for (let i = 0; i < forwarding.length; i++) forwarding[i]!.skip(sequence);
      return;
    }
    if (!payload.read(view)) {
      this.#context.dropped.malformed_media++;
      for (let i = 0; i < forwarding.length; i++) forwarding[i]!.skip(sequence);
      return;
    }
    if (!stream.started) this.#streamStarted(stream, nowMs);
    this.activity.countPacket(stream.index);
    if (view.marker) stream.markers++;
    // The copy is kept without its padding, so it must not claim to have any.
    if (view.paddingLength > 0) view.buffer[view.start]! &= 0xdf;
    stream.store.put(sequence, view.buffer, view.start, view.payloadEnd, nowMs);

    let audioLevel = -1;
    if (this.#voice !== undefined) {
      audioLevel = view.audioLevel(this.params.extensions.audioLevel);
      if (audioLevel >= 0 && this.#voice.level(audioLevel, nowMs)) this.#voiceChanged();
    }
    if (this.#format.reordersPictures && sequence === stream.unwrapper.newest && stream.hasBFrames(view.timestamp))
      this.#reportBFrames();
    const startsKeyframe = this.#startsKeyframe(stream, sequence, nowMs);
    if (startsKeyframe && this.#isNewKeyframe(stream)) this.#switchWaiting(stream, sequence, nowMs);
    if (stream.keyframes.gaveUp) this.#askAnew(stream);
    if (forwarding.length === 0) return;
    if (view.payloadLength + PACKET_OVERHEAD > sealer.maxPacketBytes) {
      this.#context.dropped.oversized++;
      return;
    }
    sealer.begin(view.buffer, view.payloadStart, view.payloadEnd);
    for (let i = 0; i < forwarding.length; i++) {
      const slot = forwarding[i]!;
      try {
        slot.forward(view, payload, sequence, audioLevel, nowMs);
      } catch (error) {
        // A fault of one subscriber must affect neither the publisher nor the others.
        slot.fault(error);
      }
    }
    sealer.end();
    if (startsKeyframe && sequence < stream.unwrapper.newest) {
      for (let i = 0; i < forwarding.length; i++) forwarding[i]!.catchUp(stream, sequence, nowMs);
    }
  }

  /**
   * Returns whether a picture starts here. It does not if a packet before it, perhaps with the parameter sets, is
   * missing.
   */
  #startsKeyframe(stream: InboundStream, sequence: number, nowMs: number): boolean {
    const { entryPoint } = stream.payload;
    if (entryPoint !== EntryPoint.ifFirst) return entryPoint === EntryPoint.yes;
    return !stream.missesBefore(sequence, this.#context.view.timestamp, nowMs);
  }

  /** Audio has no keyframes, so every packet is a start. */
  #isNewKeyframe(stream: InboundStream): boolean {
    if (this.#voice !== undefined) return stream.forwarding.length < this.slots.size;
    const { timestamp } = this.#context.view;
    if (stream.lastKeyframeTimestamp === timestamp) return false;
    stream.lastKeyframeTimestamp = timestamp;
    stream.keyframeCount++;
    this.activity.countKeyframe(stream.index);
    stream.keyframes.keyframe();
    return true;
  }

  /**
   * Switches the subscribers that wait for this variant to the current packet; `forward` is called for it right after.
   */
  #switchWaiting(stream: InboundStream, sequence: number, nowMs: number): void {
    const { view } = this.#context;
    for (const slot of this.slots) {
      if (slot.selection.awaited !== stream.variant) continue;
      try {
        slot.switchTo(stream, view, sequence, nowMs);
      } catch (error) {
        slot.fault(error);
      }
    }
  }

  #streamStarted(stream: InboundStream, nowMs: number): void {
    stream.started = true;
    if (this.#firstMediaMs < 0) this.#firstMediaMs = nowMs;
    this.activity.appear(stream.variant, nowMs);
    for (const slot of this.slots) {
      slot.selection.variantActive(stream.variant);
      slot.selectionChanged();
    }
  }

  #reportBFrames(): void {
    if (this.#bFramesReported) return;
    this.#bFramesReported = true;
    this.owner.emit({ type: 'bFrames', trackId: this.trackId });
  }

  #voiceChanged(): void {
    this.owner.emit({ type: 'voiceActivity', trackId: this.trackId, status: this.#voice!.status });
  }

  addSlot(slot: TrackSubscriber): void {
    this.slots.add(slot);
    slot.selection.setBitrates(this.bitrates);
    if (!this.simulcast) slot.selection.setTarget('h');
    slot.selection.setMuted(this.muted || this.blocked);
    for (const variant of VARIANTS) {
      const stream = this.stream(variant);
      if (stream?.started && (!this.simulcast || this.activity.isActive(variant))) {
        slot.selection.variantActive(variant);
      }
    }
    if (this.#settled) slot.selection.settle();
    slot.selectionChanged();
    if (this.#voice !== undefined && this.#firstMediaMs >= 0 && slot.receiver !== undefined) {
      this.owner.emit({
        type: 'voiceActivity',
        trackId: this.trackId,
        status: this.#voice.status,
        peerId: slot.receiver.peerId,
      });
    }
  }

  removeSlot(slot: TrackSubscriber): void {
    this.slots.delete(slot);
  }

  setBitrates(bitratesBps: Partial<PerVariant<number>>): void {
    this.params = { ...this.params, bitratesBps: { ...this.params.bitratesBps, ...bitratesBps } };
    this.#updateBitrates();
  }

  #updateBitrates(): void {
    this.bitrates = bitratesOf(this.params.bitratesBps);
    for (const stream of this.streams) {
      if (stream === undefined) continue;
      this.bitrates[stream.variant] = Math.max(this.bitrates[stream.variant], Math.round(stream.measuredBps));
    }
    for (const slot of this.slots) slot.selection.setBitrates(this.bitrates);
  }

  #measure(nowMs: number): void {
    const intervalMs = nowMs - this.#measuredAtMs;
    if (this.#measuredAtMs >= 0 && intervalMs < MEASURE_MS) return;
    if (this.#measuredAtMs >= 0) for (const stream of this.streams) stream?.measure(intervalMs);
    this.#measuredAtMs = nowMs;
    this.#updateBitrates();
  }

  setMuted(muted: boolean, nowMs: number): void {
    if (muted === this.muted) return;
    this.muted = muted;
    this.#silenceChanged(nowMs);
  }

  /** Withholds the track from all subscribers, or lets it flow again; a picture returns with its next keyframe. */
  setBlocked(blocked: boolean, nowMs: number): void {
    if (blocked === this.blocked) return;
    this.blocked = blocked;
    for (const stream of this.streams) {
      if (stream === undefined) continue;
      stream.keyframes.cancel();
      // Without a source subscribers wait for a keyframe: packets after a gap cannot be decoded.
      for (const slot of stream.forwarding.splice(0)) slot.sourceReplaced(stream);
    }
    this.#silenceChanged(nowMs);
  }

  #silenceChanged(nowMs: number): void {
    this.activity.restartWindow(nowMs);
    for (const slot of this.slots) {
      slot.selection.setMuted(this.muted || this.blocked);
      slot.selectionChanged();
    }
  }

  /** Requests a keyframe of this variant. */
  requestKeyframe(variant: Variant, nowMs: number): void {
    const stream = this.stream(variant);
    if (stream === undefined || this.blocked || this.params.kind !== 'video') return;
    if (stream.keyframes.request(nowMs)) this.owner.requestKeyframe(this, stream);
  }

  /** Repeats requests that were given up while the publisher was away: subscribers still wait for its keyframe. */
  #askAnew(stream: InboundStream): void {
    stream.keyframes.cancel();
    for (const slot of this.slots) if (slot.selection.awaited === stream.variant) slot.selectionChanged();
  }

  /** Runs the timers of the track. Called about every 20 ms. */
  tick(nowMs: number): void {
    if (this.#voice?.tick(nowMs)) this.#voiceChanged();
    if (this.params.kind !== 'video') return;
    for (const stream of this.streams) {
      if (stream?.keyframes.due(nowMs)) this.owner.requestKeyframe(this, stream);
    }
    if (!this.#settled && this.#firstMediaMs >= 0 && nowMs - this.#firstMediaMs >= SETTLE_MS) {
      this.#settled = true;
      for (const slot of this.slots) {
        slot.selection.settle();
        slot.selectionChanged();
      }
    }
    if (this.simulcast) this.#measure(nowMs);
    if (this.simulcast && !this.muted && !this.blocked) this.#checkActivity(nowMs);
  }

  #checkActivity(nowMs: number): void {
    for (const { variant, active } of this.activity.check(nowMs)) {
      if (!active) this.stream(variant)?.keyframes.cancel();
      for (const slot of this.slots) {
        if (active) slot.selection.variantActive(variant);
        else slot.selection.variantInactive(variant);
        slot.selectionChanged();
      }
    }
  }

  /** Ends the track: the publisher removed it or has left. */
  close(): void {
    for (const slot of this.slots) slot.trackGone();
    this.slots.clear();
  }
}
