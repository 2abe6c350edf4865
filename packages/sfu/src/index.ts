export type * from './media-engine.js';
export type {
  FeedFrame,
  FeedOptions,
  FrameCodec,
  MediaFeed,
  MediaTap,
  TapGap,
  TapOptions,
  TappedFrame,
  TrackKind,
} from './media-frames.js';
export { MediaError, type MediaErrorCode } from './media-error.js';
export { ThreadProfile } from './engine/thread-profile.js';
export { stuckThreads } from './engine/thread-worker.js';
export { createMediaEngine, type MediaEngineOptions } from './engine/create-media-engine.js';
export { readCapture } from './forwarding/packet-capture.js';
