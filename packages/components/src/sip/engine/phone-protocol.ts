/** What the server and a forked process of calls say to each other; structured clones over the IPC channel. */
import type { NegotiatedAudio, RtpStats } from '@bloom/sip';

export type ToPhones =
  /** A new call, and where to listen for its RTP. */
  | { type: 'open'; call: number; address: string; bindAddress: string }
  /** What both sides of the call agreed upon, at its beginning and after each change. */
  | { type: 'agreed'; call: number; audio: NegotiatedAudio }
  /** The tracks that the phone hears from now on, all of them. */
  | { type: 'tracks'; call: number; tracks: number[] }
  /** A `FrameBatch` of what is said in the rooms. */
  | { type: 'frames'; bytes: Uint8Array }
  | { type: 'close'; call: number }
  /** Nothing more will come. */
  | { type: 'end' };

export type FromPhones =
  | { type: 'opened'; call: number; port: number }
  /** There is no socket for the call. */
  | { type: 'refused'; call: number; message: string }
  /** A `FrameBatch` of what the phones say; timestamps of each call begin with zero. */
  | { type: 'frames'; bytes: Uint8Array }
  /** A key was pressed at the phone. */
  | { type: 'digit'; call: number; digit: string }
  /** Every second: it is not stuck. `quietMs` is the time since the last packet of the phone. */
  | { type: 'alive'; calls: { call: number; stats: RtpStats; quietMs: number | undefined }[] };
