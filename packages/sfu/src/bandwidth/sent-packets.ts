const START_SIZE = 512;
const MAX_SIZE = 16_384;

/**
 * Packets sent on one transport, by transport-wide sequence number, until they are acknowledged or reported missing.
 * Grows with the packets in flight, so that most listeners cost little.
 */
export class SentPackets {
  #size = START_SIZE;
  #sentMs = new Float64Array(START_SIZE);
  #bytes = new Uint16Array(START_SIZE);
  /** 0 = free or already acknowledged; otherwise probe number + 1. */
  #state = new Uint8Array(START_SIZE);
  /** 1 = reported missing. */
  #missing = new Uint8Array(START_SIZE);
  #oldest = 0;
  #next = 0;

  /** Unwrapped number of the next packet; its low 16 bits go on the wire. */
  get nextSequence(): number {
    return this.#next;
  }

  /** Number of packets that fit. */
  get size(): number {
    return this.#size;
  }

  /** Records one packet and returns its unwrapped number. `probe` 0 = none. */
  add(bytes: number, probe: number, nowMs: number): number {
    const sequence = this.#next++;
    if (sequence - this.#oldest >= this.#size) {
      if (this.#size < MAX_SIZE && this.#isUnderWay(this.#oldest % this.#size)) this.#grow();
      else this.#oldest = sequence - this.#size + 1;
    }
    const slot = sequence % this.#size;
    this.#sentMs[slot] = nowMs;
    this.#bytes[slot] = bytes;
    this.#state[slot] = probe + 1;
    this.#missing[slot] = 0;
    return sequence;
  }

  /** Unwraps a 16-bit number to the newest sent packet it can refer to; returns -1 if no such packet was sent. */
  unwrap(wire: number): number {
    const newest = this.#next - 1;
    if (newest < 0) return -1;
    const back = (newest - wire) & 0xffff;
    const sequence = newest - back;
    return sequence >= this.#oldest && back < this.#size ? sequence : -1;
  }

  /** Marks a packet as missing. Returns false if it was already marked, is unknown or was taken. */
  miss(sequence: number): boolean {
    if (sequence < this.#oldest || sequence >= this.#next) return false;
    const slot = sequence % this.#size;
    if (!this.#isUnderWay(slot)) return false;
    this.#missing[slot] = 1;
    return true;
  }

  /** Takes a packet out; returns false if it is unknown or already taken. Fills the `taken...` fields. */
  take(sequence: number): boolean {
    if (sequence < this.#oldest || sequence >= this.#next) return false;
    const slot = sequence % this.#size;
    const state = this.#state[slot]!;
    if (state === 0) return false;
    this.#state[slot] = 0;
    this.takenSentMs = this.#sentMs[slot]!;
    this.takenBytes = this.#bytes[slot]!;
    this.takenProbe = state - 1;
    this.takenMissing = this.#missing[slot] === 1;
    return true;
  }

  takenSentMs = 0;
  takenBytes = 0;
  takenProbe = 0;
  /** True if the packet had been reported missing. */
  takenMissing = false;

  #isUnderWay(slot: number): boolean {
    return this.#state[slot] !== 0 && this.#missing[slot] === 0;
  }

  #grow(): void {
    const size = this.#size * 2;
    const sentMs = new Float64Array(size);
    const bytes = new Uint16Array(size);
    const state = new Uint8Array(size);
    const missing = new Uint8Array(size);
    for (let sequence = this.#oldest; sequence < this.#next - 1; sequence++) {
      const from = sequence % this.#size;
      const to = sequence % size;
      sentMs[to] = this.#sentMs[from]!;
      bytes[to] = this.#bytes[from]!;
      state[to] = this.#state[from]!;
      missing[to] = this.#missing[from]!;
    }
    this.#size = size;
    this.#sentMs = sentMs;
    this.#bytes = bytes;
    this.#state = state;
    this.#missing = missing;
  }
}
