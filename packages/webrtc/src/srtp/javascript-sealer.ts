import type { DatagramSink } from './datagram-sink.js';
import { writeTag } from './hmac-sha1.js';
import { AUTH_TAG_BYTES } from './key-derivation.js';
import { KeystreamWindow } from './keystream-window.js';
import type { PacketSealer, SealerCounters, SealStream } from './packet-sealer.js';
import type { SrtpSendSession } from './send-session.js';
import { Slots } from './slots.js';

/** The roll-over counter is authenticated after the packet but not sent. */
const TAILROOM = 16;

class Stream implements SealStream {
  readonly keystream: KeystreamWindow;
  isOpen = true;

  constructor(
    readonly session: SrtpSendSession,
    readonly ssrc: number,
    public sink: DatagramSink,
  ) {
    this.keystream = new KeystreamWindow(session.counter, ssrc);
  }
}

/** Sealer for runtimes without WebAssembly SIMD: cached AES, XOR in JavaScript, two digests per packet. */
export class JavascriptSealer implements PacketSealer {
  readonly kind = 'javascript';
  readonly arena: Buffer;
  readonly maxPacketBytes: number;
  readonly #words: Uint32Array;
  readonly #slots: Slots;
  #source: Buffer;
  #sourceStart = 0;
  #sourceEnd = 0;

  constructor(options: { slots: number; maxPacketBytes: number }) {
    this.maxPacketBytes = options.maxPacketBytes;
    this.arena = Buffer.from(new ArrayBuffer(options.slots * Slots.stride(options.maxPacketBytes, TAILROOM)));
    this.#words = new Uint32Array(this.arena.buffer, this.arena.byteOffset, this.arena.length >>> 2);
    this.#slots = new Slots(this.arena, {
      base: 0,
      count: options.slots,
      packetBytes: options.maxPacketBytes,
      tailroom: TAILROOM,
    });
    this.#source = this.arena;
  }

  openStream(session: SrtpSendSession, ssrc: number, sink: DatagramSink): SealStream {
    return new Stream(session, ssrc, sink);
  }

  closeStream(stream: SealStream): void {
    (stream as Stream).isOpen = false;
  }

  begin(source: Buffer, start: number, end: number): void {
    this.#source = source;
    this.#sourceStart = start;
    this.#sourceEnd = end;
  }

  get counters(): SealerCounters {
    return this.#slots.counters;
  }

  reserve(): number {
    return this.#slots.reserve();
  }

  commit(handle: SealStream, headerLength: number, prefixLength: number, skip: number, index: number): boolean {
    const stream = handle as Stream;
    const rest = this.#sourceEnd - this.#sourceStart - skip;
    const payload = prefixLength + rest;
    const end = headerLength + payload;
    if (rest < 0 || end + AUTH_TAG_BYTES > this.maxPacketBytes) {
      this.counters.oversized += 1;
      return false;
    }
    const slot = this.#slots.peek();
    if (slot < 0 || !stream.isOpen) return false;
    this.#slots.take();
    const { arena } = this;
    const at = this.#slots.offset(slot);
    const payloadAt = at + headerLength;
    this.#source.copy(arena, payloadAt + prefixLength, this.#sourceStart + skip, this.#sourceEnd);
    stream.keystream.seek(index, payload);
    this.#xor(payloadAt, payload, stream.keystream.words, stream.keystream.at);
    arena.writeUInt32BE(Math.floor(index / 65536), at + end);
    writeTag(stream.session.hmac.digest(arena, at, at + end + 4), arena, at + end);

    this.#slots.send(slot, stream.sink, end + AUTH_TAG_BYTES);
    return true;
  }

  end(): void {
    // Each commit has already sent its packet.
  }

  release(slot: number): void {
    this.#slots.release(slot);
  }

  /** XORs whole words. Slots and headers are multiples of 4 bytes; up to 3 bytes after the payload are scratch. */
  #xor(at: number, length: number, keystream: Uint32Array, keystreamAt: number): void {
    const words = this.#words;
    const first = at >>> 2;
    const count = (length + 3) >>> 2;
    for (let i = 0; i < count; i += 1) words[first + i] = words[first + i]! ^ keystream[keystreamAt + i]!;
  }
}
