import { rtpHeaderLength } from '@bloom/rtp';
import { AesCounter } from './aes-counter.js';
import { WebrtcError } from '../errors.js';
import { HmacSha1, writeTag } from './hmac-sha1.js';
import { AUTH_TAG_BYTES, deriveSessionKeys, type SrtpMasterKeys } from './key-derivation.js';
import { asWords, KeystreamWindow } from './keystream-window.js';
import { guessIndex } from './replay-window.js';
import { scratch, SCRATCH_AT, SCRATCH_PACKET_BYTES, xorScratch } from './scratch.js';

const RTCP_HEADER = 8;

/** Bytes that SRTCP adds to a compound packet: index and tag. */
export const SRTCP_OVERHEAD = 4 + AUTH_TAG_BYTES;

interface SendStream {
  highest: number;
  readonly keystream: KeystreamWindow;
}

/**
 * Send keys for one remote (RFC 3711). Forwarded RTP goes through a `PacketSealer`; RTCP and single packets are sealed
 * here, in place.
 */
export class SrtpSendSession {
  /** Used by the sealers. */
  readonly counter: AesCounter;
  readonly hmac: HmacSha1;
  readonly #rtcpCounter: AesCounter;
  readonly #rtcpHmac: HmacSha1;
  readonly #streams = new Map<number, SendStream>();
  /** One counter for all SSRCs: it only has to increase for each of them. */
  #rtcpIndex = 0;

  constructor(keys: SrtpMasterKeys) {
    const rtp = deriveSessionKeys(keys, 'rtp');
    const rtcp = deriveSessionKeys(keys, 'rtcp');
    this.counter = new AesCounter(rtp.cipherKey, rtp.salt);
    this.hmac = new HmacSha1(rtp.authKey);
    this.#rtcpCounter = new AesCounter(rtcp.cipherKey, rtcp.salt);
    this.#rtcpHmac = new HmacSha1(rtcp.authKey);
  }

  /**
   * Seals the RTP packet `buffer[start, end)` in place and returns the new end. Needs `AUTH_TAG_BYTES` of space after
   * it. The roll-over counter follows the sequence numbers seen here, so an SSRC must not also use a `PacketSealer`.
   * @throws WebrtcError BAD_PACKET when it is not an RTP packet of at most 2,048 bytes, or the space is missing
   */
  sealRtp(buffer: Buffer, start: number, end: number): number {
    const length = end - start;
    const headerLength = rtpHeaderLength(buffer, start, end);
    requirePacket(headerLength >= 0 && length <= SCRATCH_PACKET_BYTES && end + AUTH_TAG_BYTES <= buffer.length, length);
    const ssrc = buffer.readUInt32BE(start + 8);
    let stream = this.#streams.get(ssrc);
    if (stream === undefined) {
      stream = { highest: -1, keystream: new KeystreamWindow(this.counter, ssrc) };
      this.#streams.set(ssrc, stream);
    }
    const index = guessIndex(stream.highest, buffer.readUInt16BE(start + 2));
    requirePacket(index >= 0, length);
    if (index > stream.highest) stream.highest = index;

    buffer.copy(scratch, SCRATCH_AT, start, end);
    if (length > headerLength) {
      stream.keystream.seek(index, length - headerLength);
      xorScratch(SCRATCH_AT + headerLength, length - headerLength, stream.keystream.words, stream.keystream.at);
    }
    scratch.writeUInt32BE(Math.floor(index / 65536), SCRATCH_AT + length);
    writeTag(this.hmac.digest(scratch, SCRATCH_AT, SCRATCH_AT + length + 4), buffer, end);
    scratch.copy(buffer, start + headerLength, SCRATCH_AT + headerLength, SCRATCH_AT + length);
    return end + AUTH_TAG_BYTES;
  }

  /**
   * Seals the RTCP compound `buffer[start, end)` in place and returns the new end. `SRTCP_OVERHEAD` bytes must follow.
   * @throws WebrtcError BAD_PACKET like `sealRtp`
   * @throws WebrtcError KEY_EXHAUSTED after 2^31 packets
   */
  sealRtcp(buffer: Buffer, start: number, end: number): number {
    const length = end - start;
    requirePacket(
      length >= RTCP_HEADER && length <= SCRATCH_PACKET_BYTES - 4 && end + SRTCP_OVERHEAD <= buffer.length,
      length,
    );
    if (this.#rtcpIndex === 0x7fffffff) {
      throw new WebrtcError('KEY_EXHAUSTED', 'an SRTCP key protects at most 2^31 packets');
    }
    this.#rtcpIndex += 1;
    buffer.copy(scratch, SCRATCH_AT, start, end);
    const payload = length - RTCP_HEADER;
    if (payload > 0) {
      const ssrc = buffer.readUInt32BE(start + 4);
      const keystream = asWords(this.#rtcpCounter.keystream(ssrc, this.#rtcpIndex, 1, (payload + 15) & ~15));
      xorScratch(SCRATCH_AT + RTCP_HEADER, payload, keystream, 0);
    }
    scratch.writeUInt32BE((0x80000000 | this.#rtcpIndex) >>> 0, SCRATCH_AT + length);
    scratch.copy(buffer, start, SCRATCH_AT, SCRATCH_AT + length + 4);
    writeTag(this.#rtcpHmac.digest(scratch, SCRATCH_AT, SCRATCH_AT + length + 4), buffer, end + 4);
    return end + SRTCP_OVERHEAD;
  }
}

function requirePacket(ok: boolean, length: number): void {
  if (!ok) throw new WebrtcError('BAD_PACKET', `a packet of ${length} bytes is too large to seal`);
}
