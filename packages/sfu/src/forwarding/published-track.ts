import { type AnnouncedParts, EntryPoint, type PayloadFormat, payloadFormat, VoiceActivity } from '@bloom/rtp';
import type { InboundTrack, MediaRoomEvent, RtpDropCause, Variant } from '../media-engine.js';
import { leastBitrates, NOT_REDUCED, reducedBitrates } from '../variants/reduced-bitrates.js';
import { VariantActivity } from '../variants/variant-activity.js';
import { bitratesOf, type PerVariant, type ReducedBitrates, VARIANTS, variantIndex } from '../variants/variants.js';
import type { Backlog } from '../backlog.js';
import type { MediaContext } from '../context.js';
import { DemandReports } from './demand-reports.js';
import { InboundStream, type PacketCrossing, type TrackSubscriber } from './inbound-stream.js';
import { PacketIntake } from './packet-intake.js';
import { PictureFaults } from './picture-faults.js';
import { TrackSilence } from './track-silence.js';

/** How long to wait for a target variant after the first media, ms. */
const SETTLE_MS = 200;
/** Interval of the bitrate measurement, ms. */
const MEASURE_MS = 1000;
/** Longest wait of the end of a layer for the packet after it, ms: longer than encoders take for a layer. */
const MAX_OPEN_MS = 250;

/** Room for the longest header and the SRTP tag. */
export const PACKET_OVERHEAD = 64;

/** The transport of a published track, as the track uses it. */
export interface TrackOwner {
  readonly peerId: string;
  /** Limits the queued media of this owner's tracks. */
  readonly backlog: Backlog;
  /** Bytes in the packet stores of this owner's streams. */
  readonly storeBytes: number;
  requestKeyframe(track: PublishedTrack, stream: InboundStream): void;
  /** Counts a packet of the track that is dropped. */
  dropped(cause: RtpDropCause, track: PublishedTrack, nowMs: number): void;
  emit(event: MediaRoomEvent): void;
}

/** A track that one client publishes: its variants and its subscribers. The receiving half of the packet path. */
export class PublishedTrack {
  readonly #context: MediaContext;
  /** Indexed by `variantIndex`; a track without simulcast has only `h`. */
  readonly streams: (InboundStream | undefined)[] = [undefined, undefined, undefined];
  readonly slots = new Set<TrackSubscriber>();
  /** Links of each variant to other workers, while somebody there needs it. */
  readonly crossings: readonly PacketCrossing[][] = [[], [], []];
  /** Index of the highest variant wanted on each other worker; -1 = none. */
  readonly wantedElsewhere = new Map<object, number>();
  readonly activity = new VariantActivity();
  readonly simulcast: boolean;
  /**
   * Bitrate of each variant, bits per second: the announced or the measured one, whichever is higher. Browsers derive
   * it from the picture size and send up to twice what a client library announces.
   */
  bitrates: PerVariant<number>;
  /** The same without temporal layers, of a simulcast track. */
  reducedBps: ReducedBitrates = NOT_REDUCED;
  muted = false;
  /** True if nothing of the track is forwarded, whatever its publisher sends. */
  blocked = false;
  /** Rises with each change that other workers must know. */
  version = 0;

  readonly #silence: TrackSilence;
  readonly #voice: VoiceActivity | undefined;
  readonly #format: PayloadFormat;
  readonly #intake: PacketIntake;
  #firstMediaMs = -1;
  #measuredAtMs = -1;
  #settled = false;
  readonly #faults = new PictureFaults((type) => this.owner.emit({ type, trackId: this.trackId }));
  readonly #demand = new DemandReports(this);
  #nextStreamId = 0;

