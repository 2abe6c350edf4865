import { rtpHeaderLength } from '@bloom/rtp';
import { AesCounter } from './aes-counter.js';
import { HmacSha1, tagMatches } from './hmac-sha1.js';
import { AUTH_TAG_BYTES, deriveSessionKeys, type SrtpMasterKeys } from './key-derivation.js';
import { KeystreamWindow } from './keystream-window.js';
import { guessIndex, ReplayWindow } from './replay-window.js';
import { scratch, SCRATCH_AT, SCRATCH_PACKET_BYTES, xorScratch } from './scratch.js';

/** Reasons why a packet was not opened; `open` and `openRtcp` return one in place of a length. */
export const OpenFailure = { MALFORMED: -1, UNAUTHENTICATED: -2, REPLAYED: -3, TOO_MANY_STREAMS: -4 } as const;

const FAILURE_NAMES = ['malformed', 'unauthenticated', 'replayed', 'too_many_streams'] as const;

export type OpenFailureName = (typeof FAILURE_NAMES)[number];

/** Returns the counter name of an `OpenFailure`. */
export function openFailureName(failure: number): OpenFailureName {
  return FAILURE_NAMES[-failure - 1] ?? 'malformed';
}

/** E flag and index at the end of an SRTCP packet (RFC 3711 section 3.4). */
const RTCP_INDEX_BYTES = 4;
const RTCP_HEADER = 8;
/** A simulcast camera uses six SSRCs, and six new ones each time it is published: about 340 times in one session. */
const MAX_STREAMS = 2048;
/** Number of streams whose keystream is kept, 10 KiB each: the newest ones, because older ones have mostly ended. */
const MAX_KEYSTREAMS = 512;
/** Keystream for the next 16 or so of a client's short reports. */
const RTCP_BATCH_BYTES = 1024;

class ReceiveStream {
  readonly #counter: AesCounter;
  readonly #ssrc: number;
  readonly #batchBytes: number | undefined;
  readonly window = new ReplayWindow();
  keystream: KeystreamWindow;

  constructor(counter: AesCounter, ssrc: number, batchBytes?: number) {
    this.#counter = counter;
    this.#ssrc = ssrc;
    this.#batchBytes = batchBytes;
    this.keystream = new KeystreamWindow(counter, ssrc, batchBytes);
  }

  /** Frees the keystream's memory. It is recreated if the stream continues. */
  dropKeystream(): void {
    this.keystream = new KeystreamWindow(this.#counter, this.#ssrc, this.#batchBytes);
  }
}

export interface SrtpReceiveOptions {
  /** Bound on the SSRCs, separately for RTP and RTCP. Only authenticated packets add one. */
  maxStreams?: number;
}

/** Opens the SRTP and SRTCP packets of one remote (SRTP_AES128_CM_HMAC_SHA1_80, RFC 3711). */
export class SrtpReceiveSession {
  readonly #counter: AesCounter;
  readonly #hmac: HmacSha1;
  readonly #rtcpCounter: AesCounter;
  readonly #rtcpHmac: HmacSha1;
  readonly #streams = new Map<number, ReceiveStream>();
  /** Iterates over the streams in order of appearance, starting with the first that still holds its keystream. */
  readonly #withKeystream = this.#streams.values();
  readonly #rtcpStreams = new Map<number, ReceiveStream>();
  readonly #rtcpWithKeystream = this.#rtcpStreams.values();
  readonly #maxStreams: number;

  constructor(keys: SrtpMasterKeys, options: SrtpReceiveOptions = {}) {
    const rtp = deriveSessionKeys(keys, 'rtp');
    const rtcp = deriveSessionKeys(keys, 'rtcp');
    this.#counter = new AesCounter(rtp.cipherKey, rtp.salt);
    this.#hmac = new HmacSha1(rtp.authKey);
    this.#rtcpCounter = new AesCounter(rtcp.cipherKey, rtcp.salt);
    this.#rtcpHmac = new HmacSha1(rtcp.authKey);
    this.#maxStreams = options.maxStreams ?? MAX_STREAMS;
  }

