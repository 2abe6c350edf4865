// What the page reads in the peers and tracks of a call, whose metadata anybody may have written.
import type { RemotePeer, RemoteTrack } from '@bloom/client';
import { nameOf, titleOf } from '../names.js';

/** Returns the name of a peer of the call: that of a person, or what a component is. */
export function nameOfPeer({ id, type, metadata }: Pick<RemotePeer, 'id' | 'type' | 'metadata'>): string {
  return type === 'webrtc' ? nameOf(metadata, id) : titleOf(type);
}

/** False while its publisher says that the track is muted. */
export function isActive({ metadata }: Pick<RemoteTrack, 'metadata'>): boolean {
  return ((metadata ?? {}) as { active?: unknown }).active !== false;
}

/** True for the picture of a shared screen. */
export function isScreen({ metadata, media }: Pick<RemoteTrack, 'metadata' | 'media'>): boolean {
  return media?.kind === 'video' && ((metadata ?? {}) as { source?: unknown }).source === 'screen';
}

/** Returns the tracks of a peer whose media is there, of one kind or of both. */
export function tracksOf({ tracks }: RemotePeer, kind?: 'audio' | 'video'): readonly RemoteTrack[] {
  return tracks.filter(({ media }) => media !== null && (kind === undefined || media.kind === kind));
}

/** Returns a sentence about what changed between two moments of a call, undefined when nothing worth one did. */
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
