// Runs in a worker of the page: seals and opens encoded frames, so that neither a busy page nor its other scripts touch
// them.
import { FrameOpener, type FrameProblem, FrameSealer, Replays } from './frames.js';
import { KeyRing } from './keys.js';
import type { FromWorker, StreamOptions, ToWorker } from './messages.js';

interface EncodedFrame {
  data: ArrayBuffer;
}

interface Streams {
  readonly readable: ReadableStream<EncodedFrame>;
  readonly writable: WritableStream<EncodedFrame>;
}

/** The part of a worker's global scope that this one uses; the types of pages do not have it. */
interface Scope {
  addEventListener(type: 'message', listener: (event: { data: ToWorker }) => void): void;
  addEventListener(
    type: 'rtctransform',
    listener: (event: { transformer: Streams & { options: StreamOptions } }) => void,
  ): void;
  postMessage(message: FromWorker): void;
}

/** A problem is reported after this many frames in a row: some of the previous key arrive after each change. */
const FRAMES_OF_A_PROBLEM = 10;

const scope = self as unknown as Scope;
const ring = new KeyRing(() => performance.now());
const sealer = new FrameSealer(ring);
const replays = new Replays();

scope.addEventListener('message', ({ data }) => {
  if (data.type === 'key') ring.set(data.key);
  else run(data, data.options);
});
scope.addEventListener('rtctransform', ({ transformer }) => run(transformer, transformer.options));

function run({ readable, writable }: Streams, options: StreamOptions): void {
  const transform = options.side === 'send' ? sealing(options) : opening(options);
  // The stream ends with its track.
  readable
    .pipeThrough(new TransformStream({ transform }))
    .pipeTo(writable)
    .catch(() => undefined);
}

type Transform = (frame: EncodedFrame, controller: TransformStreamDefaultController<EncodedFrame>) => Promise<void>;

function sealing({ kind }: StreamOptions): Transform {
  return async (frame, controller) => {
    const sealed = await sealer.seal(new Uint8Array(frame.data), kind);
    if (sealed === undefined) return;
    frame.data = sealed.buffer as ArrayBuffer;
    controller.enqueue(frame);
  };
}

function opening({ id }: StreamOptions): Transform {
  const opener = new FrameOpener(ring, replays);
  let reported: FrameProblem | null = null;
  let failed = 0;
  const report = (problem: FrameProblem | null): void => {
    if (problem === reported) return;
    reported = problem;
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker has only its page
    scope.postMessage({ id, problem });
  };
  return async (frame, controller) => {
    // Browsers hand over empty frames for silence.
    if (frame.data.byteLength === 0) return controller.enqueue(frame);
    const opened = await opener.open(new Uint8Array(frame.data));
    if (typeof opened === 'string') {
      failed += 1;
      if (failed >= FRAMES_OF_A_PROBLEM) report(opened);
      return undefined;
    }
    failed = 0;
    report(null);
    frame.data = opened.buffer as ArrayBuffer;
    return controller.enqueue(frame);
  };
}
