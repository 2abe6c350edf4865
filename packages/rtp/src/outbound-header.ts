import { writeU16, writeU32 } from './bytes.js';
import { requireInteger, RtpError } from './errors.js';
import type { RtpView } from './rtp-view.js';

export interface OutboundHeaderOptions {
  ssrc: number;
  /** The receiver's payload type for the codec. */
  payloadType: number;
  /** The receiver's header extension ids (1..14). An absent id was not negotiated, so the extension is never sent. */
  extensionIds?: {
    mid?: number | undefined;
    transportCc?: number | undefined;
    audioLevel?: number | undefined;
    /** See `copyDescriptor`. */
    dependencies?: number | undefined;
  };
  /** At most 16 characters; needs `extensionIds.mid`. */
  mid?: string;
}

/** Longest data of an element in the one-byte form. */
const MAX_SHORT = 16;

/**
 * Writes the RTP headers of one outbound stream: its own SSRC, the receiver's payload type, header extensions rebuilt
 * with the receiver's ids (RFC 8285, in the two-byte form if a dependency descriptor requires it). Constant parts are
 * prepared once.
 */
export class OutboundHeader {
  readonly ssrc: number;
  readonly payloadType: number;
  /** Maximum header length of this stream without a dependency descriptor, bytes. */
  readonly maxLength: number;
  readonly #midElement: Buffer;
  readonly #transportCcId: number;
  readonly #audioLevelId: number;
  readonly #dependenciesId: number;
  #source: RtpView | undefined;

  constructor(options: OutboundHeaderOptions) {
    this.ssrc = requireInteger('ssrc', options.ssrc, 0, 0xffffffff);
    this.payloadType = requireInteger('payload type', options.payloadType, 0, 127);
    const ids = options.extensionIds ?? {};
    this.#midElement = midElement(ids.mid, options.mid);
    this.#transportCcId = optionalId('transport-cc', ids.transportCc);
    this.#audioLevelId = optionalId('audio level', ids.audioLevel);
    this.#dependenciesId = optionalId('dependency descriptor', ids.dependencies);
    const elements = this.#midElement.length + (this.#transportCcId > 0 ? 3 : 0) + (this.#audioLevelId > 0 ? 2 : 0);
    this.maxLength = 12 + (elements > 0 ? 4 + Math.ceil(elements / 4) * 4 : 0);
  }

  /** True if each packet carries a transport-wide sequence number: pass one to `write`. */
  get hasTransportSequence(): boolean {
    return this.#transportCcId > 0;
  }

  /** Adds the dependency descriptor that `view` has under the source's `id`, if any, to the next header. */
  copyDescriptor(view: RtpView, id: number | undefined): void {
    const isCopied = this.#dependenciesId > 0 && id !== undefined && view.findExtension(id);
    this.#source = isCopied ? view : undefined;
  }

  /**
   * Writes one header at `target[at]` and returns its length. `sequence` may be unwrapped: its low 16 bits are sent.
   * `transportSequence` and `audioLevel` below 0 omit their elements.
   */
  write(
    target: Buffer,
    at: number,
    marker: boolean,
    sequence: number,
    timestamp: number,
    transportSequence = -1,
    audioLevel = -1,
  ): number {
    target[at + 1] = this.payloadType | (marker ? 0x80 : 0);
    // `%` rather than `&`: an unwrapped sequence may exceed 32 bits.
    writeU16(target, at + 2, sequence % 65536);
    writeU32(target, at + 4, timestamp);
    writeU32(target, at + 8, this.ssrc);

    const source = this.#source;
    this.#source = undefined;
    if (source !== undefined && source.foundLength > MAX_SHORT)
      return this.#writeLong(source, target, at, transportSequence);
    let end = at + 16;
    const element = this.#midElement;
    for (let i = 0; i < element.length; i += 1) target[end + i] = element[i]!;
    end += element.length;
    if (this.#transportCcId > 0 && transportSequence >= 0) {
      target[end] = (this.#transportCcId << 4) | 1;
      writeU16(target, end + 1, transportSequence % 65536);
      end += 3;
    }
    if (this.#audioLevelId > 0 && audioLevel >= 0) {
      target[end] = this.#audioLevelId << 4;
      target[end + 1] = audioLevel;
      end += 2;
    }
    if (source !== undefined) {
      const { buffer, foundStart, foundLength } = source;
      target[end] = (this.#dependenciesId << 4) | (foundLength - 1);
      for (let i = 0; i < foundLength; i += 1) target[end + 1 + i] = buffer[foundStart + i]!;
      end += 1 + foundLength;
    }
    if (end === at + 16) {
      target[at] = 0x80;
      return 12;
    }
    return finish(target, at, end, 0xbede);
  }

  /** Writes the elements of a video packet with a long dependency descriptor in the two-byte form. */
  #writeLong(source: RtpView, target: Buffer, at: number, transportSequence: number): number {
    const { buffer, foundStart, foundLength } = source;
    let end = at + 16;
    const element = this.#midElement;
    if (element.length > 0) {
      target[end] = element[0]! >>> 4;
      target[end + 1] = element.length - 1;
      end += 2 + element.copy(target, end + 2, 1);
    }
    if (this.#transportCcId > 0 && transportSequence >= 0) {
      target[end] = this.#transportCcId;
      target[end + 1] = 2;
      writeU16(target, end + 2, transportSequence % 65536);
      end += 4;
    }
    target[end] = this.#dependenciesId;
    target[end + 1] = foundLength;
    end += 2 + buffer.copy(target, end + 2, foundStart, foundStart + foundLength);
    return finish(target, at, end, 0x1000);
  }
}

/** Pads the elements and writes what precedes them. Returns the length of the header. */
function finish(target: Buffer, at: number, elementsEnd: number, profile: number): number {
  let end = elementsEnd;
  while (((end - at) & 3) !== 0) {
    target[end] = 0;
    end += 1;
  }
  target[at] = 0x90;
  writeU16(target, at + 12, profile);
  writeU16(target, at + 14, (end - at - 16) >>> 2);
  return end - at;
}

function midElement(id: number | undefined, mid: string | undefined): Buffer {
  if (id === undefined || mid === undefined || mid === '') return Buffer.alloc(0);
  requireInteger('mid extension id', id, 1, 14);
  const text = Buffer.from(mid, 'latin1');
  if (text.length > 16) {
    throw new RtpError('OUT_OF_RANGE', `a mid in a one-byte header extension has at most 16 bytes, got ${mid}`);
  }
  return Buffer.concat([Buffer.from([(id << 4) | (text.length - 1)]), text]);
}

function optionalId(name: string, id: number | undefined): number {
  return id === undefined ? 0 : requireInteger(`${name} extension id`, id, 1, 14);
}
