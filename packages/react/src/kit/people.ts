// What the kit reads from the peers and tracks of a call. Anyone may have written their metadata.
import type { RemotePeer, RemoteTrack } from '@bloom/client';

/** Maximum number of characters shown of a name. */
const MAX_NAME = 40;

/** Names of components. */
const TITLES = new Map([
  ['hls', 'HLS stream'],
  ['recording', 'Recording'],
  ['rtsp', 'Camera (RTSP, SRT, RTMP)'],
  ['file', 'File'],
  ['sip', 'Phone (SIP)'],
]);

/** Returns the name of a kind of component, or the kind itself if it is not known here. */
export function titleOf(type: string): string {
  return TITLES.get(type) ?? type;
}

/** Returns a name from metadata, which may contain anything. The backend's name comes first. */
export function nameOf(metadata: unknown, peerId: string): string {
  const { name, server, peer } = fieldsOf(metadata);
  for (const candidate of [fieldsOf(server)['name'], fieldsOf(peer)['name'], name]) {
    if (typeof candidate === 'string' && candidate.trim() !== '') return shortened(candidate.trim());
  }
  return `Guest ${peerId.slice(0, 4)}`;
}

/** Returns at most `MAX_NAME` characters, the last of which shows that some are missing. */
function shortened(name: string): string {
  // Two code units are the most of a character, so the rest of a long text need not be split.
  const characters = Array.from(name.slice(0, 2 * MAX_NAME + 2));
  if (characters.length <= MAX_NAME) return name;
  const shown = characters.slice(0, MAX_NAME - 1).join('');
  return `${shown.trimEnd()}…`;
}

/** Returns the name of a peer in the call: a person's name, or what a component is. */
export function nameOfPeer({ id, type, metadata }: Pick<RemotePeer, 'id' | 'type' | 'metadata'>): string {
  return type === 'webrtc' ? nameOf(metadata, id) : titleOf(type);
}

/** Returns one or two letters that stand for a name. */
export function initialsOf(name: string): string {
  const words = name.split(/\s+/u).filter((word) => word !== '');
  const [first, last] = [words[0], words.length > 1 ? words.at(-1) : undefined];
  return [first, last].map((word) => [...(word ?? '')][0]?.toUpperCase() ?? '').join('');
}

/** Returns a hue (0 to 359) for a name. */
export function hueOf(name: string): number {
  let hash = 0;
  for (const char of name) hash = (hash * 131 + (char.codePointAt(0) ?? 0) * 7919) % 99_991;
  // The golden angle spreads similar names over the circle.
  return Math.round((hash * 137.508) % 360);
}

/** False while the track is muted, or its pictures are missing. */
export function isActive({ muted, stalled }: Pick<RemoteTrack, 'muted' | 'stalled'>): boolean {
  return !muted && !stalled;
}

/** True for the picture of a shared screen. */
export function isScreen({ metadata, kind }: Pick<RemoteTrack, 'metadata' | 'kind'>): boolean {
  return kind === 'video' && fieldsOf(metadata)['source'] === 'screen';
}

/** Returns a peer's tracks that have media, of one kind or both. */
export function tracksOf({ tracks }: RemotePeer, kind?: 'audio' | 'video'): readonly RemoteTrack[] {
  return tracks.filter((track) => track.media !== null && (kind === undefined || track.kind === kind));
}

/** True while one of the peer's sounds is a voice. */
export function isSpeaking(peer: RemotePeer): boolean {
  return tracksOf(peer, 'audio').some((sound) => sound.speaking && isActive(sound));
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
      if (last.muted === track.muted) return [];
      return [`turned the ${track.kind === 'audio' ? 'microphone' : 'camera'} ${track.muted ? 'off' : 'on'}`];
    });
    const still = new Set(tracksOf(peer).map(({ id }) => id));
    const ended = [...tracks.values()].some((track) => isScreen(track) && !still.has(track.id));
    return [...changes, ...(ended ? ['no longer shares a screen'] : [])].map(
      (change) => `${nameOfPeer(peer)} ${change}`,
    );
  });
  return sentences.length === 0 ? undefined : sentences.join(', ');
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return (value ?? {}) as Readonly<Record<string, unknown>>;
}
