import type { Log } from '@bloom/log';
import type { TapEvent, TapOptions } from '../media-frames.js';

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

  constructor(options: TapDeliveryOptions) {
    this.#options = options;
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
        const done = this.#guarded(() => onFrame(event.frame));
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
