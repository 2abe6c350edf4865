/**
 * Messages between a `MediaRoom` and its `ForwardingRoom`, which may run in another thread. Plain data: everything here
 * survives a structured clone.
 */
import type { CodecName } from '@bloom/rtp';
import type {
  CapturedPackets,
  MediaCommand,
  MediaRoomEvent,
  RelayCredentials,
  RoomMediaStats,
  TransportNegotiation,
  TransportStats,
} from './media-engine.js';
import type { FeedFrame, FeedOptions, TapEvent } from './media-frames.js';

/**
 * Everything a `ForwardingRoom` accepts. `transport`, `feed` and `tap` are numbers that the room has not used before.
 */
export type RoomCommand =
  | MediaCommand
  | { type: 'openTransport'; peerId: string; transport: number; relay: RelayCredentials; sharesRelay?: true }
  | { type: 'negotiate'; peerId: string; negotiation: TransportNegotiation }
  | { type: 'closeTransport'; peerId: string }
  | { type: 'openFeed'; feed: number; options: Omit<FeedOptions, 'onKeyframeWanted'> }
  | FeedFrameCommand
  | { type: 'closeFeed'; feed: number }
  | { type: 'openTap'; tap: number; trackId: string; codecs: readonly CodecName[] }
  /** The consumer has finished with this many frames. */
  | { type: 'tapConsumed'; tap: number; frames: number; bytes: number }
  | { type: 'tapKeyframe'; tap: number }
  /** Answered once all frames have been reported. */
  | { type: 'closeTap'; tap: number }
  | { type: 'capturePackets'; peerId: string; end: boolean }
  /** The room, which has the same number everywhere, has gained or lost a part on another worker. */
  | { type: 'span'; room: number; worker: number }
  | { type: 'unspan'; worker: number }
  | { type: 'stats' };

export interface FeedFrameCommand {
  type: 'feedFrame';
  feed: number;
  frame: FeedFrame;
}

/** Commands with an answer; the others are fire and forget. */
interface MediaAnswers {
  negotiate: void;
  closeTransport: TransportStats | undefined;
  closeTap: void;
  capturePackets: CapturedPackets | undefined;
  stats: RoomMediaStats;
}

export type MediaCall = Extract<RoomCommand, { type: keyof MediaAnswers }>;
export type MediaAnswer<C extends MediaCall = MediaCall> = MediaAnswers[C['type']];

/** What a `ForwardingRoom` reports back, in order. */
export type RoomReport =
  | { type: 'event'; event: MediaRoomEvent }
  | { type: 'keyframeWanted'; feed: number }
  | { type: 'tapEvent'; tap: number; event: TapEvent };