  /**
   * Authenticates and decrypts the SRTP packet `packet[start, end)` in place. Returns the end of the plaintext RTP
   * packet, or an `OpenFailure` with the bytes unchanged.
   */
  open(packet: Buffer, start = 0, end = packet.length): number {
    const clearEnd = end - AUTH_TAG_BYTES;
    const headerLength = rtpHeaderLength(packet, start, clearEnd);
    if (headerLength < 0 || clearEnd - start > SCRATCH_PACKET_BYTES || end > packet.length)
      return OpenFailure.MALFORMED;
    const ssrc = packet.readUInt32BE(start + 8);
    const sequence = (packet[start + 2]! << 8) | packet[start + 3]!;

    let stream = this.#streams.get(ssrc);
    const index = guessIndex(stream === undefined ? -1 : stream.window.highest, sequence);
    if (stream !== undefined && !stream.window.isFresh(index)) return OpenFailure.REPLAYED;

    const length = clearEnd - start;
    packet.copy(scratch, SCRATCH_AT, start, clearEnd);
    scratch.writeUInt32BE(Math.floor(index / 65536), SCRATCH_AT + length);
    if (!tagMatches(this.#hmac.digest(scratch, SCRATCH_AT, SCRATCH_AT + length + 4), packet, clearEnd)) {
      return OpenFailure.UNAUTHENTICATED;
    }
    // Only authenticated packets may change state.
    if (stream === undefined) {
      if (this.#streams.size >= this.#maxStreams) return OpenFailure.TOO_MANY_STREAMS;
      stream = new ReceiveStream(this.#counter, ssrc);
      this.#streams.set(ssrc, stream);
      if (this.#streams.size > MAX_KEYSTREAMS) this.#withKeystream.next().value?.dropKeystream();
    }
    stream.window.accept(index);

    const payloadLength = length - headerLength;
    if (payloadLength > 0) {
      stream.keystream.seek(index, payloadLength);
      xorScratch(SCRATCH_AT + headerLength, payloadLength, stream.keystream.words, stream.keystream.at);
      scratch.copy(packet, start + headerLength, SCRATCH_AT + headerLength, SCRATCH_AT + length);
    }
    return clearEnd;
  }

  /**
   * Authenticates and decrypts the SRTCP packet `packet[start, end)` in place. Returns the end of the plaintext
   * compound packet, or an `OpenFailure`.
   */
  openRtcp(packet: Buffer, start = 0, end = packet.length): number {
    const tagAt = end - AUTH_TAG_BYTES;
    const clearEnd = tagAt - RTCP_INDEX_BYTES;
    const length = clearEnd - start;
    if (length < RTCP_HEADER || length > SCRATCH_PACKET_BYTES - RTCP_INDEX_BYTES || end > packet.length) {
      return OpenFailure.MALFORMED;
    }
    if (packet[start]! >>> 6 !== 2) return OpenFailure.MALFORMED;
    const ssrc = packet.readUInt32BE(start + 4);
    const trailer = packet.readUInt32BE(clearEnd);
    const index = trailer & 0x7fffffff;
    let source = this.#rtcpStreams.get(ssrc);
    if (source !== undefined && !source.window.isFresh(index)) return OpenFailure.REPLAYED;

    packet.copy(scratch, SCRATCH_AT, start, tagAt);
    if (!tagMatches(this.#rtcpHmac.digest(scratch, SCRATCH_AT, SCRATCH_AT + tagAt - start), packet, tagAt)) {
      return OpenFailure.UNAUTHENTICATED;
    }
    if (source === undefined) {
      if (this.#rtcpStreams.size >= this.#maxStreams) return OpenFailure.TOO_MANY_STREAMS;
      source = new ReceiveStream(this.#rtcpCounter, ssrc, RTCP_BATCH_BYTES);
      this.#rtcpStreams.set(ssrc, source);
      if (this.#rtcpStreams.size > MAX_KEYSTREAMS) this.#rtcpWithKeystream.next().value?.dropKeystream();
    }
    source.window.accept(index);

    // Without the E flag the packet is authenticated but was sent in the clear.
    const payloadLength = length - RTCP_HEADER;
    if (trailer >= 0x80000000 && payloadLength > 0) {
      source.keystream.seek(index, payloadLength);
      xorScratch(SCRATCH_AT + RTCP_HEADER, payloadLength, source.keystream.words, source.keystream.at);
      scratch.copy(packet, start + RTCP_HEADER, SCRATCH_AT + RTCP_HEADER, SCRATCH_AT + length);
    }
    return clearEnd;
  }
}
