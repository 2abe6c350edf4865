/** Bytes of a record in addition to its packet: the length, and three numbers that identify the stream. */
const RECORD_HEADER = 16;
/** Length that sends the reader back to the start. */
const WRAP = -1;

/** Positions of the words that both threads share. Far apart, so that they do not slow each other's caches. */
const WRITTEN = 0;
const READ = 16;
const ASLEEP = 32;
const WAITING_BYTES = 48;
/** Waiting bytes by room; rooms with the same remainder share a word. */
const ROOM_WORDS = { first: 64, count: 64 };
const CONTROL_BYTES = 512;

/** Identifies the stream of a packet; all are below 2^31. */
export interface PacketRoute {
  room: number;
  track: number;
  /** Index of the variant. */
  variant: number;
}

/** Returns the memory of a ring that holds `bytes`, a multiple of 4. */
export function createRingMemory(bytes: number): SharedArrayBuffer {
  return new SharedArrayBuffer(CONTROL_BYTES + bytes);
}

/** Both ends of a ring: packets of one thread that another one reads, in order, without locks. */
class RingEnd {
  protected readonly control: Int32Array;
  protected readonly words: Int32Array;
  protected readonly bytes: Uint8Array;

  constructor(memory: SharedArrayBuffer) {
    this.control = new Int32Array(memory, 0, CONTROL_BYTES / 4);
    this.words = new Int32Array(memory, CONTROL_BYTES);
    this.bytes = new Uint8Array(memory, CONTROL_BYTES);
  }
}

/** The writing end. It never waits: packets that do not fit are refused. */
export class RingWriter extends RingEnd {
  #at = 0;

  /** Writes an RTP packet under this sequence number. Returns false if it does not fit. */
  write(route: PacketRoute, packet: Uint8Array, sequence: number): boolean {
    const { bytes, words } = this;
    const size = RECORD_HEADER + ((packet.length + 3) & ~3);
    const at = this.#reserve(size);
    if (at < 0) return false;
    const word = at >>> 2;
    words[word] = packet.length;
    words[word + 1] = route.room;
    words[word + 2] = route.track;
    words[word + 3] = route.variant;
    const start = at + RECORD_HEADER;
    bytes.set(packet, start);
    bytes[start + 2] = sequence >>> 8;
    bytes[start + 3] = sequence;
    const next = at + size;
    this.#at = next === bytes.length ? 0 : next;
    Atomics.store(this.control, WRITTEN, this.#at);
    return true;
  }

  /** Returns true once after each `sleep` of the reader, which must then be woken. */
  mustWake(): boolean {
    return Atomics.load(this.control, ASLEEP) === 1 && Atomics.exchange(this.control, ASLEEP, 0) === 1;
  }

  /** Returns a position with this much contiguous room, or -1. The ring is never filled up: that would look empty. */
  #reserve(size: number): number {
    const at = this.#at;
    const read = Atomics.load(this.control, READ);
    if (read > at) return size < read - at ? at : -1;
    const tail = this.bytes.length - at;
    if (size < tail || (size === tail && read > 0)) return at;
    if (size >= read) return -1;
    this.words[at >>> 2] = WRAP;
    return 0;
  }

  /** Bytes of messages beside the ring that the reader has not taken yet. */
  get waitingBytes(): number {
    return Atomics.load(this.control, WAITING_BYTES);
  }

  /** Bytes of this room among them. */
  waitingBytesOf(room: number): number {
    return Atomics.load(this.control, wordOf(room));
  }

  /** Counts a message beside the ring; the reader calls `taken` with the same size. */
  sent(room: number, bytes: number): void {
    Atomics.add(this.control, WAITING_BYTES, bytes);
    Atomics.add(this.control, wordOf(room), bytes);
  }
}

/** A packet read from a ring, in a buffer that is reused for the next one. */
export interface RingPacket extends PacketRoute {
  buffer: Buffer;
  length: number;
}

/** The reading end. */
export class RingReader extends RingEnd {
  readonly packet: RingPacket;
  #at = 0;

  /** `buffer` takes each packet in turn; a writer's longer packets are skipped. */
  constructor(memory: SharedArrayBuffer, buffer: Buffer) {
    super(memory);
    this.packet = { room: 0, track: 0, variant: 0, buffer, length: 0 };
  }

  /** Reads the next packet into `packet`; returns false if there is none. */
  next(): boolean {
    const { control, words, packet } = this;
    for (;;) {
      let at = this.#at;
      if (at === Atomics.load(control, WRITTEN)) return false;
      if (words[at >>> 2] === WRAP) at = 0;
      const word = at >>> 2;
      const length = words[word]!;
      packet.length = length;
      packet.room = words[word + 1]!;
      packet.track = words[word + 2]!;
      packet.variant = words[word + 3]!;
      const fits = length <= packet.buffer.length;
      const from = at + RECORD_HEADER;
      if (fits) packet.buffer.set(this.bytes.subarray(from, from + length));
      const next = from + ((length + 3) & ~3);
      this.#at = next === this.bytes.length ? 0 : next;
      Atomics.store(control, READ, this.#at);
      if (fits) return true;
    }
  }

  /** Asks the writer to wake this end with its next packet. Returns false if one has arrived in the meantime. */
  sleep(): boolean {
    Atomics.store(this.control, ASLEEP, 1);
    if (this.#at === Atomics.load(this.control, WRITTEN)) return true;
    Atomics.store(this.control, ASLEEP, 0);
    return false;
  }

  /** Returns the bytes of a message beside the ring. */
  taken(room: number, bytes: number): void {
    Atomics.sub(this.control, WAITING_BYTES, bytes);
    Atomics.sub(this.control, wordOf(room), bytes);
  }
}

function wordOf(room: number): number {
  return ROOM_WORDS.first + (room % ROOM_WORDS.count);
}
