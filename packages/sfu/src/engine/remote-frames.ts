import type { FeedOptions, MediaFeed, MediaTap, TapEvent, TapOptions } from '../media-frames.js';
import type { MediaWorker } from './media-worker.js';
import { TapDelivery } from './tap-delivery.js';
import { ownFrame } from './worker-protocol.js';

/** The worker is told of consumed frames in lots, of this many or of so many bytes. */
const LOT = { frames: 8, bytes: 256 * 1024 };

/** The feeds and taps of a room on a worker. */
export class RemoteFrames {
  private readonly keyFrameWishes = new Map<number, () => void>();
  private readonly taps = new Map<number, TapDelivery>();

  constructor(
    private readonly worker: MediaWorker,
    private readonly room: number,
  ) {}

  openFeed({ onKeyFrameWanted, ...options }: FeedOptions): MediaFeed {
    const { worker, room } = this;
    const feed = worker.newNumber();
    if (onKeyFrameWanted !== undefined) this.keyFrameWishes.set(feed, onKeyFrameWanted);
    worker.post({ type: 'openFeed', room, feed, options });
    let closed = false;

    return {
      trackId: options.trackId,
      send: ({ timestamp, data }) => {
        if (closed) return;
        const own = ownFrame(data);
        worker.give({ type: 'feedFrame', feed, frame: { timestamp, data: own } }, own.buffer);
      },
      close: () => {
        if (closed) return;
        closed = true;
        this.keyFrameWishes.delete(feed);
        worker.post({ type: 'closeFeed', room, feed });
      },
    };
  }

  openTap(options: TapOptions): MediaTap {
    const { worker, room } = this;
    const tap = worker.newNumber();
    let frames = 0;
    let bytes = 0;
    const delivery = new TapDelivery({
      ...options,
      log: worker.log,
      consumed: (size) => {
        frames++;
        bytes += size;
        if (frames < LOT.frames && bytes < LOT.bytes) return;
        worker.post({ type: 'tapConsumed', tap, frames, bytes });
        frames = 0;
        bytes = 0;
      },
    });
    this.taps.set(tap, delivery);
    worker.post({ type: 'openTap', room, tap, trackId: options.trackId });
    let closed: Promise<void> | undefined;
    const close = async (): Promise<void> => {
      // A worker that died has nothing more to say.
      await worker.call({ type: 'closeTap', room, tap }).catch(() => undefined);
      this.taps.delete(tap);
      await delivery.idle();
    };

    return {
      trackId: options.trackId,
      requestKeyFrame: () => worker.post({ type: 'tapKeyFrame', tap }),
      close: () => (closed ??= close()),
    };
  }

  keyFrameWanted(feed: number): void {
    this.keyFrameWishes.get(feed)?.();
  }

  tapEvent(tap: number, event: TapEvent): void {
    this.taps.get(tap)?.deliver(event);
  }

  /** The worker is gone. */
  fail(): void {
    for (const tap of this.taps.values()) tap.deliver({ type: 'ended' });
    this.taps.clear();
    this.keyFrameWishes.clear();
  }
}
