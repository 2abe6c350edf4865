import { ComponentError } from '../../errors.js';

/** Limit for the start line and header fields. Cameras send less than 1 KiB. */
const MAX_HEAD_BYTES = 16 * 1024;
/** Limit for a body. Session descriptions of cameras take 1 to 4 KiB. */
const MAX_BODY_BYTES = 64 * 1024;
const DOLLAR = 0x24;

export interface RtspMessage {
  start: string;
  /** Lower-case names. */
  fields: [name: string, value: string][];
  body: Buffer;
}

interface SplitterOptions {
  onMessage(message: RtspMessage): void;
  /** Interleaved frames, RFC 2326 section 10.12, or pieces of them. */
  onMedia(bytes: Buffer): void;
}

/**
 * Splits the bytes of an RTSP connection into messages and media. Buffers at most one incomplete message, after
 * checking its limits.
 */
export class RtspSplitter {
  readonly #options: SplitterOptions;
  #kept: Buffer = Buffer.alloc(0);
  #mediaLeft = 0;

  constructor(options: SplitterOptions) {
    this.#options = options;
  }

  /** @throws ComponentError `BAD_RTSP` when a message is too large or malformed */
  push(chunk: Buffer): void {
    const bytes = this.#kept.length === 0 ? chunk : Buffer.concat([this.#kept, chunk]);
    let at = 0;
    while (at < bytes.length) {
      const media = this.#mediaEnd(bytes, at);
      if (media > at) this.#options.onMedia(bytes.subarray(at, media));
      at = media;
      if (at === bytes.length || bytes[at] === DOLLAR) break;
      const next = isLetter(bytes[at]!) ? this.#message(bytes, at) : at + 1;
      if (next === undefined) break;
      at = next;
    }
    this.#kept = at === bytes.length ? EMPTY : Buffer.from(bytes.subarray(at));
  }

  /** Returns the end of the media starting at `from`; a frame of unknown length is left for later. */
  #mediaEnd(bytes: Buffer, from: number): number {
    let at = from;
    for (;;) {
      const taken = Math.min(this.#mediaLeft, bytes.length - at);
      this.#mediaLeft -= taken;
      at += taken;
      if (bytes[at] !== DOLLAR || at + 4 > bytes.length) return at;
      this.#mediaLeft = 4 + bytes.readUInt16BE(at + 2);
    }
  }

  /** Returns the end of the message starting at `from`; undefined when it is incomplete. */
  #message(bytes: Buffer, from: number): number | undefined {
    const limit = from + MAX_HEAD_BYTES;
    const headEnd = bytes.subarray(0, limit).indexOf('\r\n\r\n', from, 'latin1');
    if (headEnd < 0) {
      if (bytes.length >= limit) throw new ComponentError('BAD_RTSP', `a header has more than ${MAX_HEAD_BYTES} bytes`);

      return undefined;
    }
    const [start = '', ...lines] = bytes.toString('latin1', from, headEnd).split('\r\n');
    const fields = lines.map((line): [string, string] => {
      const colon = line.indexOf(':');

      return [line.slice(0, Math.max(colon, 0)).trim().toLowerCase(), line.slice(colon + 1).trim()];
    });
    const given = fieldOf({ fields }, 'content-length') ?? '0';
    const length = /^\d{1,9}$/.test(given) ? Number(given) : Number.POSITIVE_INFINITY;
    if (length > MAX_BODY_BYTES) {
      throw new ComponentError('BAD_RTSP', `a message has ${given.slice(0, 20)} bytes, allowed are ${MAX_BODY_BYTES}`);
    }
    const end = headEnd + 4 + length;
    if (end > bytes.length) return undefined;
    this.#options.onMessage({ start, fields, body: Buffer.from(bytes.subarray(headEnd + 4, end)) });

    return end;
  }
}

const EMPTY = Buffer.alloc(0);

function isLetter(byte: number): boolean {
  return (byte >= 0x41 && byte <= 0x5a) || (byte >= 0x61 && byte <= 0x7a);
}

/** Returns the first value of a field. */
export function fieldOf({ fields }: Pick<RtspMessage, 'fields'>, name: string): string | undefined {
  return fields.find(([known]) => known === name)?.[1];
}

/** Serialises a message. Text is Latin-1, as it was read. */
export function writeMessage({ start, fields, body }: RtspMessage): Buffer {
  const head = [start, ...fields.map(([name, value]) => `${name}: ${value}`), '', ''].join('\r\n');

  return Buffer.concat([Buffer.from(head, 'latin1'), body]);
}
