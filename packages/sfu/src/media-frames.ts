/**
 * Whole frames between the media plane and server-side components. Like the rest of the seam this is plain data, the
 * same in process and through a media worker's message port.
 */

import type { CodecName } from '@bloom/rtp';

/** Returns a view of the same memory. */
export function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

export type TrackKind = 'audio' | 'video';

/** One frame that a component sends into a room. */
export interface FeedFrame {
  /** RTP time at the codec's clock rate (Opus 48000, video 90000); may exceed 32 bits, must not decrease. */
  timestamp: number;
  /**
   * When the frame is due, Unix milliseconds; default: now. It keeps tracks of one source in sync, even if sent late.
   */
  dueMs?: number;
  /** One frame as in `TappedFrame.data`. The caller must not use it afterwards. */
  data: Uint8Array;
}

export interface FeedOptions {
  trackId: string;
  /** Endpoint that publishes the track; its subscribers see it as the canonical name. */
  endpointId: string;
  kind: TrackKind;
  codec: CodecName;
  /** Called when a subscriber waits for a key frame; at most every 250 ms, repeated until one arrives. */
  onKeyframeWanted?(): void;
}

/** A track that a component publishes. */
export interface MediaFeed {
  readonly trackId: string;
  /** Sends the frame now; pacing is up to the caller. Ignored once closed. */
  send(frame: FeedFrame): void;
  /** Withdraws the track. Idempotent. */
  close(): void;
}

/** One frame of a track as its publisher encoded it. */
export interface TappedFrame<C extends CodecName = CodecName> {
  codec: C;
  /** SSRC of the stream it arrived on. */
  ssrc: number;
  /** Ticks of the codec's clock since the tap's first frame; continuous across changes of variant or source. */
  timestamp: number;
  key: boolean;
  /**
   * One Opus packet, one VP8 frame, or one H.264 access unit with Annex B start codes, key frames with parameter sets.
   */
  data: Uint8Array;
  /** Arrival of its first packet, Unix milliseconds of `epochNow`. */
  arrivalMs: number;
  /** Capture time by the publisher's clock, Unix milliseconds; absent before the publisher's first sender report. */
  senderMs?: number;
}

export interface TapOptions<C extends CodecName = CodecName> {
  /** A track of any endpoint of the room; it may appear later, and more than once. */
  trackId: string;
  /** Codecs that the component accepts. It receives nothing of a track in another codec, which is logged. */
  codecs: readonly C[];
  /**
   * Takes whole frames in order. A frame counts as held until the returned promise resolves; above 256 frames or 8 MB,
   * frames are dropped up to the next key frame and reported as a gap.
   */
  onFrame(frame: TappedFrame<C>): void | Promise<void>;
  /**
   * Called when frames are missing before the next one: packets were lost, or frames dropped because too many were
   * held. Video resumes with a key frame.
   */
  onGap?(gap: TapGap): void;
  /** Called when the publisher has withdrawn the track or the media plane has ended. */
  onEnded?(): void;
}

export interface TapGap {
  lostPackets: number;
  droppedFrames: number;
}

/** Delivers one track to a component: its highest active variant, from a key frame on. */
export interface MediaTap {
  readonly trackId: string;
  /** Asks the publisher for a key frame. */
  requestKeyframe(): void;
  /** Resolves once every frame received so far has been delivered. Idempotent. */
  close(): Promise<void>;
}

/** Events of a tap. */
export type TapEvent = { type: 'frame'; frame: TappedFrame } | ({ type: 'gap' } & TapGap) | { type: 'ended' };

/** Limits on what a tap's consumer may hold. */
export const TAP_LIMITS = { frames: 256, bytes: 8 * 1024 * 1024 } as const;
