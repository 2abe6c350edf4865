import { PART_BYTES, type PayloadFormat, payloadFormat, toNtp } from '@bloom/rtp';
import type { InboundTrack, MediaRoomEvent, RtpDropCause } from '../media-engine.js';
import { asBuffer, type FeedFrame, type FeedOptions } from '../media-frames.js';
import { Backlog, BacklogShare } from '../backlog.js';
import type { MediaContext } from '../context.js';
import type { InboundStream } from './inbound-stream.js';
import { PACKET_OVERHEAD, PublishedTrack, type TrackOwner } from './published-track.js';

const HEADER_BYTES = 12;
/**
 * Packets of a feed that are sent immediately; the rest of a large picture follows on the ticks, so that no queue
 * overflows.
 */
const PACKETS_PER_TURN = 32;
/**
 * Queued packets, in addition to the bytes of the backlog: a component that exceeds either feeds faster than any room
 * takes.
 */
const MAX_QUEUED = 4096;
/** RTP time is mapped to the wall clock again when the two have drifted this far apart, ms. */
const MAX_DRIFT_MS = 200;
/** Frames that are late for less than this were held up, for instance by a busy node; later frames make up for it. */
const HELD_UP_MS = 1_000;
/** The drift limit for frames with a due time, which has no jitter, ms. */
const MAX_DUE_DRIFT_MS = 15;

interface FrameFeedOptions extends Omit<FeedOptions, 'onKeyframeWanted'> {
  emit(event: MediaRoomEvent): void;
  keyframeWanted(): void;
}

interface Packet {
  bytes: Buffer;
}

/** A track whose frames come from a component: packetised here, then forwarded like any published track. */
export class FrameFeed implements TrackOwner {
  readonly #context: MediaContext;
  readonly #options: FrameFeedOptions;
  readonly #format: PayloadFormat;
  readonly track: PublishedTrack;
  readonly backlog: Backlog;
  /** A feed has a single stream. */
  readonly storeBytes = 0;
  readonly #share: BacklogShare;
  readonly #stream: InboundStream;
  readonly #queue: Packet[] = [];
  #sequence: number;
  readonly #firstTimestamp: number;
  #sentThisTurn = 0;
  #overrun = false;
  #isDropLogged = false;
  #anchor: { timestamp: number; atMs: number } | undefined;
  #lateSinceMs: number | undefined;
  #closed = false;

