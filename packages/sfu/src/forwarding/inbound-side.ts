import { emptyReportBlock, type ReportBlock, type RtcpReader, type RtpView, TransportCcRecorder } from '@bloom/rtp';
import type { InboundTrack, InboundTrackStats, MediaRoomEvent, Variant } from '../media-engine.js';
import { isVariant, VARIANTS } from '../variants/variants.js';
import type { TrackKind } from '../media-frames.js';
import { Backlog } from './backlog.js';
import type { MediaContext } from './context.js';
import type { InboundStream } from './inbound-stream.js';
import { PublishedTrack, type TrackOwner } from './published-track.js';
import { StartAllowance } from './start-allowance.js';

const REPORT_INTERVAL_MS = 1000;
/** The first report is sent early, to start the publisher's round-trip measurement and congestion control. */
const FIRST_REPORT_MS = 300;
const REPORT_BLOCKS = 31;
/** Sources per variant that the SDP does not name: at most this many per window of ms. */
const MAX_LEARNT = 4;
const LEARNT_WINDOW_MS = 1000;
/** Sources of one client whose names are remembered. */
const MAX_NAMES = 256;

/** What the first packets of a source say about it. */
interface SourceName {
  mid: string;
  variant: Variant;
}

interface Route {
  track: PublishedTrack;
  stream: InboundStream;
  rtx: boolean;
}

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
  readonly tracks = new Map<string, PublishedTrack>();
  readonly #byMid = new Map<string, PublishedTrack>();
  readonly #routes = new Map<number, Route>();
  /** Retransmission SSRCs seen before the stream they repair, by `mid/variant`. */
  readonly #pendingRtx = new Map<string, number>();
  /**
   * Sources that named themselves, the latest last. Kept when their tracks end: browsers omit the name once we have
   * reported on a source, and reuse the source when its track may be published again.
   */
  readonly #names = new Map<number, SourceName>();
  #accepted: Readonly<Record<TrackKind, boolean>> = { audio: true, video: true };
  /** Ids of tracks withheld from their subscribers. */
  readonly #blocked = new Set<string>();
  /** Ids of tracks removed on behalf of the backend. */
  readonly #removed = new Set<string>();
  #midIds: number[] = [];
  #transportCcId: number | undefined;
  #recorder: TransportCcRecorder | undefined;
  readonly #allowance = new StartAllowance();
  readonly #blocks: ReportBlock[] = [];
  #reportDueMs = -1;

  constructor(context: MediaContext, options: InboundSideOptions) {
    this.#context = context;
    this.backlog = new Backlog(context.backlog);
    this.#options = options;
  }

  get peerId(): string {
    return this.#options.peerId;
  }

  emit(event: MediaRoomEvent): void {
    this.#options.emit(event);
  }

  /** Returns the tracks that appeared and those that were removed; the caller closes the latter. */
  negotiate(negotiated: readonly InboundTrack[]): { added: PublishedTrack[]; removed: PublishedTrack[] } {
    const inbound = negotiated.filter(({ kind, trackId }) => this.#accepted[kind] && !this.#removed.has(trackId));
    const added: PublishedTrack[] = [];
    const removed: PublishedTrack[] = [];
    const wanted = new Map(inbound.map((params) => [params.trackId, params]));
    for (const track of this.tracks.values()) {
      const params = wanted.get(track.trackId);
      if (params !== undefined && isSameSource(track.params, params)) continue;
      this.#remove(track);
      removed.push(track);
    }
    for (const params of inbound) {
      const existing = this.tracks.get(params.trackId);
      const signalledBefore = existing?.params.ssrc;
      const track = existing ?? new PublishedTrack(this.#context, this, params);
      if (existing === undefined) {
        this.tracks.set(params.trackId, track);
        track.setBlocked(this.#blocked.has(params.trackId), this.#context.world.now());
        added.push(track);
      } else {
        existing.params = params;
        existing.setBitrates({});
      }
      this.#byMid.set(params.mid, track);
      if (params.ssrc !== undefined && params.ssrc !== signalledBefore) this.#expectSignalled(track, params);
    }
    this.#midIds = [...new Set(inbound.flatMap(({ extensions }) => extensions.mid ?? []))];
    const transportCcId = inbound.find(
      ({ extensions, codec }) => extensions.transportCc !== undefined && codec.feedback.includes('transport-cc'),
    )?.extensions.transportCc;
    // Keep the id without tracks too, because late packets still count.
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
    this.tracks.get(trackId)?.setBlocked(blocked, this.#context.world.now());
  }

  /** Removes a track and refuses its id from now on. Returns it in a list; the caller closes it. */
  removeTrack(trackId: string): PublishedTrack[] {
    this.#removed.add(trackId);
    const track = this.tracks.get(trackId);
    if (track === undefined) return [];
    this.#remove(track);
    return [track];
  }

  /** Ends a negotiation cycle, after which the client's own send estimate starts over. */
  pathReady(nowMs: number): void {
    this.#allowance.begin(nowMs);
  }

  #remove(track: PublishedTrack): void {
    this.tracks.delete(track.trackId);
    if (this.#byMid.get(track.params.mid) === track) this.#byMid.delete(track.params.mid);
    for (const [ssrc, route] of this.#routes) if (route.track === track) this.#routes.delete(ssrc);
    for (const variant of VARIANTS) this.#pendingRtx.delete(`${track.params.mid}/${variant}`);
  }

  #expectSignalled(track: PublishedTrack, params: InboundTrack): void {
    if (params.rids.length > 0) return;
    this.#bind(track, 'h', params.ssrc!);
    if (params.rtxSsrc !== undefined) this.#bindRtx(track, 'h', params.rtxSsrc);
  }

  #bind(track: PublishedTrack, variant: Variant, ssrc: number): Route {
    const old = track.stream(variant);
    if (old !== undefined && old.ssrc !== ssrc) {
      this.#routes.delete(old.ssrc);
      this.#routes.delete(old.rtxSsrc);
    }
    const route = { track, stream: track.openStream(variant, ssrc), rtx: false };
    this.#routes.set(ssrc, route);
    const pending = this.#pendingRtx.get(`${track.params.mid}/${variant}`);
    if (pending !== undefined) this.#bindRtx(track, variant, pending);
    return route;
  }

  #bindRtx(track: PublishedTrack, variant: Variant, ssrc: number): Route | undefined {
    const stream = track.stream(variant);
    if (stream === undefined) {
      this.#pendingRtx.set(`${track.params.mid}/${variant}`, ssrc);
      return undefined;
    }
    this.#pendingRtx.delete(`${track.params.mid}/${variant}`);
    this.#routes.delete(stream.rtxSsrc);
    stream.rtxSsrc = ssrc;
    const route = { track, stream, rtx: true };
    this.#routes.set(ssrc, route);
    return route;
  }

  /** Takes one authentic packet from this client. */
  receive(buffer: Buffer, start: number, end: number, nowMs: number): void {
    const { view, dropped } = this.#context;
    if (!view.parse(buffer, start, end)) {
      dropped.malformed_media++;
      return;
    }
    const transportSequence = view.transportSequence(this.#transportCcId);
    if (transportSequence >= 0) this.#recorder?.record(transportSequence, nowMs);
    const route = this.#routes.get(view.ssrc) ?? this.#learn(view, nowMs);
    if (route === undefined) {
      dropped.unknown_ssrc++;
      return;
    }
    if (this.#reportDueMs < 0) this.#reportDueMs = nowMs + FIRST_REPORT_MS;
    if (route.rtx) route.track.receiveRtx(route.stream, nowMs);
    else route.track.receive(route.stream, nowMs);
  }

  /** Assigns an unknown SSRC by the mid and rid of its first packets, which may have arrived for an earlier track. */
  #learn(view: RtpView, nowMs: number): Route | undefined {
    const name = this.#names.get(view.ssrc);
    const mid = this.#midOf(view) ?? name?.mid;
    const track = mid === undefined ? undefined : this.#byMid.get(mid);
    if (mid === undefined || track === undefined) return undefined;
    const { codec, extensions, rids } = track.params;
    const named = name?.mid === mid ? name.variant : undefined;
    if (view.payloadType === codec.payloadType) {
      const variant = rids.length === 0 ? 'h' : (view.textExtension(extensions.rid) ?? named);
      if (variant === undefined || !isVariant(variant)) return undefined;
      if (rids.length > 0 && !rids.includes(variant)) return undefined;
      // A new source costs a packet store, so two SSRCs that claim one variant must not create one per packet.
      const present = track.stream(variant);
      const recent = present !== undefined && nowMs - present.learntSinceMs < LEARNT_WINDOW_MS ? present : undefined;
      if (recent !== undefined && recent.learnt >= MAX_LEARNT) return undefined;
      const route = this.#bind(track, variant, view.ssrc);
      route.stream.learnt = (recent?.learnt ?? 0) + 1;
      route.stream.learntSinceMs = recent?.learntSinceMs ?? nowMs;
      this.#keepName(view.ssrc, { mid, variant });
      return route;
    }
    if (view.payloadType !== codec.rtxPayloadType) return undefined;
    const variant = rids.length === 0 ? 'h' : (view.textExtension(extensions.repairedRid) ?? named);
    if (variant === undefined || !isVariant(variant)) return undefined;
    if (rids.length > 0 && !rids.includes(variant)) return undefined;
    this.#keepName(view.ssrc, { mid, variant });
    return this.#bindRtx(track, variant, view.ssrc);
  }

  #midOf(view: RtpView): string | undefined {
    for (const id of this.#midIds) {
      const mid = view.textExtension(id);
      if (mid !== undefined) return mid;
    }
    return undefined;
  }

  #keepName(ssrc: number, name: SourceName): void {
    this.#names.delete(ssrc);
    this.#names.set(ssrc, name);
    if (this.#names.size <= MAX_NAMES) return;
    for (const oldest of this.#names.keys()) return void this.#names.delete(oldest);
  }

  senderReport(reader: RtcpReader, nowMs: number): void {
    const info = this.#context.senderInfo;
    if (!reader.readSenderInfo(info)) return;
    const route = this.#routes.get(info.ssrc);
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
    const [mediaSsrc] = this.#routes.keys();
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
      if (params.kind !== 'video') continue;
      for (const variant of params.rids.length === 0 ? (['h'] as const) : params.rids) expectedBps += bitrates[variant];
    }
    const bps = this.#allowance.due(nowMs, expectedBps);
    if (bps === 0) return;
    const ssrcs: number[] = [];
    for (const [ssrc, { rtx }] of this.#routes) if (!rtx && ssrcs.length < REPORT_BLOCKS) ssrcs.push(ssrc);
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

  close(): PublishedTrack[] {
    const tracks = [...this.tracks.values()];
    this.tracks.clear();
    this.#byMid.clear();
    this.#routes.clear();
    this.#pendingRtx.clear();
    this.#names.clear();
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
    variant: stream.variant,
    active: !track.simulcast || track.activity.isActive(stream.variant),
    codec: track.params.codec.name,
    packets: statistics.packets,
    bytes: statistics.bytes,
    markers: stream.markers,
    keyframes: stream.keyframeCount,
    lost: Math.max(0, statistics.lost),
    nacks: stream.nacks,
    plis: stream.plis,
    rtx: { packets: stream.rtxPackets, bytes: stream.rtxBytes },
    jitterMs: statistics.jitterMs,
  };
}
