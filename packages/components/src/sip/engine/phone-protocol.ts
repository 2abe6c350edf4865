/** Messages between the server and a forked process of calls: structured clones over the IPC channel. */
import type { NegotiatedAudio, RtpStats } from '@bloom/sip';

export type ToPhones =
  /** A new call, and the address for its RTP. */
  | { type: 'open'; call: number; address: string; bindAddress: string }
  /** The negotiated media, at the start and after each change. */
  | { type: 'agreed'; call: number; audio: NegotiatedAudio }
  /** Replaces the tracks that the phone hears. */
  | { type: 'tracks'; call: number; tracks: number[] }
  /** A `FrameBatch` from the rooms. */
  | { type: 'frames'; bytes: Uint8Array }
  | { type: 'close'; call: number }
  /** The process shall end. */
  | { type: 'end' };

export type FromPhones =
  | { type: 'opened'; call: number; port: number }
  /** No socket could be opened for the call. */
  | { type: 'refused'; call: number; message: string }
  /** A `FrameBatch` from the phones; timestamps of each call start at zero. */
  | { type: 'frames'; bytes: Uint8Array }
  /** A key was pressed on the phone. */
  | { type: 'digit'; call: number; digit: string }
  /** Sent every second, as a sign of life. `quietMs` is the time since the last packet of the phone. */
  | { type: 'alive'; calls: { call: number; stats: RtpStats; quietMs: number | undefined }[] };
