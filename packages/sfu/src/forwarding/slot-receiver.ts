import type { SealStream } from '@bloom/webrtc';
import type { Pacer } from '../bandwidth/pacer.js';
import type { RepairBudget } from '../bandwidth/repair-budget.js';
import type { MediaRoomEvent } from '../media-engine.js';

/** The transport of a slot, as the slot uses it. */
export interface SlotReceiver {
  readonly peerId: string;
  readonly roundTripMs: number;
  /** Returns the transport-wide number of the next packet, or -1 if none is to be written. */
  nextTransportSequence(wanted: boolean): number;
  /** Counts a sent packet. `numbered`: it carries the transport-wide number returned last. */
  packetSent(bytes: number, numbered: boolean, nowMs: number): void;
  openStream(ssrc: number): SealStream | undefined;
  closeStream(stream: SealStream): void;
  /** Number of earlier packets that each packet of sound should repeat. */
  readonly redundancy: number;
  /**
   * Returns the bits per second with which a stream with layers begins; `Infinity` if the client does not measure.
   * `formerBps`: rate of the one that it replaces.
   */
  startBps(formerBps: number): number;
  readonly repairs: RepairBudget;
  readonly pacer: Pacer;
  /** True while packets of a slot may wait for room. */
  hasHeld: boolean;
  fault(error: unknown): void;
  emit(event: MediaRoomEvent): void;
}
