// What the page shows of a call: plain values, created again after each change.
import type { Variant } from '@bloom/client';
import type { Problem } from '../problem.js';

export type { Variant };

export interface TrackMetadata {
  readonly source: 'camera' | 'microphone' | 'generated';
  /** False while its owner has muted it. */
  readonly active: boolean;
}

export interface RemoteTrackView {
  readonly id: string;
  readonly kind: 'video' | 'audio';
  readonly track: MediaStreamTrack;
  readonly active: boolean;
  readonly source: TrackMetadata['source'] | null;
  /** Variants to choose from; empty for a track that has only one. */
  readonly variants: readonly Variant[];
  /** The variant that the person chose; null where the size of the tile decides. */
  readonly chosen: Variant | null;
  /** The variant being received, once the server has reported it. */
  readonly current: Variant | null;
  readonly speaking: boolean;
}

export interface RemotePeerView {
  readonly id: string;
  readonly name: string;
  readonly tracks: readonly RemoteTrackView[];
}

export type Phase = 'connecting' | 'connected' | 'reconnecting' | 'ended';

export interface CallView {
  readonly phase: Phase;
  readonly roomId: string;
  readonly name: string;
  readonly peers: readonly RemotePeerView[];
  /** What the others see, or would see if it were on; null while the camera is closed. */
  readonly ownPicture: MediaStreamTrack | null;
  readonly cameraOn: boolean;
  readonly microphoneOn: boolean;
  readonly problem: Problem | null;
  /** Information that is no fault, such as a generated picture instead of the camera's. */
  readonly notice: string | null;
  /** Who came or went last, for screen readers. */
  readonly news: string;
}

/** Returns a name from metadata, which may contain anything. */
export function nameOf(metadata: unknown, peerId: string): string {
  const { name } = (metadata ?? {}) as { name?: unknown };
  return typeof name === 'string' && name.trim() !== '' ? name.trim().slice(0, 40) : `Guest ${peerId.slice(0, 4)}`;
}

export function trackMetadataOf(metadata: unknown): { source: TrackMetadata['source'] | null; active: boolean } {
  const { source, active } = (metadata ?? {}) as { source?: unknown; active?: unknown };
  const known = source === 'camera' || source === 'microphone' || source === 'generated';
  return { source: known ? source : null, active: active !== false };
}
