import { BATCH_BYTES } from './aes-counter.js';
import type { DatagramSink } from './datagram-sink.js';
import { AUTH_TAG_BYTES } from './key-derivation.js';
import { KeystreamPlan } from './keystream-plan.js';
import type { PacketSealer, SealerCounters, SealStream } from './packet-sealer.js';
import type { SrtpSendSession } from './send-session.js';
import { Slots } from './slots.js';
import { KERNEL_BYTES, KERNEL_TAILROOM, LANE_WORDS, LANES, loadKernel, type SealKernel } from './wasm-kernel.js';

/** SHA-1 states of the inner and outer padded keys. */
const STATE_WORDS = 10;

class Stream implements SealStream {
  readonly plan = new KeystreamPlan();
  /** Hash states for the session's key. */
  readonly states: Uint32Array;
  /** Address of this stream's keystream; 0 without an area of its own. */
  keystreamAt = 0;
  /** Packets until it gets its own area: streams that never start, or only repair losses, must not use up memory. */
  packetsUntilPlace = 4;
  /** The lane batch in which the stream last took part. */
  batch = -1;
  isOpen = true;

  constructor(
    readonly session: SrtpSendSession,
    readonly ssrc: number,
    public sink: DatagramSink,
    states: Uint32Array,
  ) {
    this.states = states;
  }
}

/** A packet in a lane, sent once it is sealed. */
interface Lane {
  stream: Stream | undefined;
  slot: number;
  length: number;
}

/** Sealer on WebAssembly SIMD: four receivers at once and keystream for several packets ahead, all in one memory. */
export class WasmSealer implements PacketSealer {
  readonly kind = 'wasm';
  readonly arena: Buffer;
  readonly maxPacketBytes: number;

  readonly #kernel: SealKernel;
  readonly #words: Uint32Array;
  readonly #slots: Slots;
  readonly #sourceAt: number;
  readonly #countersAt: number;
  /** Keystream for one packet per lane, for late packets and for streams without their own area. */
  readonly #laneKeystreamAt: number;
  readonly #laneKeystreamBytes: number;
  readonly #freeKeystreams: number[] = [];
  readonly #states = new WeakMap<SrtpSendSession, Uint32Array>();

  readonly #lanes: Lane[] = Array.from({ length: LANES }, () => ({ stream: undefined, slot: 0, length: 0 }));
  #count = 0;
  #batch = 0;
  #sourceLength = -1;

