// What the page reads from the peers and tracks of a call. Anyone may have written their metadata.
import type { RemotePeer, RemoteTrack } from '@bloom/client';
import { nameOf, titleOf } from '../names.js';

/** Returns the name of a peer in the call: a person's name, or what a component is. */
export function nameOfPeer({ id, type, metadata }: Pick<RemotePeer, 'id' | 'type' | 'metadata'>): string {
  return type === 'webrtc' ? nameOf(metadata, id) : titleOf(type);
}

/** False while the publisher marks the track as muted. */
export function isActive({ metadata }: Pick<RemoteTrack, 'metadata'>): boolean {
  return ((metadata ?? {}) as { active?: unknown }).active !== false;
}

/** True for the picture of a shared screen. */
export function isScreen({ metadata, media }: Pick<RemoteTrack, 'metadata' | 'media'>): boolean {
  return media?.kind === 'video' && ((metadata ?? {}) as { source?: unknown }).source === 'screen';
}

/** Returns a peer's tracks that have media, of one kind or both. */
export function tracksOf({ tracks }: RemotePeer, kind?: 'audio' | 'video'): readonly RemoteTrack[] {
  return tracks.filter(({ media }) => media !== null && (kind === undefined || media.kind === kind));
}

/** Returns a sentence about the change between two moments of a call, or undefined if none is worth one. */
export function newsOf(before: readonly RemotePeer[], now: readonly RemotePeer[]): string | undefined {
  const known = new Map(before.map((peer) => [peer.id, peer]));
  const sentences = now.flatMap((peer): string[] => {
    const earlier = known.get(peer.id);
    if (earlier === undefined) return [];
    const tracks = new Map(tracksOf(earlier).map((track) => [track.id, track]));
    const changes = tracksOf(peer).flatMap((track): string[] => {
      const last = tracks.get(track.id);
      if (last === undefined) return isScreen(track) ? ['shares a screen'] : [];
      if (isActive(last) === isActive(track)) return [];
      return [
        `turned the ${track.media?.kind === 'audio' ? 'microphone' : 'camera'} ${isActive(track) ? 'on' : 'off'}`,
      ];
    });
    const still = new Set(tracksOf(peer).map(({ id }) => id));
    const ended = [...tracks.values()].some((track) => isScreen(track) && !still.has(track.id));
    return [...changes, ...(ended ? ['no longer shares a screen'] : [])].map(
      (change) => `${nameOfPeer(peer)} ${change}`,
    );
  });
  return sentences.length === 0 ? undefined : sentences.join(', ');
}
