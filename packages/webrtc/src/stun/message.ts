import { createHmac, timingSafeEqual } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { readXorAddress, type TransportAddress } from './address.js';
import { Attribute, FINGERPRINT_XOR, MAGIC_COOKIE, STUN_HEADER_LENGTH } from './constants.js';

/** Bound on a message, in bytes: fits a Send indication that wraps a full datagram. */
export const MAX_STUN_LENGTH = 4096;
/** Bound on the attributes, above what real clients send: a message could hold thousands of empty ones. */
export const MAX_ATTRIBUTES = 48;

const INTEGRITY_LENGTH = 20;

/**
 * A parsed STUN message (RFC 8489), kept as offsets into the datagram without a copy. The first of a repeated attribute
 * wins (section 14), except for XOR-PEER-ADDRESS. Attributes after MESSAGE-INTEGRITY are ignored (section 14.5).
 */
export class StunMessage {
  /** Offsets of attribute values by type, for known types; each value's length precedes it. */
  readonly #offsets = new Map<number, number>();
  readonly #peers: number[] = [];
  #unknownRequired: number[] | undefined;

  private constructor(
    readonly buffer: Buffer,
    readonly method: number,
    readonly messageClass: number,
  ) {}

  /** Parses a message. Returns undefined unless the bytes are exactly one well-formed message. Never throws. */
  static parse(buffer: Buffer): StunMessage | undefined {
    const total = buffer.length;
    if (total < STUN_HEADER_LENGTH || total > MAX_STUN_LENGTH || (total & 3) !== 0) return undefined;
    const type = buffer.readUInt16BE(0);
    if (type > 0x3fff || buffer.readUInt16BE(2) !== total - STUN_HEADER_LENGTH) return undefined;
    if (buffer.readUInt32BE(4) !== MAGIC_COOKIE) return undefined;

    const method = (type & 0x000f) | ((type & 0x00e0) >>> 1) | ((type & 0x3e00) >>> 2);
    const message = new StunMessage(buffer, method, type & 0x0110);
    return message.#walk() ? message : undefined;
  }

  #walk(): boolean {
    const { buffer } = this;
    let sealed = false;
    let count = 0;
    for (let at = STUN_HEADER_LENGTH; at < buffer.length; ) {
      if (++count > MAX_ATTRIBUTES || at + 4 > buffer.length) return false;
      const type = buffer.readUInt16BE(at);
      const length = buffer.readUInt16BE(at + 2);
      const value = at + 4;
      at = value + ((length + 3) & ~3);
      if (at > buffer.length) return false;
      if (type === Attribute.fingerprint) {
        // FINGERPRINT must be the last attribute (section 14.7).
        if (length !== 4 || at !== buffer.length) return false;
        this.#offsets.set(type, value);
      } else if (!sealed) {
        if (!this.#note(type, value, length)) return false;
        sealed = type === Attribute.messageIntegrity;
      }
    }
    return true;
  }

