/** Messages between a component and its forked process. */

/**
 * Input for the native library. Contains credentials, so it travels in a message, never in arguments or the
 * environment.
 */
export interface PullerInput {
  /** Address with credentials. */
  uri: string;
  /** Address of the host of an RTSP source, if that is a name. */
  address?: string;
  format: 'rtsp' | 'mpegts' | 'flv';
  options: Readonly<Record<string, string>>;
  /** First of the four ports for RTP over UDP. */
  rtpPort: number;
}

export type ToPuller = { type: 'open'; input: PullerInput } | { type: 'end' };

export interface PulledFrame {
  kind: 'audio' | 'video';
  /** RTP time at 48 kHz or 90 kHz since the start of the connection; never decreases. */
  timestamp: number;
  /** When the frame was due, in Unix milliseconds. */
  dueMs: number;
  /** One Opus packet, or one H.264 access unit with Annex B start codes. */
  data: Uint8Array;
}

export type FromPuller =
  /** Frames whose time has come. */
  | { type: 'frames'; frames: PulledFrame[] }
  /** The sound cannot be converted and is left out. */
  | { type: 'noSound'; reason: string }
  /** The connection failed or ended and is worth another attempt; after a costly one, only much later. */
  | { type: 'lost'; reason: string; isCostly?: true }
  /** The source sends media that no room can take. */
  | { type: 'refused'; reason: string }
  /** Heartbeat, sent every second. */
  | { type: 'alive' };
