import { createHmac } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { type TransportAddress, writeXorAddress } from './address.js';
import {
  Attribute,
  FINGERPRINT_XOR,
  MAGIC_COOKIE,
  type MessageClass,
  type Method,
  type StunErrorCode,
  STUN_HEADER_LENGTH,
} from './constants.js';

/**
 * Writes one STUN message into its own buffer. Attributes appear in call order; integrity comes second to last and
 * fingerprint last. A message that exceeds the reserved space is a programming error (RangeError).
 */
export class StunWriter {
  readonly #buffer: Buffer;
  #at = STUN_HEADER_LENGTH;

  constructor(method: Method, messageClass: MessageClass, transactionId: Uint8Array, capacity = 256) {
    const out = Buffer.allocUnsafe(STUN_HEADER_LENGTH + capacity);
    const type = (method & 0x000f) | ((method & 0x0070) << 1) | ((method & 0x0f80) << 2) | messageClass;
    out.writeUInt16BE(type, 0);
    out.writeUInt32BE(MAGIC_COOKIE, 4);
    out.set(transactionId, 8);
    this.#buffer = out;
  }

  bytes(type: number, value: Uint8Array): this {
    const at = this.#begin(type, value.length);
    this.#buffer.set(value, at);
    return this;
  }

  text(type: number, value: string): this {
    return this.bytes(type, Buffer.from(value));
  }

  uint32(type: number, value: number): this {
    this.#buffer.writeUInt32BE(value >>> 0, this.#begin(type, 4));
    return this;
  }

  xorAddress(type: number, address: TransportAddress): this {
    const at = this.#begin(type, 4 + address.bytes.length);
    writeXorAddress(this.#buffer, at, address);
    return this;
  }

  error([code, phrase]: StunErrorCode): this {
    const value = Buffer.alloc(4 + phrase.length);
    value[2] = Math.floor(code / 100);
    value[3] = code % 100;
    value.write(phrase, 4, 'latin1');
    return this.bytes(Attribute.errorCode, value);
  }

  unknownAttributes(types: readonly number[]): this {
    const value = Buffer.alloc(types.length * 2);
    types.forEach((type, i) => value.writeUInt16BE(type, i * 2));
    return this.bytes(Attribute.unknownAttributes, value);
  }

  integrity(key: Buffer | string): this {
    const at = this.#begin(Attribute.messageIntegrity, 20);
    this.#writeLength();
    const digest = createHmac('sha1', key)
      .update(this.#buffer.subarray(0, at - 4))
      .digest();
    this.#buffer.set(digest, at);
    return this;
  }

  fingerprint(): this {
    const at = this.#begin(Attribute.fingerprint, 4);
    this.#writeLength();
    const sum = crc32(this.#buffer.subarray(0, at - 4));
    this.#buffer.writeUInt32BE((sum ^ FINGERPRINT_XOR) >>> 0, at);
    return this;
  }

  finish(): Buffer {
    this.#writeLength();
    return this.#buffer.subarray(0, this.#at);
  }

  #begin(type: number, length: number): number {
    const at = this.#at;
    const next = at + 4 + ((length + 3) & ~3);
    if (next > this.#buffer.length) throw new RangeError(`a STUN message of ${next} bytes does not fit its buffer`);
    this.#buffer.writeUInt16BE(type, at);
    this.#buffer.writeUInt16BE(length, at + 2);
    this.#buffer.fill(0, at + 4 + length, next);
    this.#at = next;
    return at + 4;
  }

  #writeLength(): void {
    this.#buffer.writeUInt16BE(this.#at - STUN_HEADER_LENGTH, 2);
  }
}