  constructor(
    context: MediaContext,
    readonly owner: TrackOwner,
    public params: InboundTrack,
  ) {
    this.#context = context;
    this.#intake = new PacketIntake(context, this);
    this.simulcast = params.rids.length > 0;
    this.bitrates = bitratesOf(params.bitratesBps);
    this.#silence = new TrackSilence(params.kind);
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
   * Returns the variant's stream on this SSRC. A changed SSRC is a new source, whose keyframe the subscribers await.
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
      mayBeLayered: this.#format.hasLayers,
      ssrc,
      descriptorId: this.params.extensions.dependencies,
      id: this.#nextStreamId,
      openedMs: this.#context.world.now(),
      announced: this.#announcedParts(),
      storeBytes: this.owner.storeBytes,
    });
    this.#nextStreamId = (this.#nextStreamId + 1) & 0xff;
    this.streams[index] = stream;
    this.version++;
    if (old !== undefined) for (const slot of old.forwarding.splice(0)) slot.sourceReplaced(old);
    return stream;
  }

  /** Applies what a new offer says about the track. Its kind, its codec and its way of sending stay. */
  renegotiate(params: InboundTrack): void {
    const { formatParameters } = this.params;
    this.params = params;
    this.version++;
    this.#updateBitrates();
    for (const stream of this.streams) if (stream !== undefined) stream.descriptors.id = params.extensions.dependencies;
    if (params.formatParameters === formatParameters) return;
    for (const stream of this.streams) stream?.announce(this.#announcedParts());
  }

  #announcedParts(): AnnouncedParts | undefined {
    // The layers of a simulcast track have their own parameter sets, but share one announcement.
    if (this.simulcast) return undefined;

    return this.#format.createAnnouncedParts(this.params.formatParameters ?? '');
  }

  /** Takes the media packet in `context.view`. */
  receive(stream: InboundStream, nowMs: number): void {
    const { view } = this.#context;
    const { payloadType, redPayloadType } = this.params.codec;
    if (view.payloadType !== payloadType && view.payloadType !== redPayloadType) {
      return this.owner.dropped('unexpected_payload', this, nowMs);
    }
    this.#intake.receive(stream, nowMs);
  }

  /** Takes the retransmission stream's packet in `context.view`. Probes and duplicates are not media. */
  receiveRtx(stream: InboundStream, nowMs: number): void {
    this.#intake.receiveRtx(stream, nowMs);
  }

  /** Does the bookkeeping for an authentic packet, then forwards it to all subscribers of this variant. */
  accept(stream: InboundStream, sequence: number, nowMs: number): void {
    const { view, sealer } = this.#context;
    const { forwarding, payload } = stream;
    const crossings = this.crossings[stream.index]!;
    if (view.isPaddingOnly || this.blocked || !stream.read(view)) {
      if (!view.isPaddingOnly && !this.blocked) this.owner.dropped('malformed_media', this, nowMs);
      this.#resolveEnd(stream, sequence, nowMs);
      for (let i = 0; i < forwarding.length; i++) forwarding[i]!.skip(sequence);
      for (let i = 0; i < crossings.length; i++) crossings[i]!.skip(view, sequence);
      return;
    }
    if (!stream.started) this.#streamStarted(stream, nowMs);
    this.activity.countPacket(stream.index);
    if (view.marker) stream.countPicture();
    // The copy is kept without its padding, so it must not claim to have any.
    if (view.paddingLength > 0) view.buffer[view.start]! &= 0xdf;
    stream.store.put(sequence, view.buffer, view.start, view.payloadEnd, nowMs);
    stream.layers?.count(payload, view.payloadLength, nowMs);
    this.#resolveEnd(stream, sequence, nowMs);

    let audioLevel = -1;
    if (this.#voice !== undefined) {
      audioLevel = view.audioLevel(this.params.extensions.audioLevel);
      if (audioLevel >= 0 && this.#voice.level(audioLevel, nowMs)) this.#voiceChanged();
    }
    if (this.#format.reordersPictures && sequence === stream.newest && stream.hasBFrames(view.timestamp))
      this.#faults.hasBFrames();
    const startsKeyframe = this.#startsKeyframe(stream, sequence, nowMs);
    if (startsKeyframe && this.#isNewKeyframe(stream)) {
      if (this.#format.reordersPictures) this.#faults.keyframe(stream.payload.entryPoint);
      this.#switchWaiting(stream, sequence, nowMs);
    }
    if (view.timestamp === stream.lastKeyframeTimestamp) stream.layers?.countKey(payload, view);
    if (stream.keyframes.gaveUp) this.#repeatRequests(stream);
    if (forwarding.length + crossings.length === 0) return;
    // Header extensions may be forwarded.
    if (view.extensionsEnd - view.extensionsStart + view.payloadLength + PACKET_OVERHEAD > sealer.maxPacketBytes) {
      return this.owner.dropped('oversized', this, nowMs);
    }
    for (let i = 0; i < crossings.length; i++) crossings[i]!.forward(view, sequence);
    if (forwarding.length === 0) return;
    // What ends a layer ends the picture too if its encoder skips the layers above. Only the next packet tells.
    const isOpen = payload.endsLayer && !view.marker && sequence === stream.newest && stream.layers!.spatial > 1;
    if (isOpen) stream.openEnd = sequence;
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
    if (startsKeyframe && sequence < stream.newest) {
      for (let i = 0; i < forwarding.length; i++) forwarding[i]!.catchUp(stream, sequence, nowMs);
    }
  }

  /** Sends the end of a layer to those subscribers who have waited for a packet after it, such as this one. */
  #resolveEnd(stream: InboundStream, sequence: number, nowMs: number): void {
    const { openEnd, forwarding } = stream;
    if (openEnd < 0 || sequence <= openEnd) return;
    stream.openEnd = -1;
    const { storedView, sealer } = this.#context;
    if (!stream.readStored(storedView, openEnd, nowMs)) return;
    sealer.begin(storedView.buffer, storedView.payloadStart, storedView.payloadEnd);
    for (const slot of forwarding) {
      try {
        slot.forwardEnd?.(storedView, stream.storedPayload, openEnd, nowMs);
      } catch (error) {
        slot.fault(error);
      }
    }
    sealer.end();
  }

  /**
   * Returns whether a picture starts here. None does if an earlier packet, perhaps with the parameter sets, is missing.
   */
  #startsKeyframe(stream: InboundStream, sequence: number, nowMs: number): boolean {
    const { entryPoint } = stream.payload;
    if (entryPoint !== EntryPoint.ifFirst) return entryPoint === EntryPoint.yes;
    // Its announced parameter sets were not inserted because it came late or too soon after another key picture.
    if (stream.announced?.isValid === true) return false;
    return !stream.missesBefore(sequence, this.#context.view.timestamp, nowMs);
  }

  /** Audio has no keyframes, so every packet is a start. */
  #isNewKeyframe(stream: InboundStream): boolean {
    if (this.#voice !== undefined) return stream.forwarding.length < this.slots.size;
    const { timestamp } = this.#context.view;
    if (stream.isKeyPicture(timestamp)) return false;
    stream.countKeyframe(timestamp);
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
    this.version++;
    for (const slot of this.slots) {
      slot.selection.variantActive(stream.variant);
      slot.selectionChanged();
    }
  }

  #voiceChanged(): void {
    this.version++;
    this.owner.emit({ type: 'voiceActivity', trackId: this.trackId, status: this.#voice!.status });
  }

  /** A subscriber is about to connect. */
  expect(_nowMs: number): void {}

  addSlot(slot: TrackSubscriber): void {
    this.slots.add(slot);
    slot.selection.setBitrates(leastBitrates(this.bitrates, this.reducedBps));
    if (!this.simulcast) slot.selection.setTarget('h');
    slot.selection.setMuted(this.muted || this.blocked);
    for (const variant of VARIANTS) if (this.isAvailable(variant)) slot.selection.variantActive(variant);
    if (this.isSettled) slot.selection.settle();
    slot.selectionChanged();
    const { voiceStatus: status } = this;
    if (status === undefined || slot.receiver === undefined) return;
    this.owner.emit({ type: 'voiceActivity', trackId: this.trackId, status, peerId: slot.receiver.peerId });
  }

  /** Returns whether this variant can be received now. */
  isAvailable(variant: Variant): boolean {
    return this.stream(variant)?.started === true && (!this.simulcast || this.activity.isActive(variant));
  }

  /** False while the publisher has been told that nobody needs the track. */
  get isWanted(): boolean {
    return true;
  }

  /** True once newcomers need not wait for their target variant. */
  get isSettled(): boolean {
    return this.#settled;
  }

  /** Whether the track carries speech; undefined before its first media, and for video. */
  get voiceStatus(): 'speech' | 'silence' | undefined {
    return this.#firstMediaMs < 0 ? undefined : this.#voice?.status;
  }

  removeSlot(slot: TrackSubscriber): void {
    this.slots.delete(slot);
  }

  setBitrates(bitratesBps: Partial<PerVariant<number>>): void {
    this.params = { ...this.params, bitratesBps: { ...this.params.bitratesBps, ...bitratesBps } };
    this.#updateBitrates();
  }

  #updateBitrates(): void {
    const { l, m, h } = this.bitrates;
    this.bitrates = bitratesOf(this.params.bitratesBps);
    for (const stream of this.streams) {
      if (stream === undefined) continue;
      this.bitrates[stream.variant] = Math.max(this.bitrates[stream.variant], Math.round(stream.measuredBps));
    }
    if (this.bitrates.l !== l || this.bitrates.m !== m || this.bitrates.h !== h) this.version++;
    this.bitratesChanged();
  }

  /** Must be called after a change of the bitrates, and from time to time, since the shares of layers change. */
  protected bitratesChanged(): void {
    const reduced = (variant: Variant): readonly number[] =>
      reducedBitrates(this.bitrates[variant], this.stream(variant)?.layers);
    if (this.simulcast) this.reducedBps = { l: reduced('l'), m: reduced('m'), h: reduced('h') };
    const least = leastBitrates(this.bitrates, this.reducedBps);
    for (const slot of this.slots) slot.selection.setBitrates(least);
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

  /** Withholds the track from all subscribers, or resumes it; a picture returns with its next keyframe. */
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
    this.version++;
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
  #repeatRequests(stream: InboundStream): void {
    stream.keyframes.cancel();
    for (const slot of this.slots) if (slot.selection.awaited === stream.variant) slot.selectionChanged();
  }

  /** Runs the timers of the track. Called about every 20 ms. */
  tick(nowMs: number): void {
    if (this.#voice?.tick(nowMs)) this.#voiceChanged();
    if (this.#silence.isDue(nowMs)) this.#lookForMedia(nowMs);
    if (this.params.kind !== 'video') return;
    this.tickStreams(nowMs);
    if (!this.#settled && this.#firstMediaMs >= 0 && nowMs - this.#firstMediaMs >= SETTLE_MS) {
      this.#settled = true;
      this.version++;
      for (const slot of this.slots) {
        slot.selection.settle();
        slot.selectionChanged();
      }
    }
    if (!this.simulcast) return;
    this.#measure(nowMs);
    this.#demand.tick(nowMs);
    if (!this.muted && !this.blocked) this.#checkActivity(nowMs);
  }

  /** Repeats keyframe requests, and sends the ends of layers after which nothing comes. */
  protected tickStreams(nowMs: number): void {
    for (const stream of this.streams) {
      if (stream === undefined) continue;
      if (stream.keyframes.due(nowMs)) this.owner.requestKeyframe(this, stream);
      const { openEnd } = stream;
      if (openEnd >= 0 && !stream.store.find(openEnd, nowMs, MAX_OPEN_MS)) this.#resolveEnd(stream, openEnd + 1, nowMs);
    }
  }

  /** Time without media as of the last check; 0 while no media is expected. */
  get silentMs(): number {
    return this.#silence.silentMs;
  }

  #lookForMedia(nowMs: number): void {
    const { trackId, still, fallback } = this.params;
    const excused = this.muted || this.blocked || still === true || !this.isWanted || this.#demand.isUnneeded(0);
    const stalled = this.#silence.look(this.streams, excused, nowMs);
    if (stalled !== undefined) this.owner.emit({ type: 'trackStalled', trackId, stalled, fallback });
  }

  #checkActivity(nowMs: number): void {
    for (const { variant, active } of this.activity.check(nowMs)) {
      if (!active) this.#stopped(variant, nowMs);
      this.version++;
      for (const slot of this.slots) {
        if (active) slot.selection.variantActive(variant);
        else slot.selection.variantInactive(variant);
        slot.selectionChanged();
      }
    }
  }

  #stopped(variant: Variant, nowMs: number): void {
    const stream = this.stream(variant);
    stream?.keyframes.cancel();
    if (stream === undefined || !this.#demand.mayHaveStopped(stream.index, nowMs)) return;
    // The publisher has stopped it on request: it is available again with its next packet.
    stream.started = false;
    this.activity.forget(variant);
  }

  /** Ends the track: the publisher removed it or has left. */
  close(): void {
    for (const slot of this.slots) slot.trackGone();
    this.slots.clear();
  }
}
