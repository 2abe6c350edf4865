import { MAX_FRAME_BYTES } from './link/frames.js';
import type { LinkLimits } from './link/link.js';

export interface NodeLimits extends LinkLimits {
  /** Time limit of each step of a handshake. Default 7 s. */
  readonly stepTimeoutMs: number;
  /** Connections that have not proved to know the cookie, at once. Default 64. */
  readonly maxPending: number;
  /**
   * Connections accepted per second and address. Ten times as many from an address that a node has connected from, and
   * four times as many from all other addresses together. Default 100.
   */
  readonly maxAcceptsPerSecond: number;
  /** Established connections; further nodes that dial us are refused. Default 2,048. */
  readonly maxConnections: number;
  /** Bytes of incomplete frames of all connections. Default 256 MiB. */
  readonly maxBufferedBytes: number;
  /** Monitors and links of all connections; each has its share of them for itself. Default 1,000,000. */
  readonly maxSignals: number;
  /** How long the event loop stays awake for the answer to a query; 0 never. Default 0.2 ms. */
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