  /** Records an attribute. Returns false if a known attribute has an invalid length. */
  #note(type: number, value: number, length: number): boolean {
    const rule = LENGTHS.get(type);
    if (rule === undefined) {
      if (type < 0x8000) (this.#unknownRequired ??= []).push(type);
      return true;
    }
    if (length < rule[0] || length > rule[1]) return false;
    if (type === Attribute.xorPeerAddress) this.#peers.push(value);
    if (!this.#offsets.has(type)) this.#offsets.set(type, value);
    return true;
  }

  /** Transaction id of 12 bytes, as a view. */
  get transactionId(): Buffer {
    return this.buffer.subarray(8, 20);
  }

  has(type: number): boolean {
    return this.#offsets.has(type);
  }

  /** Returns an attribute's value as a view. */
  bytes(type: number): Buffer | undefined {
    const at = this.#offsets.get(type);
    return at === undefined ? undefined : this.buffer.subarray(at, at + this.buffer.readUInt16BE(at - 2));
  }

  text(type: number): string | undefined {
    return this.bytes(type)?.toString('utf8');
  }

  /** Returns a 32-bit value (PRIORITY, LIFETIME). */
  uint32(type: number): number | undefined {
    const at = this.#offsets.get(type);
    return at === undefined ? undefined : this.buffer.readUInt32BE(at);
  }

  /** Returns the first 16 bits of a value (CHANNEL-NUMBER). */
  uint16(type: number): number | undefined {
    const at = this.#offsets.get(type);
    return at === undefined ? undefined : this.buffer.readUInt16BE(at);
  }

  /** Returns the first byte of a value (REQUESTED-TRANSPORT, REQUESTED-ADDRESS-FAMILY). */
  uint8(type: number): number | undefined {
    const at = this.#offsets.get(type);
    return at === undefined ? undefined : this.buffer[at];
  }

  /** Number of an ERROR-CODE attribute. */
  get errorCode(): number | undefined {
    const at = this.#offsets.get(Attribute.errorCode);
    return at === undefined ? undefined : ((this.buffer[at + 2] ?? 0) & 7) * 100 + (this.buffer[at + 3] ?? 0);
  }

  xorAddress(type: number): TransportAddress | undefined {
    const at = this.#offsets.get(type);
    return at === undefined ? undefined : readXorAddress(this.buffer, at, this.buffer.readUInt16BE(at - 2));
  }

  /** Returns all XOR-PEER-ADDRESS values; undefined if any of them is invalid. */
  peerAddresses(): TransportAddress[] | undefined {
    const addresses: TransportAddress[] = [];
    for (const at of this.#peers) {
      const address = readXorAddress(this.buffer, at, this.buffer.readUInt16BE(at - 2));
      if (address === undefined) return undefined;
      addresses.push(address);
    }
    return addresses;
  }

  /** Unknown comprehension-required attributes, answered with 420. */
  get unknownRequired(): readonly number[] {
    return this.#unknownRequired ?? [];
  }

  /** Returns true if MESSAGE-INTEGRITY is present and matches this key (section 14.5). */
  verifyIntegrity(key: Buffer | string): boolean {
    const at = this.#offsets.get(Attribute.messageIntegrity);
    if (at === undefined) return false;
    const { buffer } = this;
    const length = buffer.readUInt16BE(2);
    // For the HMAC, the length field counts up to and including MESSAGE-INTEGRITY.
    buffer.writeUInt16BE(at + INTEGRITY_LENGTH - STUN_HEADER_LENGTH, 2);
    const digest = createHmac('sha1', key)
      .update(buffer.subarray(0, at - 4))
      .digest();
    buffer.writeUInt16BE(length, 2);
    return timingSafeEqual(digest, buffer.subarray(at, at + INTEGRITY_LENGTH));
  }

  /** True when FINGERPRINT is absent or correct (section 14.7). */
  get fingerprintHolds(): boolean {
    const at = this.#offsets.get(Attribute.fingerprint);
    if (at === undefined) return true;
    return this.buffer.readUInt32BE(at) === (crc32(this.buffer.subarray(0, at - 4)) ^ FINGERPRINT_XOR) >>> 0;
  }
}

/** Known attributes with the minimum and maximum length of their values. */
const LENGTHS = new Map<number, readonly [number, number]>([
  [Attribute.username, [0, 513]],
  [Attribute.messageIntegrity, [INTEGRITY_LENGTH, INTEGRITY_LENGTH]],
  [Attribute.messageIntegritySha256, [16, 32]],
  [Attribute.errorCode, [4, 767]],
  [Attribute.unknownAttributes, [0, 512]],
  [Attribute.channelNumber, [4, 4]],
  [Attribute.lifetime, [4, 4]],
  [Attribute.xorPeerAddress, [8, 20]],
  [Attribute.data, [0, MAX_STUN_LENGTH]],
  [Attribute.realm, [0, 763]],
  [Attribute.nonce, [0, 763]],
  [Attribute.xorRelayedAddress, [8, 20]],
  [Attribute.requestedAddressFamily, [4, 4]],
  [Attribute.evenPort, [1, 1]],
  [Attribute.requestedTransport, [4, 4]],
  [Attribute.dontFragment, [0, 0]],
  [Attribute.xorMappedAddress, [8, 20]],
  [Attribute.mappedAddress, [8, 20]],
  [Attribute.reservationToken, [8, 8]],
  [Attribute.priority, [4, 4]],
  [Attribute.useCandidate, [0, 0]],
  [Attribute.software, [0, 763]],
  [Attribute.iceControlled, [8, 8]],
  [Attribute.iceControlling, [8, 8]],
]);
