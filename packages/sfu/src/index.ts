export type * from './media-engine.js';
export { emptyEngineStats } from './media-engine.js';
export type { FeedFrame, MediaFeed, MediaTap, TapOptions, TappedFrame, TrackKind } from './media-frames.js';
export { MediaError } from './media-error.js';
export { ThreadProfile } from './engine/thread-profile.js';
export { stuckThreads } from './engine/thread-worker.js';
export { createMediaEngine } from './engine/create-media-engine.js';
export { readCapture } from './forwarding/packet-capture.js';
