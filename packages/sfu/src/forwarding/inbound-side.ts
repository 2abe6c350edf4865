import { emptyReportBlock, RedReader, type ReportBlock, type RtcpReader, TransportCcRecorder } from '@bloom/rtp';
import type { OpenFailureName } from '@bloom/webrtc';
import type { InboundTrack, InboundTrackStats, RtpDropCause, MediaRoomEvent } from '../media-engine.js';
import { VARIANTS } from '../variants/variants.js';
import type { TrackKind } from '../media-frames.js';
import { Backlog } from '../backlog.js';
import type { MediaContext } from '../context.js';
import { DropReports, type DroppedMedia } from './drop-reports.js';
import { FallbackTrack, keyOf, tracksWithId } from './fallback-track.js';
import type { InboundStream } from './inbound-stream.js';
import { PublishedTrack, type TrackOwner } from './published-track.js';
import type { QualitySigns } from './quality-meter.js';
import { StartEstimate } from './start-estimate.js';
import { type Route, StreamRoutes } from './stream-routes.js';

const REPORT_INTERVAL_MS = 1000;
/** The first report is sent early, to start the publisher's round-trip measurement and congestion control. */
const FIRST_REPORT_MS = 300;
const REPORT_BLOCKS = 31;
/** Time without media after which a client's media counts as missing, ms. */
const NO_MEDIA_MS = 10_000;

interface InboundSideOptions {
  peerId: string;
  /** Sender SSRC of our feedback. */
  localSsrc: number;
  sendRtcp(): void;
  emit(event: MediaRoomEvent): void;
}

/** The receiving side of one client: assigns packets to streams and sends reports. */
export class InboundSide implements TrackOwner {
  readonly #context: MediaContext;
  readonly #options: InboundSideOptions;
  readonly backlog: Backlog;
  /** With the keys of `keyOf`. */
  readonly tracks = new Map<string, PublishedTrack>();
  readonly #routes = new StreamRoutes((cause, track, nowMs) => this.dropped(cause, track, nowMs));
  readonly #drops: DropReports;
  #accepted: Readonly<Record<TrackKind, boolean>> = { audio: true, video: true };
  /** Ids of tracks withheld from their subscribers. */
  readonly #blocked = new Set<string>();
  /** Ids of tracks removed on behalf of the backend. */
  readonly #removed = new Set<string>();
  #transportCcId: number | undefined;
  #recorder: TransportCcRecorder | undefined;
  readonly #startEstimate = new StartEstimate();
  readonly #blocks: ReportBlock[] = [];
  #reportDueMs = -1;

  constructor(context: MediaContext, options: InboundSideOptions) {
    this.#context = context;
    this.backlog = new Backlog(context.backlog);
    this.#options = options;
    const { peerId, emit } = options;
    this.#drops = new DropReports((dropped) => emit({ type: 'mediaDropped', peerId, ...dropped }));
  }

  get peerId(): string {
    return this.#options.peerId;
  }

  get storeBytes(): number {
    let sum = 0;
    for (const { streams } of this.tracks.values()) {
      for (const stream of streams) sum += stream?.store.buffer.length ?? 0;
    }
    return sum;
  }

  emit(event: MediaRoomEvent): void {
    this.#options.emit(event);
  }

