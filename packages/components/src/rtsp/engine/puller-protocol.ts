/** Messages between a component and its forked process. */

/** What the native library opens. Contains credentials, so it travels in a message, never in arguments or environment. */
export interface PullerInput {
  /** Address with credentials. */
  uri: string;
  format: 'rtsp' | 'mpegts' | 'flv';
  options: Readonly<Record<string, string>>;
  /** First of four ports for RTP over UDP. */
  rtpPort: number;
}

export type ToPuller = { type: 'open'; input: PullerInput } | { type: 'end' };

export interface PulledFrame {
  kind: 'audio' | 'video';
  /** RTP time, 48 kHz or 90 kHz, from the start of the connection; does not fall. */
  timestamp: number;
  /** When it was due, Unix milliseconds. */
  dueMs: number;
  /** One Opus packet, or one H.264 access unit with Annex B start codes. */
  data: Uint8Array;
}

export type FromPuller =
  /** Frames whose time has come. */
  | { type: 'frames'; frames: PulledFrame[] }
  /** The sound cannot be converted and is left out. */
  | { type: 'noSound'; reason: string }
  /** The connection failed or ended; worth another try. One that was costly is not tried again soon. */
  | { type: 'lost'; reason: string; isCostly?: true }
  /** The source sends what no room can take. */
  | { type: 'refused'; reason: string }
  /** Sent every second, as a sign of life. */
  | { type: 'alive' };
