import { timestampDelta } from './unwrap.js';

/** Dropped packets to remember, for numbering late ones. */
const DROP_MEMORY = 256;
/** Numbers that may be skipped: the initial and maximum allowance, and how much each numbered packet adds to it. */
const MAX_LEFT_OUT = 4096;
const LEFT_OUT_PER_PACKET = 4;

export interface ForwardMapperOptions {
  /** RTP clock of the codec, Hz. */
  clockRate: number;
  /**
   * First sequence number to send, 0..65535. Keep it below 32768 so that a receiver's SRTP cannot miss the first wrap.
   */
  firstSequence: number;
  /** First timestamp to send. */
  firstTimestamp: number;
}

/**
 * Numbers the packets of one outbound stream that is fed from one variant at a time.
 *
 * Input sequence numbers are unwrapped per source stream (`SequenceUnwrapper`). Output numbers are contiguous across
 * switches, keep the gaps of loss, and close the gaps of dropped packets. Timestamps continue in wall time on a switch.
 *
 * Gaps too wide to be loss are closed too. A receiver infers the SRTP roll-over counter from the previous number: if a
 * publisher could make it leap by half a circle, the receiver could no longer decrypt this SSRC, whoever publishes on
 * it.
 */
export class ForwardMapper {
  /** Result of `map`, unwrapped: its low 16 bits go on the wire, the rest is SRTP's roll-over counter. */
  sequence: number;
  /** Result of `map`. */
  timestamp: number;

  readonly #clockRate: number;
  #started = false;
  /** output = input + offset for packets newer than every dropped one. */
  #sequenceOffset = 0;
  #timestampOffset = 0;
  /** Input number of the current source's first packet; lower ones are from before the switch. */
  #sourceStart = 0;
  #newestInput = 0;
  #newestOutput: number;
  #newestTimestamp: number;
  #newestTimestampAtMs = 0;
  #sent = false;
  readonly #dropped = new Float64Array(DROP_MEMORY);
  #dropCount = 0;
  #mayLeaveOut = MAX_LEFT_OUT;

  constructor(options: ForwardMapperOptions) {
    this.#clockRate = options.clockRate;
    this.#newestOutput = options.firstSequence - 1;
    this.#newestTimestamp = options.firstTimestamp >>> 0;
    this.sequence = options.firstSequence;
    this.timestamp = this.#newestTimestamp;
  }

  /** Highest sequence number sent so far, unwrapped; one below the first number if nothing has been sent. */
  get newestSequence(): number {
    return this.#newestOutput;
  }

  /** True once a source has been chosen. */
  get started(): boolean {
    return this.#started;
  }

  /**
   * Starts a new source with this packet (pass it to `map` next). Its number follows the last one sent; its timestamp
   * is the last one sent plus the wall time since, at least 1.
   */
  switchTo(sequence: number, timestamp: number, nowMs: number): void {
    let next = this.#newestTimestamp;
    if (this.#sent) {
      const elapsed = Math.round(((nowMs - this.#newestTimestampAtMs) * this.#clockRate) / 1000);
      next += Math.max(1, elapsed);
    }
    this.#started = true;
    this.#sourceStart = sequence;
    this.#newestInput = sequence - 1;
    this.#sequenceOffset = this.#newestOutput + 1 - sequence;
    this.#timestampOffset = (next - timestamp) | 0;
    this.#dropCount = 0;
  }

  /**
   * Numbers one packet of the current source into `sequence` and `timestamp`. Returns false for a packet that must not
   * be sent: it is from before the switch, too late to be numbered, or already dropped.
   */
  map(sequence: number, timestamp: number, nowMs: number): boolean {
    if (!this.#started || sequence < this.#sourceStart) return false;
    let offset = this.#sequenceOffset;
    if (sequence <= this.#newestInput) {
      const dropsAfter = this.#dropsAfter(sequence);
      if (dropsAfter < 0) return false;
      offset += dropsAfter;
    } else {
      this.#newestInput = sequence;
      offset = this.#withoutLeap(sequence);
    }
    this.sequence = sequence + offset;
    this.timestamp = (timestamp + this.#timestampOffset) >>> 0;
    if (this.sequence > this.#newestOutput) {
      this.#newestOutput = this.sequence;
      if (!this.#sent || timestampDelta(this.#newestTimestamp, this.timestamp) > 0) {
        this.#newestTimestamp = this.timestamp;
        this.#newestTimestampAtMs = nowMs;
        this.#sent = true;
      }
    }
    return true;
  }

  /**
   * Drops a packet of the current source (padding only, or above the wanted layer). Later packets close the gap.
   * Returns false if packets after it have already been numbered: then receivers await its number.
   */
  drop(sequence: number): boolean {
    if (!this.#started) return true;
    if (sequence <= this.#newestInput) return false;
    this.#newestInput = sequence;
    this.#sequenceOffset -= 1;
    this.#dropped[this.#dropCount % DROP_MEMORY] = sequence;
    this.#dropCount += 1;
    return true;
  }

  /** Returns the outbound timestamp for one of the current source, for sender reports. */
  mapTimestamp(timestamp: number): number {
    return (timestamp + this.#timestampOffset) >>> 0;
  }

  /** Returns the offset of a packet that is newer than all others. */
  #withoutLeap(sequence: number): number {
    const leftOut = sequence + this.#sequenceOffset - this.#newestOutput - 1;
    if (leftOut <= this.#mayLeaveOut) {
      this.#mayLeaveOut = Math.min(MAX_LEFT_OUT, this.#mayLeaveOut - leftOut + LEFT_OUT_PER_PACKET);
      return this.#sequenceOffset;
    }
    // Skip one number so that the receiver sees a loss. Packets still to come from before the leap get no numbers.
    this.#sequenceOffset = this.#newestOutput + 2 - sequence;
    this.#sourceStart = sequence;
    this.#dropCount = 0;
    return this.#sequenceOffset;
  }

  /**
   * Returns the number of dropped packets after `sequence`, or -1 if it was dropped itself or is older than the memory.
   */
  #dropsAfter(sequence: number): number {
    const kept = Math.min(this.#dropCount, DROP_MEMORY);
    for (let back = 0; back < kept; back += 1) {
      const dropped = this.#dropped[(this.#dropCount - 1 - back) % DROP_MEMORY]!;
      if (dropped === sequence) return -1;
      if (dropped < sequence) return back;
    }
    return this.#dropCount > DROP_MEMORY ? -1 : kept;
  }
}
