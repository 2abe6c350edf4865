import { requireInteger } from './errors.js';

export interface PacketStoreOptions {
  /** Limit on packets; a power of two. */
  packets?: number;
  /** Limit on bytes. */
  bytes?: number;
  /** Age above which packets are no longer found. */
  maxAgeMs?: number;
}

/**
 * The newest plaintext packets of one publisher stream, stored once for all its subscribers, to answer NACKs. A ring of
 * bytes and a ring of entries, both allocated up front, so that nothing is allocated per packet.
 */
export class PacketStore {
  /** Results of `find`: the packet is `buffer[start, end)`. */
  readonly buffer: Buffer;
  start = 0;
  end = 0;

  readonly #mask: number;
  readonly #maxAgeMs: number;
  /** Unwrapped sequence number per entry; -1 = empty. */
  readonly #sequences: Float64Array;
  readonly #storedAtMs: Float64Array;
  /** Running byte position where each entry starts; modulo the ring size it is the offset. */
  readonly #positions: Float64Array;
  readonly #lengths: Uint32Array;
  #written = 0;

  constructor(options: PacketStoreOptions = {}) {
    const packets = requireInteger('packets', options.packets ?? 1024, 1, 65536);
    const size = 2 ** Math.ceil(Math.log2(packets));
    this.#mask = size - 1;
    this.#maxAgeMs = options.maxAgeMs ?? 2000;
    // Not zeroed, so that pages of a quiet stream are never touched.
    this.buffer = Buffer.allocUnsafeSlow(requireInteger('bytes', options.bytes ?? 512 * 1024, 1, 1 << 30));
    this.#sequences = new Float64Array(size).fill(-1);
    this.#storedAtMs = new Float64Array(size);
    this.#positions = new Float64Array(size);
    this.#lengths = new Uint32Array(size);
  }

  /** Keeps a copy of `source[start, end)` under its unwrapped sequence number. */
  put(sequence: number, source: Buffer, start: number, end: number, nowMs: number): void {
    const length = end - start;
    const capacity = this.buffer.length;
    if (length <= 0 || length > capacity) return;
    const entry = sequence & this.#mask;
    // A very late packet must not evict a newer one that shares its entry.
    if (this.#sequences[entry]! > sequence) return;
    let position = this.#written;
    const room = capacity - (position % capacity);
    if (room < length) position += room;
    source.copy(this.buffer, position % capacity, start, end);
    this.#written = position + length;
    this.#sequences[entry] = sequence;
    this.#storedAtMs[entry] = nowMs;
    this.#positions[entry] = position;
    this.#lengths[entry] = length;
  }

  /** Returns whether a stored packet has come so close to being overwritten that half of the room is used since. */
  isCrowded(sequence: number, newest: number): boolean {
    const written = this.#written - this.#positions[sequence & this.#mask]!;
    return written > this.buffer.length / 2 || newest - sequence > this.#mask / 2;
  }

  /** Returns whether the packet is stored. If so, it is `buffer[start, end)` until the next `put`. */
  find(sequence: number, nowMs: number, maxAgeMs = this.#maxAgeMs): boolean {
    const entry = sequence & this.#mask;
    if (this.#sequences[entry] !== sequence) return false;
    if (nowMs - this.#storedAtMs[entry]! > maxAgeMs) return false;
    const position = this.#positions[entry]!;
    // The bytes are overwritten once the ring has wrapped past them.
    if (this.#written - position > this.buffer.length) return false;
    this.start = position % this.buffer.length;
    this.end = this.start + this.#lengths[entry]!;
    return true;
  }
}
