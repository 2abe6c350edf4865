import { binaryFrame } from '@bloom/net';
import type { Envelope } from './bus.js';

/** The events a subscriber receives. */
export interface Interest {
  notification: boolean;
  metrics: boolean;
  data: boolean;
  recording: boolean;
}

/**
 * Frames to be sent together. Each combination of interests is joined once, so a subscriber costs one write per batch
 * however many events and subscribers there are.
 */
export class FrameBatch {
  readonly #frames: { kind: Envelope['kind']; frame: Buffer }[] = [];
  #size = 0;

  get isEmpty(): boolean {
    return this.#frames.length === 0;
  }

  get byteLength(): number {
    return this.#size;
  }

  count(kind: Envelope['kind']): number {
    return this.#frames.filter((frame) => frame.kind === kind).length;
  }

  add(envelope: Envelope): void {
    const frame = binaryFrame(envelope.bytes);
    this.#frames.push({ kind: envelope.kind, frame });
    this.#size += frame.byteLength;
  }

  /** Empties the batch. Returns a function that gives the frames for an interest, or undefined if there are none. */
  take(): (interest: Interest) => Buffer | undefined {
    const frames = this.#frames.splice(0);
    const joined = new Map<string, Buffer | undefined>();
    this.#size = 0;

    return (interest) => {
      const key = `${interest.notification}${interest.metrics}${interest.data}${interest.recording}`;
      if (!joined.has(key)) {
        const wanted = frames.filter(({ kind }) => interest[kind]);
        joined.set(key, wanted.length === 0 ? undefined : Buffer.concat(wanted.map(({ frame }) => frame)));
      }

      return joined.get(key);
    };
  }
}
