/** Messages between the server and a forked process of calls, as structured clones over the IPC channel. */
import type { NegotiatedAudio, RtpStats } from '@bloom/sip';

export type ToPhones =
  /** Opens a call, with the addresses for its RTP. */
  | { type: 'open'; call: number; address: string; bindAddress: string }
  /** Negotiated media, sent at the start and after each change. */
  | { type: 'agreed'; call: number; audio: NegotiatedAudio }
  /** Replaces the tracks the phone hears. */
  | { type: 'tracks'; call: number; tracks: number[] }
  /** A `FrameBatch` from the rooms. */
  | { type: 'frames'; bytes: Uint8Array }
  | { type: 'close'; call: number }
  /** Ends the process. */
  | { type: 'end' };

export type FromPhones =
  | { type: 'opened'; call: number; port: number }
  /** No socket could be opened for the call. */
  | { type: 'refused'; call: number; message: string }
  /** A `FrameBatch` from the phones. Each call's timestamps start at zero. */
  | { type: 'frames'; bytes: Uint8Array }
  /** A key was pressed on the phone. */
  | { type: 'digit'; call: number; digit: string }
  /** Heartbeat, sent every second. `quietMs` is the time since the phone's last packet. */
  | { type: 'alive'; calls: { call: number; stats: RtpStats; quietMs: number | undefined }[] };
