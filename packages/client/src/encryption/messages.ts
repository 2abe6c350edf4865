// Messages between a page and its worker.
import type { Bytes } from '../frame.js';
import type { FrameProblem } from './frames.js';

/** A stream of encoded frames. `id` names it in reports. */
export interface StreamOptions {
  readonly id: number;
  readonly side: 'send' | 'receive';
  readonly kind: 'audio' | 'video';
}

export type ToWorker =
  | { readonly type: 'key'; readonly key: Bytes }
  /** From browsers without `RTCRtpScriptTransform`. */
  | {
      readonly type: 'streams';
      readonly options: StreamOptions;
      readonly readable: ReadableStream;
      readonly writable: WritableStream;
    };

/** `problem` is null once frames can be shown again. */
export interface FromWorker {
  readonly id: number;
  readonly problem: FrameProblem | null;
}
