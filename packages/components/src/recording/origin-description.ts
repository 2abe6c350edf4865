import type { ReceivedTrack } from '@bloom/rooms';

/** What a report says about where a track comes from. */
export interface OriginDescription {
  /** Kind of the endpoint: `webrtc` for a participant, otherwise that of the component. */
  kind: string;
  /** What the track shows or transmits, as far as its metadata or its component says; null = unknown. */
  source: 'camera' | 'microphone' | 'screen' | 'file' | 'rtsp' | 'sip' | null;
  /** Name of the participant; null = unknown. */
  name: string | null;
  /** Metadata of the participant as others see it. */
  peer_metadata: unknown;
}

/** Maximum number of characters of a name. */
const MAX_NAME = 256;
/** Maximum metadata of one participant in a report, on all its tracks together, in characters of JSON. */
export const MAX_METADATA = 256 * 1024;

const COMPONENTS = ['file', 'rtsp', 'sip'] as const;
/** Fields of metadata that hold a participant's name, in order of preference. */
const NAME_FIELDS = ['name', 'displayName', 'username'];
const SOURCE_FIELDS = ['source', 'type'];

/** Describes the origin of a track from its metadata, which has any form: it comes from clients. */
export function describeOrigin({ originType, originMetadata, track }: ReceivedTrack): OriginDescription {
  return {
    kind: originType,
    source: COMPONENTS.find((kind) => kind === originType) ?? sourceIn(track.metadata),
    name: nameIn(originMetadata),
    peer_metadata: originMetadata ?? null,
  };
}

/**
 * Leaves out the metadata of a participant beyond `MAX_METADATA`: a client may publish any number of tracks one after
 * the other, each of which repeats it.
 */
export function limitMetadata(tracks: Iterable<{ origin: string; peer_metadata: unknown }>): void {
  const lengths = new Map<unknown, number>();
  const spent = new Map<string, number>();
  for (const track of tracks) {
    const { origin, peer_metadata: metadata } = track;
    const length = lengths.get(metadata) ?? JSON.stringify(metadata).length;
    lengths.set(metadata, length);
    const sum = (spent.get(origin) ?? 0) + length;
    if (sum > MAX_METADATA) track.peer_metadata = null;
    else spent.set(origin, sum);
  }
}

/** The backend's name counts before the client's. */
function nameIn(metadata: unknown): string | null {
  for (const part of [field(metadata, 'server'), field(metadata, 'peer'), metadata]) {
    const name = firstText(part, NAME_FIELDS);
    if (name !== undefined) return name.slice(0, MAX_NAME);
  }

  return null;
}

function sourceIn(metadata: unknown): 'camera' | 'microphone' | 'screen' | null {
  const text = firstText(metadata, SOURCE_FIELDS)?.toLowerCase() ?? '';
  if (text.startsWith('screen')) return 'screen';
  if (text === 'audio' || text.startsWith('mic')) return 'microphone';

  return text === 'camera' ? 'camera' : null;
}

function firstText(value: unknown, names: readonly string[]): string | undefined {
  return names.map((name) => field(value, name)).find((found) => typeof found === 'string' && found !== '') as
    | string
    | undefined;
}

function field(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined;

  return (value as Record<string, unknown>)[name];
}