  /** Returns the tracks that appeared and those that were removed; the caller closes the latter. */
  negotiate(negotiated: readonly InboundTrack[]): { added: PublishedTrack[]; removed: PublishedTrack[] } {
    const inbound = negotiated.filter(({ kind, trackId }) => this.#accepted[kind] && !this.#removed.has(trackId));
    const added: PublishedTrack[] = [];
    const removed: PublishedTrack[] = [];
    const wanted = new Map(inbound.map((params) => [keyOf(params), params]));
    for (const [key, track] of this.tracks) {
      const params = wanted.get(key);
      if (params !== undefined && isSameSource(track.params, params)) continue;
      this.#remove(track);
      removed.push(track);
    }
    for (const [key, params] of wanted) {
      const existing = this.tracks.get(key);
      const before = existing?.params;
      const Track = params.fallback === true ? FallbackTrack : PublishedTrack;
      const track = existing ?? new Track(this.#context, this, params);
      if (existing === undefined) {
        this.tracks.set(key, track);
        track.setBlocked(this.#blocked.has(params.trackId), this.#context.world.now());
        added.push(track);
      } else {
        existing.renegotiate(params);
      }
      const signalsNewSource = params.ssrc !== before?.ssrc || params.rtxSsrc !== before?.rtxSsrc;
      if (signalsNewSource) this.#routes.expectSignalled(track, params);
    }
    this.#routes.negotiated(this.tracks.values());
    const transportCcId = inbound.find(
      ({ extensions, codec }) => extensions.transportCc !== undefined && codec.feedback.includes('transport-cc'),
    )?.extensions.transportCc;
    // Keep the id even without tracks, because late packets still count.
    if (transportCcId !== undefined) this.#transportCcId = transportCcId;
    if (this.#transportCcId !== undefined) {
      this.#recorder ??= new TransportCcRecorder({ senderSsrc: this.#options.localSsrc });
    }
    return { added, removed };
  }

  /** Limits the kinds of tracks, now and in later negotiations. Returns the removed tracks; the caller closes them. */
  setAccepted(accepted: Readonly<Record<TrackKind, boolean>>): PublishedTrack[] {
    this.#accepted = accepted;
    const refused = [...this.tracks.values()].filter(({ params }) => !accepted[params.kind]);
    for (const track of refused) this.#remove(track);
    return refused;
  }

  /** Withholds a track, including one that replaces it under the same id. */
  setBlocked(trackId: string, blocked: boolean): void {
    if (blocked) this.#blocked.add(trackId);
    else this.#blocked.delete(trackId);
    for (const track of this.withId(trackId)) track.setBlocked(blocked, this.#context.world.now());
  }

  /** Removes a track and refuses its id from now on. Returns it and its fallback; the caller closes them. */
  removeTrack(trackId: string): PublishedTrack[] {
    this.#removed.add(trackId);
    const tracks = this.withId(trackId);
    for (const track of tracks) this.#remove(track);
    return tracks;
  }

  /** Returns the track and its fallback. */
  withId(trackId: string): PublishedTrack[] {
    return tracksWithId(this.tracks, trackId);
  }

  /** True if a track that should be sending has sent nothing for 10 s. */
  get lacksMedia(): boolean {
    for (const track of this.tracks.values()) if (track.silentMs >= NO_MEDIA_MS) return true;
    return false;
  }

  /** Ends a negotiation cycle, after which the client's own send estimate starts over. */
  pathReady(nowMs: number): void {
    this.#startEstimate.begin(nowMs);
  }

  #remove(track: PublishedTrack): void {
    this.tracks.delete(keyOf(track.params));
    this.#routes.remove(track);
    this.#drops.forget(track.trackId);
  }

  /** Counts a dropped packet, and reports it if such packets do not stop. */
  dropped(cause: RtpDropCause, track: PublishedTrack | undefined, nowMs: number): void {
    this.#context.dropped[cause]++;
    if (cause !== 'ended') this.#drops.count(cause, track?.trackId, nowMs);
  }

  /** Records a packet that SRTP refused, which the port has counted. */
  refused(reason: OpenFailureName, nowMs: number): void {
    // Networks and clients duplicate packets.
    if (reason === 'replayed') return;
    this.#drops.count(reason === 'malformed' ? 'malformed_media' : reason, undefined, nowMs);
  }

  /** Takes one authentic packet from this client. */
  receive(buffer: Buffer, start: number, end: number, nowMs: number): void {
    const { view } = this.#context;
    if (!view.parse(buffer, start, end)) return this.dropped('malformed_media', undefined, nowMs);
    const transportSequence = view.transportSequence(this.#transportCcId);
    if (transportSequence >= 0) this.#recorder?.record(transportSequence, nowMs);
    const route = this.#routes.bySsrc.get(view.ssrc) ?? this.#routes.learn(view, nowMs);
    if (route === undefined) return;
    if (this.#reportDueMs < 0) this.#reportDueMs = nowMs + FIRST_REPORT_MS;
    if (route.rtx) route.track.receiveRtx(route.stream, nowMs);
    else if (view.payloadType === route.track.params.codec.redPayloadType) this.#receiveRedundant(route, nowMs);
    else route.track.receive(route.stream, nowMs);
  }

  /** Takes lost packets out of the one in the view, which repeats them, and then the packet itself. */
  #receiveRedundant({ track, stream }: Route, nowMs: number): void {
    const { view } = this.#context;
    if (view.isPaddingOnly) return track.receive(stream, nowMs);
    const red = (stream.redundancy ??= new RedReader());
    if (!red.read(view, track.params.codec.payloadType)) return this.dropped('malformed_media', track, nowMs);
    const { unwrapper } = stream;
    const number = unwrapper.peek(view.sequence);
    for (let i = 0; i < red.count && stream.started; i++) {
      const repeated = number - red.count + i;
      if (repeated <= unwrapper.newest || !red.restore(i, repeated, view)) continue;
      unwrapper.unwrap(view.sequence);
      stream.losses.received(repeated, nowMs);
      stream.recovered++;
      stream.markRestored(repeated);
      track.accept(stream, repeated, nowMs);
    }
    if (red.unwrap(view)) track.receive(stream, nowMs);
  }

  senderReport(reader: RtcpReader, nowMs: number): void {
    const info = this.#context.senderInfo;
    if (!reader.readSenderInfo(info)) return;
    const route = this.#routes.bySsrc.get(info.ssrc);
    if (route === undefined || route.rtx) return;
    route.stream.clock.update(info, nowMs);
    route.stream.statistics.senderReport(info.ntpSeconds, info.ntpFraction, nowMs);
  }

  requestKeyframe(track: PublishedTrack, stream: InboundStream): void {
    const { writer } = this.#context;
    const { localSsrc } = this.#options;
    writer.reset();
    if (track.params.codec.feedback.includes('nack pli') || !track.params.codec.feedback.includes('ccm fir')) {
      writer.pli(localSsrc, stream.ssrc);
    } else {
      writer.fir(localSsrc, stream.ssrc, stream.firSequence++);
    }
    stream.plis++;
    this.#options.sendRtcp();
  }

  /** Sends keyframe requests, NACKs, transport-wide feedback and reports. Called every 20 ms. */
  tick(nowMs: number, roundTripMs: number): void {
    for (const track of this.tracks.values()) track.tick(nowMs);
    this.#context.writer.reset();
    for (const track of this.tracks.values()) this.#writeNacks(track, nowMs, roundTripMs);
    this.#flush();
    if (this.#recorder !== undefined) {
      if (this.#recorder.isDue(nowMs)) this.#writeTransportFeedback(this.#recorder, nowMs);
      this.#writeAllowance(nowMs);
    }
    if (this.#reportDueMs >= 0 && nowMs >= this.#reportDueMs) this.#writeReport(nowMs);
  }

  #writeNacks(track: PublishedTrack, nowMs: number, roundTripMs: number): void {
    const { writer, nacks } = this.#context;
    for (const stream of track.streams) {
      if (stream === undefined || stream.losses.missing === 0) continue;
      if (!track.params.codec.feedback.includes('nack')) {
        stream.losses.clear();
        continue;
      }
      const count = stream.losses.due(nowMs, roundTripMs, nacks);
      const { inserted } = stream;
      if (inserted !== undefined) for (let i = 0; i < count; i++) nacks[i] = inserted.sendersOf(nacks[i]!);
      let done = 0;
      while (done < count) {
        if (writer.remaining < 64) this.#flush();
        done += writer.nack(this.#options.localSsrc, stream.ssrc, nacks.subarray(done, count));
        stream.nacks++;
        if (done < count) this.#flush();
      }
    }
  }

  #writeTransportFeedback(recorder: TransportCcRecorder, nowMs: number): void {
    const { writer } = this.#context;
    // The media SSRC has no meaning in transport-wide feedback, but must be one of the publisher's.
    const [mediaSsrc] = this.#routes.bySsrc.keys();
    // A jump in the arrival times ends a feedback packet early; a few packets cover any backlog.
    for (let i = 0; i < 8; i++) {
      writer.reset();
      if (!recorder.write(writer, mediaSsrc ?? 0, nowMs)) return;
      this.#options.sendRtcp();
    }
  }

  #writeAllowance(nowMs: number): void {
    let expectedBps = 0;
    for (const { params, bitrates } of this.tracks.values()) {
      if (params.kind !== 'video' || params.fallback === true) continue;
      for (const variant of params.rids.length === 0 ? (['h'] as const) : params.rids) expectedBps += bitrates[variant];
    }
    const bps = this.#startEstimate.due(nowMs, expectedBps);
    if (bps === 0) return;
    const ssrcs: number[] = [];
    for (const [ssrc, { rtx }] of this.#routes.bySsrc) if (!rtx && ssrcs.length < REPORT_BLOCKS) ssrcs.push(ssrc);
    this.#context.writer.reset().remb(this.#options.localSsrc, bps, ssrcs);
    this.#options.sendRtcp();
  }

  #writeReport(nowMs: number): void {
    this.#reportDueMs = nowMs + REPORT_INTERVAL_MS;
    const blocks = this.#blocks;
    let used = 0;
    for (const track of this.tracks.values()) {
      for (const stream of track.streams) {
        if (stream === undefined || !stream.started) continue;
        const block = (blocks[used] ??= emptyReportBlock());
        if (stream.statistics.report(stream.ssrc, nowMs, block)) used++;
        if (used === REPORT_BLOCKS) {
          this.#sendReport(used);
          used = 0;
        }
      }
    }
    if (used > 0) this.#sendReport(used);
  }

  #sendReport(count: number): void {
    this.#context.writer.reset().receiverReport(this.#options.localSsrc, this.#blocks.slice(0, count));
    this.#options.sendRtcp();
  }

  #flush(): void {
    const { writer } = this.#context;
    if (writer.length > 0) this.#options.sendRtcp();
    writer.reset();
  }

  /**
   * Adds up the packets that have arrived, and those that have not at first, of streams that rest too: their losses
   * must not look like new ones when they resume.
   */
  qualitySigns(): Pick<QualitySigns, 'received' | 'missing'> {
    const signs = { received: 0, missing: 0 };
    for (const { streams } of this.tracks.values()) {
      for (const stream of streams) {
        if (stream === undefined) continue;
        const { packets, lost, repairs } = stream.statistics;
        signs.received += packets - repairs;
        signs.missing += Math.max(0, lost) + repairs;
      }
    }
    return signs;
  }

  stats(): InboundTrackStats[] {
    const stats: InboundTrackStats[] = [];
    for (const track of this.tracks.values()) {
      for (const variant of VARIANTS) {
        const stream = track.stream(variant);
        if (stream?.started) stats.push(streamStats(track, stream));
      }
    }
    return stats;
  }

  droppedStats(): DroppedMedia[] {
    return this.#drops.stats();
  }

  close(): PublishedTrack[] {
    const tracks = [...this.tracks.values()];
    this.tracks.clear();
    this.#routes.clear();
    return tracks;
  }
}

/** Returns false if it is a different track under the old id: its codec or its way of sending changed. */
function isSameSource(before: InboundTrack, after: InboundTrack): boolean {
  return (
    before.mid === after.mid &&
    before.kind === after.kind &&
    before.codec.name === after.codec.name &&
    before.rids.length > 0 === after.rids.length > 0
  );
}

function streamStats(track: PublishedTrack, stream: InboundStream): InboundTrackStats {
  const { statistics } = stream;
  return {
    ssrc: stream.ssrc,
    trackId: track.trackId,
    kind: track.params.kind,
    variant: stream.variant,
    active: track.isWanted && (!track.simulcast || track.activity.isActive(stream.variant)),
    codec: track.params.codec.name,
    ...(track.params.fallback === true ? { fallback: true } : {}),
    packets: statistics.packets,
    bytes: statistics.bytes,
    markers: stream.markers,
    keyframes: stream.keyframeCount,
    lost: Math.max(0, statistics.lost),
    nacks: stream.nacks,
    plis: stream.plis,
    rtx: { packets: stream.rtxPackets, bytes: stream.rtxBytes },
    recovered: stream.recovered,
    jitterMs: statistics.jitterMs,
  };
}
