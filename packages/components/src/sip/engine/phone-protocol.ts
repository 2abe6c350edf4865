/** What the server and the forked process of one call say to each other; structured clones over the IPC channel. */
import type { NegotiatedAudio, RtpStats } from '@bloom/sip';

export type ToPhone =
  /** The first one: where to listen for RTP. */
  | { type: 'open'; address: string; bindAddress: string }
  /** What both sides of the call agreed upon, at its beginning and after each change. */
  | { type: 'agreed'; audio: NegotiatedAudio }
  /** The tracks that the phone hears from now on, all of them. */
  | { type: 'tracks'; ids: string[] }
  /** One Opus packet of a track; `timestamp` is 48 kHz. */
  | { type: 'frame'; track: string; timestamp: number; data: Uint8Array }
  /** Packets of the track are missing before its next one. */
  | { type: 'gap'; track: string }
  | { type: 'close' };

export type FromPhone =
  | { type: 'opened'; port: number }
  /** There is no socket for the call. */
  | { type: 'refused'; message: string }
  /** One Opus packet of the phone; `timestamp` is 48 kHz, from zero. */
  | { type: 'frame'; timestamp: number; data: Uint8Array }
  /** A key was pressed at the phone. */
  | { type: 'digit'; digit: string }
  /** Every second: it is not stuck. `quietMs` is the time since the last packet of the phone. */
  | { type: 'alive'; stats: RtpStats; quietMs: number | undefined };
