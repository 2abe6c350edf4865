import type { Log } from '@bloom/log';
import { payloadFormat } from '@bloom/rtp';
import type { TapEvent, TappedFrame, TapOptions } from '../media-frames.js';

interface TapDeliveryOptions extends TapOptions {
  log: Log;
  /** Called when the consumer has finished with a frame of this size. */
  consumed(bytes: number): void;
}

/** Delivers a tap's events to its consumer and counts the frames it holds. Logs errors of the consumer. */
export class TapDelivery {
  readonly #options: TapDeliveryOptions;
  #held = 0;
  readonly #waiting: (() => void)[] = [];
  /** Added to the timestamps of the current tap, which start at zero. */
  #offset = 0;
  #lastTimestamp = 0;
  #lastArrivalMs = -1;
  #isResumed = false;

  constructor(options: TapDeliveryOptions) {
    this.#options = options;
  }

  /** Reports a gap: another worker has reopened the tap. */
  resume(): void {
    this.#isResumed = true;
    this.deliver({ type: 'gap', lostPackets: 0, droppedFrames: 0 });
  }

  /** Continues the time of the previous tap. */
  #inTime(frame: TappedFrame): TappedFrame {
    if (this.#isResumed && this.#lastArrivalMs >= 0) {
      const elapsedMs = Math.max(1, frame.arrivalMs - this.#lastArrivalMs);
      const { clockRate } = payloadFormat(frame.codec);
      this.#offset = this.#lastTimestamp + Math.round((elapsedMs * clockRate) / 1000) - frame.timestamp;
    }
    this.#isResumed = false;
    this.#lastArrivalMs = frame.arrivalMs;
    this.#lastTimestamp = frame.timestamp + this.#offset;
    return this.#offset === 0 ? frame : { ...frame, timestamp: this.#lastTimestamp };
  }

  /** What the tap receives. */
  get source(): Pick<TapOptions, 'trackId' | 'codecs'> {
    const { trackId, codecs } = this.#options;
    return { trackId, codecs };
  }

  deliver(event: TapEvent): void {
    const { onFrame, onGap, onEnded } = this.#options;
    try {
      if (event.type === 'gap') {
        onGap?.({ lostPackets: event.lostPackets, droppedFrames: event.droppedFrames });
      } else if (event.type === 'ended') {
        onEnded?.();
      } else {
        const bytes = event.frame.data.byteLength;
        this.#held++;
        const frame = this.#inTime(event.frame);
        const done = this.#guarded(() => onFrame(frame));
        if (done === undefined) this.#release(bytes);
        else void done.then(() => this.#release(bytes));
      }
    } catch (error) {
      this.#fault(error);
    }
  }

  /** Resolves once the consumer holds nothing. */
  idle(): Promise<void> {
    if (this.#held === 0) return Promise.resolve();

    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  #guarded(run: () => void | Promise<void>): Promise<void> | undefined {
    try {
      const result = run();

      return result instanceof Promise ? result.catch((error: unknown) => this.#fault(error)) : undefined;
    } catch (error) {
      this.#fault(error);

      return undefined;
    }
  }

  #release(bytes: number): void {
    this.#held--;
    this.#options.consumed(bytes);
    if (this.#held === 0) for (const resolve of this.#waiting.splice(0)) resolve();
  }

  #fault(error: unknown): void {
    this.#options.log.error('media.tap_consumer_failed', { trackId: this.#options.trackId, error });
  }
}
