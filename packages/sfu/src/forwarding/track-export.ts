import type { RtpView } from '@bloom/rtp';
import type { PacketRoute } from '../crossing/shared-ring.js';
import type { TrackState, WorkerLink } from '../crossing/worker-link.js';
import type { MediaContext } from '../context.js';
import type { Variant } from '../media-engine.js';
import { VARIANTS } from '../variants/variants.js';
import type { InboundStream } from './inbound-stream.js';
import { crossingAtFirst } from './mirrored-track.js';
import type { PublishedTrack } from './published-track.js';

/** Interval at which the publisher's clock is repeated, ms. */
const CLOCK_MS = 1000;
/** Fixed part of an RTP header, and one byte of padding. */
const EMPTY_PACKET = Buffer.alloc(13, 1);

interface TrackExportOptions {
  link: WorkerLink;
  track: PublishedTrack;
  room: number;
  /** Number of the track on this worker. */
  number: number;
}

/** A track of this worker, as seen by its room's part on another worker. */
export class TrackExport {
  readonly track: PublishedTrack;
  readonly #context: MediaContext;
  readonly #options: TrackExportOptions;
  readonly #crossings: readonly VariantCrossing[];
  #version: number;

  /** Announces the track to the other worker. */
  constructor(context: MediaContext, options: TrackExportOptions) {
    const { link, track, room, number } = options;
    this.#context = context;
    this.#options = options;
    this.track = track;
    this.#crossings = VARIANTS.map(
      (_, variant) => new VariantCrossing(context, link, { room, track: number, variant }),
    );
    this.#version = track.version;
    link.post({ room, type: 'track', track: number, peerId: track.owner.peerId, state: stateOf(track) });
    // Everything crosses until the other part has answered, so that it misses nothing that somebody there waits for.
    this.need(crossingAtFirst(track.params), VARIANTS.length - 1);
  }

  /** Lets exactly these variants cross, including those that have not begun. `highest`: see `CrossingMessage`. */
  need(variants: readonly Variant[], highest: number): void {
    this.track.wantedElsewhere.set(this, highest);
    for (const [i, crossing] of this.#crossings.entries()) {
      const crossings = this.track.crossings[i]!;
      const at = crossings.indexOf(crossing);
      const isNeeded = variants.includes(VARIANTS[i]!);
      if (isNeeded && at < 0) {
        crossings.push(crossing);
        crossing.clockDueMs = Number.NEGATIVE_INFINITY;
      } else if (!isNeeded && at >= 0) {
        crossings.splice(at, 1);
      }
    }
  }

  /** Sends all changes. Called every 20 ms. */
  tick(nowMs: number): void {
    const { link, room, number } = this.#options;
    if (this.#version !== this.track.version) {
      this.#version = this.track.version;
      link.post({ room, type: 'state', track: number, state: stateOf(this.track) });
    }
    for (const [i, crossing] of this.#crossings.entries()) {
      const stream = this.track.streams[i];
      if (stream !== undefined && this.track.crossings[i]!.includes(crossing)) this.#sendClock(stream, crossing, nowMs);
    }
  }

  #sendClock(stream: InboundStream, crossing: VariantCrossing, nowMs: number): void {
    const { link, room, number } = this.#options;
    const { senderInfo: info } = this.#context;
    if (nowMs < crossing.clockDueMs && crossing.clockSsrc === stream.ssrc) return;
    if (!stream.clock.report(nowMs, info)) return;
    crossing.clockDueMs = nowMs + CLOCK_MS;
    crossing.clockSsrc = stream.ssrc;
    const { variant, ssrc } = stream;
    const ntp = [info.ntpSeconds, info.ntpFraction] as const;
    link.post({ room, type: 'clock', track: number, variant, ssrc, ntp, rtp: info.rtpTimestamp });
  }

  /** Ends the track for the other worker. */
  close(): void {
    this.stop();
    const { link, room, number } = this.#options;
    link.post({ room, type: 'gone', track: number });
  }

  /** Stops everything from crossing, because the other worker has ended or left the room. */
  stop(): void {
    this.need([], -1);
    this.track.wantedElsewhere.delete(this);
  }
}

/** Carries the packets of one variant to another worker. */
class VariantCrossing {
  readonly #context: MediaContext;
  readonly #link: WorkerLink;
  readonly #route: PacketRoute;
  clockDueMs = Number.NEGATIVE_INFINITY;
  clockSsrc = -1;

  constructor(context: MediaContext, link: WorkerLink, route: PacketRoute) {
    this.#context = context;
    this.#link = link;
    this.#route = route;
  }

  forward(view: RtpView, sequence: number): void {
    this.#send(view.buffer.subarray(view.start, view.payloadEnd), sequence);
  }

  skip(view: RtpView, sequence: number): void {
    view.buffer.copy(EMPTY_PACKET, 0, view.start, view.start + EMPTY_PACKET.length - 1);
    EMPTY_PACKET[0] = 0xa0;
    this.#send(EMPTY_PACKET, sequence);
  }

  #send(packet: Buffer, sequence: number): void {
    if (this.#link.forward(this.#route, packet, sequence & 0xffff)) this.#context.packetsCrossed++;
    else this.#context.dropped.crossing_overrun++;
  }
}

function stateOf(track: PublishedTrack): TrackState {
  const { params, muted, blocked, isSettled, voiceStatus, bitrates } = track;
  const available: TrackState['available'] = {};
  for (const variant of VARIANTS) {
    if (track.isAvailable(variant)) available[variant] = track.stream(variant)!.ssrc;
  }
  return { params, muted, blocked, settled: isSettled, voice: voiceStatus, bitrates, available };
}
