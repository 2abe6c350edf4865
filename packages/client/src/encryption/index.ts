// `@bloom/client/encryption`: media that the server forwards and cannot decode.
import type { FrameEncryption } from '../client-types.js';
import type { Bytes } from '../frame.js';
import type { FrameProblem } from './frames.js';
import type { FromWorker, StreamOptions, ToWorker } from './messages.js';

export type { FrameEncryption } from '../client-types.js';
export type { FrameProblem } from './frames.js';

/** Bundled text of the worker, from the build. */
declare const WORKER_SOURCE: string;

const KEY_BYTES = 16;
/** OWASP's recommendation of 2023 for PBKDF2 with SHA-256. */
const ITERATIONS = 600_000;

/** Codecs whose frames browsers or the server take apart by their content, or which repeat other frames. */
const UNSUITED = /^(?:video\/(?:av1|h265)|audio\/red)$/i;
/** Entries that are no codec by themselves. */
const ADDITIONS = /\/(?:rtx|red|ulpfec|flexfec-03|cn|telephone-event)$/i;

/** Options of `Encryption`. */
export interface EncryptionOptions {
  /** Secret of at least 16 bytes that all participants share, random or from `keyFromPassphrase`. */
  readonly key: Uint8Array;
  /**
   * Creates the worker, for pages whose Content-Security-Policy refuses `worker-src blob:`. Its script is
   * `dist/encryption-worker.js` of this package.
   */
  readonly worker?: () => Worker;
}

/** A receiving m-line, and what was last reported of it. */
interface Received {
  problem: FrameProblem | null;
  readonly report: (problem: FrameProblem | null) => void;
}

interface Worked {
  transform?: object | null;
  createEncodedStreams?(): { readable: ReadableStream; writable: WritableStream };
}

declare const RTCRtpScriptTransform: (new (worker: Worker, options: StreamOptions) => object) | undefined;

/** Encryption of one client's media, passed to `connect`. */
export class Encryption implements FrameEncryption {
  readonly #configuration: RTCConfiguration;
  readonly #worker: Worker;
  readonly #received = new Map<number, Received>();
  #lastId = 0;

