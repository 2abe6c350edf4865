import type { Log } from '@bloom/log';
import { emptyReportBlock, emptySenderInfo, RtcpReader, RtcpWriter, RtpView, TransportCcFeedback } from '@bloom/rtp';
import type { MediaPort, PacketSealer } from '@bloom/webrtc';
import type { RtpDropCause } from './media-engine.js';
import type { WorkerLink } from './crossing/worker-link.js';
import { Backlog } from './backlog.js';

/** Maximum RTCP compound, bytes; below any path's MTU. */
const MAX_COMPOUND = 1150;

/** Environment of the forwarding code: time, randomness and a log. */
interface MediaWorld {
  /** Monotonic, ms; the same clock as the port's packet times. */
  now(): number;
  /** Returns a random unsigned 32-bit integer. */
  random(): number;
  log: Log;
}

/** Reasons for drops in the forwarding layer; the port counts its own. */
type ForwardingDrop =
  | RtpDropCause
  /** Frames that a component did not consume in time, or fed faster than a room accepts them. */
  | 'tap_overrun'
  | 'feed_overrun'
  /** Unreadable SCTP packets, and data channel messages with a broken header. */
  | 'data_malformed'
  /** Data channel messages above the rate limit, without permission, or for a client that reads too slowly. */
  | 'data_rate'
  | 'data_denied'
  | 'data_unheard'
  | 'data_backlog'
  /** Packets for another worker that is too far behind. */
  | 'crossing_overrun';

/**
 * Shared by all rooms of one worker: the environment, counters, and the scratch objects that keep the packet path free
 * of allocations. The path is synchronous, so one of each is enough.
 */
export class MediaContext {
  packetsForwarded = 0;
  /** Packets passed to other workers. */
  packetsCrossed = 0;
  /** Data channel messages: received from clients, and copies queued for receivers. */
  readonly dataMessages = { received: 0, sent: 0 };
  readonly dropped: Record<ForwardingDrop, number> = {
    unknown_ssrc: 0,
    unpublished: 0,
    ended: 0,
    unexpected_payload: 0,
    unknown_rid: 0,
    ssrc_changes: 0,
    malformed_media: 0,
    oversized: 0,
    tap_overrun: 0,
    feed_overrun: 0,
    data_malformed: 0,
    data_rate: 0,
    data_denied: 0,
    data_unheard: 0,
    data_backlog: 0,
    crossing_overrun: 0,
  };

  /** Media queued in the feeds and taps of all rooms. */
  readonly backlog = new Backlog();
  /** The packet being received. */
  readonly view = new RtpView();
  /** A packet read from a store: a retransmission, or the rest of a keyframe on a switch. */
  readonly storedView = new RtpView();
  readonly reader = new RtcpReader();
  readonly writer = new RtcpWriter(MAX_COMPOUND);
  readonly feedback = new TransportCcFeedback();
  readonly block = emptyReportBlock();
  readonly senderInfo = emptySenderInfo();
  readonly nacks = new Float64Array(256);
  /** Ways to other workers, by their numbers. */
  readonly links = new Map<number, WorkerLink>();
  #tracks = 0;

  constructor(
    readonly world: MediaWorld,
    /** Opens transports. */
    readonly port: Pick<MediaPort, 'openTransport'>,
    readonly sealer: PacketSealer,
  ) {}

  /** Numbers are never reused, so late messages about a track match no other one. */
  newTrackNumber(): number {
    return ++this.#tracks;
  }
}
