/**
 * Default maximum frame size. OTP sends each message as one frame, whatever its size, because we negotiate no
 * fragments.
 */
export const MAX_FRAME_BYTES = 64 * 1024 * 1024;

export interface LinkLimits {
  readonly maxFrameBytes: number;
  /** Unsent bytes above which queries fail and one-way messages follow `overflow`. */
  readonly highWaterBytes: number;
  readonly overflow: 'drop' | 'close';
}

export interface NodeLimits extends LinkLimits {
  /** Time limit for each step of a handshake. Default 7 s. */
  readonly stepTimeoutMs: number;
  /** Maximum number of connections that have not yet proved that they know the cookie. Default 64. */
  readonly maxPending: number;
  /**
   * Connections accepted per second and address, and at once. Ten times as many for an address from which a node has
   * connected, and four times as many for all other addresses together. Default 100.
   */
  readonly maxAcceptsPerSecond: number;
  /** Maximum number of established connections; further nodes that dial us are refused. Default 2,048. */
  readonly maxConnections: number;
  /** Maximum bytes of incomplete frames over all connections. Default 256 MiB. */
  readonly maxBufferedBytes: number;
  /**
   * Maximum number of monitors and links over all connections; each connection has a guaranteed share. Default
   * 1,000,000.
   */
  readonly maxSignals: number;
  /** How long the event loop stays awake for the answer to a query; 0 = never. Default 0.2 ms. */
  readonly busyWaitMs: number;
}

export const DEFAULT_LIMITS: NodeLimits = {
  maxFrameBytes: MAX_FRAME_BYTES,
  highWaterBytes: 8 * 1024 * 1024,
  overflow: 'drop',
  stepTimeoutMs: 7_000,
  maxPending: 64,
  maxAcceptsPerSecond: 100,
  maxConnections: 2_048,
  maxBufferedBytes: 256 * 1024 * 1024,
  maxSignals: 1_000_000,
  busyWaitMs: 0.2,
};