  /** @throws Error if the key is no Uint8Array or too short, or this browser cannot encrypt or not over plain HTTP */
  constructor({ key, worker = ownWorker }: EncryptionOptions) {
    if ((globalThis.crypto as Partial<Crypto> | undefined)?.subtle === undefined) {
      throw new Error('browsers have no cryptography for pages over plain HTTP: use HTTPS or localhost');
    }
    const hasTransforms = typeof RTCRtpScriptTransform !== 'undefined';
    if (!hasTransforms && !('createEncodedStreams' in RTCRtpSender.prototype)) {
      throw new Error('this browser does not let a page encrypt media: it has no RTCRtpScriptTransform');
    }
    // Without it, Chromium before 141 gives no frames to the page.
    this.#configuration = hasTransforms ? {} : ({ encodedInsertableStreams: true } as RTCConfiguration);
    requireKey(key);
    this.#worker = worker();
    this.#worker.addEventListener('message', ({ data }: MessageEvent<FromWorker>) => {
      const received = this.#received.get(data.id);
      if (received === undefined) return;
      received.problem = data.problem;
      received.report(data.problem);
    });
    this.setKey(key);
  }

  /**
   * Changes the key during the call. What is sent from now on has the new key; for 10 s, what others still send with
   * the previous one is shown as well. Whoever has not changed yet sees nothing new until they do.
   * @throws Error if the key is no Uint8Array or too short; the previous one stays
   */
  setKey(key: Uint8Array): void {
    requireKey(key);
    this.#post({ type: 'key', key: Uint8Array.from(key) as Bytes });
  }

  /** Ends the worker. Media sent or received through it stops. */
  close(): void {
    this.#worker.terminate();
  }

  /** @internal */
  open(
    configuration: RTCConfiguration,
    report: (mid: string, problem: FrameProblem | null) => void,
  ): RTCPeerConnection {
    const connection = new RTCPeerConnection({ ...configuration, ...this.#configuration });
    const configure = connection.setConfiguration.bind(connection);
    connection.setConfiguration = (next) => configure({ ...next, ...this.#configuration });
    const ids = new Map<RTCRtpTransceiver, number>();
    const add = connection.addTransceiver.bind(connection);
    // Each end has its transform before it can carry a frame.
    connection.addTransceiver = (media, init) => {
      const transceiver = add(media, init);
      keepSuited(transceiver);
      const kind = transceiver.receiver.track.kind === 'video' ? 'video' : 'audio';
      if (init?.direction !== 'recvonly') {
        this.#transform(transceiver.sender, { id: 0, side: 'send', kind });
        return transceiver;
      }
      const id = (this.#lastId += 1);
      ids.set(transceiver, id);
      this.#received.set(id, { problem: null, report: (problem) => report(transceiver.mid ?? '', problem) });
      this.#transform(transceiver.receiver, { id, side: 'receive', kind });
      return transceiver;
    };
    connection.addEventListener('track', ({ transceiver }) => {
      const { problem = null, report: repeat } = this.#received.get(ids.get(transceiver) ?? 0) ?? {};
      // Another track of the same m-line, which is known after this event.
      if (problem !== null) queueMicrotask(() => repeat?.(problem));
    });
    const close = connection.close.bind(connection);
    connection.close = () => {
      for (const id of ids.values()) this.#received.delete(id);
      close();
    };
    return connection;
  }

  #transform(end: RTCRtpSender | RTCRtpReceiver, options: StreamOptions): void {
    const worked = end as Worked;
    if (typeof RTCRtpScriptTransform !== 'undefined') {
      worked.transform = new RTCRtpScriptTransform(this.#worker, options);
      return;
    }
    const streams = worked.createEncodedStreams?.();
    if (streams === undefined) throw new Error('this browser gives no encoded frames to the page');
    this.#post({ type: 'streams', options, ...streams }, [streams.readable, streams.writable]);
  }

  #post(message: ToWorker, transfer: Transferable[] = []): void {
    this.#worker.postMessage(message, transfer);
  }
}

/**
 * Derives a key from words that people tell each other. `room` is any text that all know and that differs between
 * calls, such as the room's id.
 * @throws Error for an empty passphrase, or one that is no string
 */
export async function keyFromPassphrase(passphrase: string, room: string): Promise<Uint8Array> {
  if (typeof passphrase !== 'string' || passphrase === '') {
    throw new Error('the passphrase must be a string that is not empty');
  }
  const text = new TextEncoder();
  const base = await crypto.subtle.importKey('raw', text.encode(passphrase), 'PBKDF2', false, ['deriveBits']);
  const algorithm = { name: 'PBKDF2', hash: 'SHA-256', salt: text.encode(`Bloom ${room}`), iterations: ITERATIONS };
  return new Uint8Array(await crypto.subtle.deriveBits(algorithm, base, 256));
}

/** Takes codecs that cannot be encrypted out of the offer, now and when others are preferred. */
function keepSuited(transceiver: RTCRtpTransceiver): void {
  const prefer = transceiver.setCodecPreferences.bind(transceiver);
  transceiver.setCodecPreferences = (codecs) => {
    const suited = [...codecs].filter(({ mimeType }) => !UNSUITED.test(mimeType));
    if (suited.some(({ mimeType }) => !ADDITIONS.test(mimeType))) prefer(suited);
  };
  const { kind } = transceiver.receiver.track;
  transceiver.setCodecPreferences(RTCRtpReceiver.getCapabilities(kind)?.codecs ?? []);
}

/** Everything else would be copied to a few known bytes, or none, and media encrypted with no secret. */
function requireKey(key: unknown): asserts key is Uint8Array {
  if (typeof (key as Partial<PromiseLike<unknown>> | null | undefined)?.then === 'function') {
    throw new Error('the key is a Promise: await keyFromPassphrase(...)');
  }
  // Unlike `instanceof`, this also knows the arrays of other frames.
  const type = Object.prototype.toString.call(key).slice(8, -1);
  if (!ArrayBuffer.isView(key) || type !== 'Uint8Array') {
    const given = typeof key === 'object' ? type : typeof key;
    const article = /^[aeio]/i.test(given) ? 'an' : 'a';
    const named = key === null || key === undefined ? String(key) : `${article} ${given}`;
    throw new Error(`the key must be a Uint8Array of at least ${KEY_BYTES} bytes, not ${named}`);
  }
  const bytes = key.byteLength;
  if (bytes < KEY_BYTES) throw new Error(`a key of ${bytes} bytes: at least ${KEY_BYTES} are needed`);
}

function ownWorker(): Worker {
  const url = URL.createObjectURL(new Blob([WORKER_SOURCE], { type: 'text/javascript' }));
  const worker = new Worker(url);
  URL.revokeObjectURL(url);
  return worker;
}