  constructor(context: MediaContext, options: FrameFeedOptions) {
    this.#context = context;
    this.#options = options;
    this.#format = payloadFormat(options.codec);
    this.backlog = new Backlog(context.backlog);
    this.#share = new BacklogShare(this.backlog);
    const { random } = context.world;
    this.#sequence = random() & 0x7fff;
    this.#firstTimestamp = random();
    const { kind, codec, trackId } = options;
    const params: InboundTrack = {
      trackId,
      kind,
      mid: '',
      codec: { name: codec, payloadType: 96, clockRate: this.#format.clockRate, feedback: [] },
      extensions: {},
      rids: [],
      bitratesBps: {},
    };
    this.track = new PublishedTrack(context, this, params);
    this.#stream = this.track.openStream('h', random());
  }

  get peerId(): string {
    return this.#options.endpointId;
  }

  emit(event: MediaRoomEvent): void {
    this.#options.emit(event);
  }

  dropped(cause: RtpDropCause): void {
    this.#context.dropped[cause]++;
  }

  requestKeyframe(): void {
    this.#stream.plis++;
    this.#options.keyframeWanted();
  }

  send({ timestamp, dueMs, data }: FeedFrame): void {
    if (this.#closed) return;
    const frame = asBuffer(data);
    const payloads = this.#take(frame);
    const rtpTimestamp = Math.round(this.#firstTimestamp + Math.max(0, timestamp)) % 4294967296;
    this.#keepTime(timestamp, rtpTimestamp, dueMs);
    for (const [i, payload] of payloads.entries()) {
      const isLast = i === payloads.length - 1;
      const bytes = this.#packet(payload, this.#options.kind === 'video' && isLast, rtpTimestamp);
      this.#queue.push({ bytes });
      this.#share.add(bytes.length + PART_BYTES);
    }
    this.#run();
  }

  /** Drops a frame that does not fit completely; sending resumes with a key frame. */
  #take(frame: Buffer): readonly Buffer[] {
    // Check before doing any work on the frame.
    if (!this.#fits(frame.length, 1)) return this.#overran();
    const { key, payloads } = this.#format.packetise(frame);
    if (this.#overrun && !key) return this.#overran();
    // The packet would be too large for any client.
    if (payloads.some(({ length }) => length + PACKET_OVERHEAD > this.#context.sealer.maxPacketBytes))
      return this.#drop('oversized');
    if (!this.#fits(frame.length, payloads.length)) return this.#overran();
    this.#overrun = false;
    return payloads;
  }

  #fits(bytes: number, packets: number): boolean {
    return (
      this.#queue.length + packets <= MAX_QUEUED && this.#share.fits(bytes + packets * (HEADER_BYTES + PART_BYTES))
    );
  }

  #overran(): Buffer[] {
    this.#overrun = true;
    return this.#drop('feed_overrun');
  }

  #drop(reason: 'feed_overrun' | 'oversized'): Buffer[] {
    const { dropped, world } = this.#context;
    dropped[reason]++;
    if (!this.#isDropLogged) world.log.warn('media.feed_dropped', { trackId: this.track.trackId, reason });
    this.#isDropLogged = true;
    return [];
  }

  /** Keeps the clock for sender reports: subscribers get them on the server's wall clock. */
  #keepTime(timestamp: number, rtpTimestamp: number, dueMs: number | undefined): void {
    const atMs = dueMs ?? this.#context.world.now();
    const { clockRate } = this.track.params.codec;
    if (this.#anchor !== undefined) {
      const expectedMs = this.#anchor.atMs + ((timestamp - this.#anchor.timestamp) * 1000) / clockRate;
      const lateMs = atMs - expectedMs;
      const hasDrifted = dueMs === undefined ? this.#hasDrifted(lateMs, atMs) : Math.abs(lateMs) > MAX_DUE_DRIFT_MS;
      if (!hasDrifted) return;
    }
    this.#anchor = { timestamp, atMs };
    this.#lateSinceMs = undefined;
    const { seconds, fraction } = toNtp(atMs);
    const { senderInfo } = this.#context;
    senderInfo.ntpSeconds = seconds;
    senderInfo.ntpFraction = fraction;
    senderInfo.rtpTimestamp = rtpTimestamp;
    this.#stream.clock.update(senderInfo, atMs);
  }

  #hasDrifted(lateMs: number, nowMs: number): boolean {
    if (lateMs <= MAX_DRIFT_MS) {
      this.#lateSinceMs = undefined;
      return lateMs < -MAX_DRIFT_MS;
    }
    this.#lateSinceMs ??= nowMs;
    return nowMs - this.#lateSinceMs >= HELD_UP_MS;
  }

  #packet(payload: Buffer, marker: boolean, timestamp: number): Buffer {
    const bytes = Buffer.allocUnsafe(HEADER_BYTES + payload.length);
    bytes[0] = 0x80;
    bytes[1] = (marker ? 0x80 : 0) | this.track.params.codec.payloadType;
    bytes.writeUInt16BE(this.#sequence, 2);
    bytes.writeUInt32BE(timestamp, 4);
    bytes.writeUInt32BE(this.#stream.ssrc, 8);
    payload.copy(bytes, HEADER_BYTES);
    this.#sequence = (this.#sequence + 1) & 0xffff;
    return bytes;
  }

  #run(): void {
    const { view, world } = this.#context;
    while (this.#queue.length > 0 && this.#sentThisTurn < PACKETS_PER_TURN) {
      const { bytes } = this.#queue.shift()!;
      this.#share.add(-bytes.length - PART_BYTES);
      this.#sentThisTurn++;
      if (view.parse(bytes, 0, bytes.length)) this.track.receive(this.#stream, world.now());
    }
  }

  tick(nowMs: number): void {
    this.track.tick(nowMs);
    this.#sentThisTurn = 0;
    this.#run();
  }

  close(): void {
    this.#closed = true;
    this.#queue.length = 0;
    this.#share.set(0);
  }
}
