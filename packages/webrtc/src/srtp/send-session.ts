import { AesCounter } from './aes-counter.js';
import { SrtpError } from './errors.js';
import { HmacSha1 } from './hmac-sha1.js';
import { AUTH_TAG_BYTES, deriveSessionKeys, type SrtpMasterKeys } from './key-derivation.js';

const RTCP_HEADER = 8;
const PAD = 64;

/** Bytes that SRTCP adds to a compound: index and tag. */
export const SRTCP_OVERHEAD = 4 + AUTH_TAG_BYTES;

/** Keys of what we send to one remote. RTP goes through a `PacketSealer`; RTCP is rare and sealed here. RFC 3711. */
export class SrtpSendSession {
  /** For sealers. */
  readonly counter: AesCounter;
  readonly hmac: HmacSha1;
  readonly #rtcpCounter: AesCounter;
  readonly #rtcpHmac: HmacSha1;
  /** One count for all SSRCs: it only has to rise for each of them. */
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
   * Seals one compound (at least one RTCP header). The result is a new Buffer with `headroom` (at most 64) free bytes in
   * front for the sink's framing.
   */
  sealRtcp(compound: Buffer, headroom = 0): Buffer {
    this.#rtcpIndex += 1;
    if (this.#rtcpIndex > 0x7fffffff) {
      throw new SrtpError('KEY_EXHAUSTED', 'an SRTCP key protects at most 2^31 packets');
    }
    const length = compound.length;
    const out = Buffer.allocUnsafe(PAD + length + SRTCP_OVERHEAD);
    compound.copy(out, PAD);
    const payloadLength = length - RTCP_HEADER;
    if (payloadLength > 0) {
      const ssrc = compound.readUInt32BE(4);
      const keystream = this.#rtcpCounter.keystream(ssrc, this.#rtcpIndex, 1, (payloadLength + 15) & ~15);
      for (let i = 0; i < payloadLength; i += 1) {
        out[PAD + RTCP_HEADER + i] = out[PAD + RTCP_HEADER + i]! ^ keystream[i]!;
      }
    }
    const end = PAD + length + 4;
    out.writeUInt32BE((0x80000000 | this.#rtcpIndex) >>> 0, PAD + length);
    this.#rtcpHmac.digest(out, PAD, end).copy(out, end, 0, AUTH_TAG_BYTES);
    return out.subarray(PAD - headroom);
  }
}