  /** Throws WebAssembly's error without SIMD support. */
  constructor(options: { slots: number; maxPacketBytes: number; keystreamBytes: number }) {
    const sizes = layout(options);
    const { kernel, memory } = loadKernel(sizes.end);
    this.#kernel = kernel;
    this.arena = Buffer.from(memory);
    this.#words = new Uint32Array(memory);
    this.maxPacketBytes = options.maxPacketBytes;
    this.#countersAt = sizes.counters;
    this.#laneKeystreamAt = sizes.laneKeystreams;
    this.#laneKeystreamBytes = sizes.laneKeystreamBytes;
    this.#sourceAt = sizes.source;
    this.#slots = new Slots(this.arena, {
      base: sizes.slots,
      count: options.slots,
      packetBytes: options.maxPacketBytes,
      tailroom: KERNEL_TAILROOM,
    });
    for (let i = sizes.keystreamCount - 1; i >= 0; i -= 1)
      this.#freeKeystreams.push(sizes.keystreams + i * BATCH_BYTES);
  }

  openStream(session: SrtpSendSession, ssrc: number, sink: DatagramSink): SealStream {
    let states = this.#states.get(session);
    if (states === undefined) {
      states = this.#padStates(session);
      this.#states.set(session, states);
    }
    return new Stream(session, ssrc, sink, states);
  }

  closeStream(handle: SealStream): void {
    const stream = handle as Stream;
    if (!stream.isOpen) return;
    stream.isOpen = false;
    if (stream.keystreamAt > 0) this.#freeKeystreams.push(stream.keystreamAt);
    stream.keystreamAt = 0;
  }

  begin(source: Buffer, start: number, end: number): void {
    this.#flush();
    const length = end - start;
    if (length > this.maxPacketBytes) {
      this.#sourceLength = -1;
      return;
    }
    source.copy(this.arena, this.#sourceAt, start, end);
    this.#sourceLength = length;
  }

  get counters(): SealerCounters {
    return this.#slots.counters;
  }

  reserve(): number {
    return this.#slots.reserve();
  }

  commit(handle: SealStream, headerLength: number, prefixLength: number, skip: number, index: number): boolean {
    const stream = handle as Stream;
    const rest = this.#sourceLength - skip;
    const payload = prefixLength + rest;
    const length = headerLength + payload + AUTH_TAG_BYTES;
    if (rest < 0 || length > this.maxPacketBytes) {
      this.counters.oversized += 1;
      return false;
    }
    const slot = this.#slots.peek();
    if (slot < 0 || !stream.isOpen) return false;
    // Take the slot before the keystream: fetching that may flush and push other slots onto the stack.
    this.#slots.take();
    const keystream = this.#keystream(stream, index, payload);

    const lane = this.#lanes[this.#count]!;
    lane.stream = stream;
    lane.slot = slot;
    lane.length = length;
    stream.batch = this.#batch;
    const words = this.#words;
    const at = this.#count * LANE_WORDS;
    words[at] = this.#slots.offset(slot);
    words[at + 1] = headerLength;
    words[at + 2] = prefixLength;
    words[at + 3] = this.#sourceAt + skip;
    words[at + 4] = rest;
    words[at + 5] = keystream;
    words[at + 6] = Math.floor(index / 65536);
    const { states } = stream;
    for (let i = 0; i < STATE_WORDS; i += 1) words[at + 8 + i] = states[i]!;
    this.#count += 1;
    if (this.#count === LANES) this.#flush();
    return true;
  }

  end(): void {
    this.#flush();
  }

  release(slot: number): void {
    this.#slots.release(slot);
  }

  /** Returns the address of this packet's keystream, valid until the batch is flushed. */
  #keystream(stream: Stream, index: number, length: number): number {
    const { plan } = stream;
    if (plan.covers(index, length)) return stream.keystreamAt + (index - plan.first) * plan.bytesEach;
    if (stream.keystreamAt === 0) {
      stream.packetsUntilPlace -= 1;
      if (stream.packetsUntilPlace < 0) stream.keystreamAt = this.#freeKeystreams.pop() ?? 0;
    }
    // A late packet must not discard the keystream of later packets.
    if (stream.keystreamAt === 0 || index < plan.first) {
      const to = this.#laneKeystreamAt + this.#count * this.#laneKeystreamBytes;
      this.#generate(stream, index, 1, (length + 15) & ~15, to);
      return to;
    }
    // An earlier packet of this stream may still be waiting in a lane for the keystream that would be overwritten.
    if (stream.batch === this.#batch) this.#flush();
    plan.advance(index, length, BATCH_BYTES);
    this.#generate(stream, index, plan.packets, plan.bytesEach, stream.keystreamAt);
    return stream.keystreamAt;
  }

  #generate(stream: Stream, index: number, packets: number, bytesEach: number, to: number): void {
    const { counter } = stream.session;
    const at = this.#countersAt;
    this.#kernel.counterBlocks(
      at,
      counter.word0,
      counter.word1(stream.ssrc),
      counter.salt2,
      counter.salt3,
      Math.floor(index / 65536),
      index % 65536,
      packets,
      bytesEach >>> 4,
    );
    this.arena.set(counter.encryptBlocks(this.arena.subarray(at, at + packets * bytesEach)), to);
  }

  #flush(): void {
    const count = this.#count;
    if (count === 0) return;
    this.#kernel.protect(count);
    this.#count = 0;
    this.#batch += 1;
    for (let i = 0; i < count; i += 1) {
      const lane = this.#lanes[i]!;
      const sink = lane.stream!.sink;
      lane.stream = undefined;
      this.#slots.send(lane.slot, sink, lane.length);
    }
  }

  #padStates(session: SrtpSendSession): Uint32Array {
    const at = this.#countersAt;
    session.hmac.innerPad.copy(this.arena, at);
    session.hmac.outerPad.copy(this.arena, at + 64);
    this.#kernel.padStates(at, at + 128);
    const states = this.#words.slice((at + 128) >>> 2, ((at + 128) >>> 2) + STATE_WORDS);
    // Erase the padded key, so that no bug can send it.
    this.arena.fill(0, at, at + 128 + STATE_WORDS * 4);
    return states;
  }
}

function layout(options: { slots: number; maxPacketBytes: number; keystreamBytes: number }) {
  const roomForOne = Math.ceil((options.maxPacketBytes + 32) / 64) * 64;
  const counters = KERNEL_BYTES;
  const laneKeystreams = counters + Math.max(BATCH_BYTES, roomForOne);
  const source = laneKeystreams + LANES * roomForOne;
  const slots = source + roomForOne;
  const keystreams = slots + options.slots * Slots.stride(options.maxPacketBytes, KERNEL_TAILROOM);
  const keystreamCount = Math.floor(options.keystreamBytes / BATCH_BYTES);
  return {
    counters,
    laneKeystreams,
    laneKeystreamBytes: roomForOne,
    source,
    slots,
    keystreams,
    keystreamCount,
    // Finished lanes keep reading while longer ones are hashed.
    end: keystreams + keystreamCount * BATCH_BYTES + 2 * roomForOne,
  };
}
