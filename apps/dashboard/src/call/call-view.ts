// What the page shows of a call: plain values, created again after each change.
import type { RemotePeer, Variant } from '@bloom/client';
import type { Problem } from '../problem.js';
import { titleOf } from '../views/room/component-fields.js';

export type { Variant };

export interface TrackMetadata {
  readonly source: 'camera' | 'microphone' | 'generated' | 'screen';
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
  /** False for a component, such as a file that is played. */
  readonly isPerson: boolean;
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
  readonly ownSource: TrackMetadata['source'];
  readonly cameraOn: boolean;
  readonly microphoneOn: boolean;
  /** What the server withholds from the others. */
  readonly mutedByServer: readonly ('camera' | 'microphone')[];
  readonly problem: Problem | null;
  /** Information that is no fault, such as a generated picture instead of the camera's. */
  readonly notice: string | null;
  /** What happened last, in a sentence. */
  readonly news: string;
  readonly sharing: boolean;
  readonly messages: readonly ChatMessage[];
}

export interface ChatMessage {
  /** Rises by one with each message. */
  readonly number: number;
  readonly name: string;
  readonly own: boolean;
  readonly text: string;
}

/** Returns a sentence about what changed between two moments of a call, undefined when nothing worth one did. */
export function newsOf(before: readonly RemotePeerView[], now: readonly RemotePeerView[]): string | undefined {
  const known = new Map(before.map((peer) => [peer.id, peer]));
  const sentences = now.flatMap((peer): string[] => {
    const earlier = known.get(peer.id);
    if (earlier === undefined) return [];
    const tracks = new Map(earlier.tracks.map((track) => [track.id, track]));
    const changes = peer.tracks.flatMap(({ id, kind, active, source }): string[] => {
      const track = tracks.get(id);
      if (track === undefined) return source === 'screen' && kind === 'video' ? ['shares a screen'] : [];
      if (track.active === active) return [];
      return [`turned the ${kind === 'audio' ? 'microphone' : 'camera'} ${active ? 'on' : 'off'}`];
    });
    const still = new Set(peer.tracks.map(({ id }) => id));
    const ended = earlier.tracks.some(
      ({ id, kind, source }) => source === 'screen' && kind === 'video' && !still.has(id),
    );
    return [...changes, ...(ended ? ['no longer shares a screen'] : [])].map((change) => `${peer.name} ${change}`);
  });
  return sentences.length === 0 ? undefined : sentences.join(', ');
}

/** Returns a name from metadata, which may contain anything; that of the backend first. */
export function nameOf(metadata: unknown, peerId: string): string {
  const { name, server, peer } = fieldsOf(metadata);
  for (const candidate of [fieldsOf(server)['name'], fieldsOf(peer)['name'], name]) {
    if (typeof candidate === 'string' && candidate.trim() !== '') return candidate.trim().slice(0, 40);
  }
  return `Guest ${peerId.slice(0, 4)}`;
}

/** Returns the name of a peer of the call: that of a person, or what a component is. */
export function nameOfPeer({ id, type, metadata }: Pick<RemotePeer, 'id' | 'type' | 'metadata'>): string {
  if (type === 'webrtc') return nameOf(metadata, id);
  return titleOf(type);
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return (value ?? {}) as Readonly<Record<string, unknown>>;
}

export function trackMetadataOf(metadata: unknown): { source: TrackMetadata['source'] | null; active: boolean } {
  const { source, active } = (metadata ?? {}) as { source?: unknown; active?: unknown };
  const known = source === 'camera' || source === 'microphone' || source === 'generated' || source === 'screen';
  return { source: known ? source : null, active: active !== false };
}
