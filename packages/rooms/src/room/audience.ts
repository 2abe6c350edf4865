import { permissionsOf, type PeerRecord } from '../peer/peer-record.js';
import type { EndpointTrack, SessionInput } from '../peer/peer-session.js';

/** Returns whether a publisher lets a peer receive one of its tracks. */
export function mayReceive({ audience }: PeerRecord, trackId: string, { name, exempt }: PeerRecord): boolean {
  if (audience === undefined || exempt) return true;
  const tracks = name === undefined ? undefined : audience.get(name);

  return tracks === 'all' || tracks?.has(trackId) === true;
}

/** Returns a publisher's tracks as a peer is shown them. Only a peer with a name is shown those withheld from it. */
export function shownTracks(
  owner: PeerRecord,
  tracks: readonly EndpointTrack[],
  to: PeerRecord,
): readonly EndpointTrack[] {
  if (owner.audience === undefined) return tracks;

  return tracks.flatMap((track) => {
    if (mayReceive(owner, track.trackId, to)) return [track];

    return to.name === undefined ? [] : [{ ...track, withheld: true as const }];
  });
}

/** Returns the part of an input about a peer's tracks that another peer may learn; undefined when nothing remains. */
export function inputFor(to: PeerRecord, owner: PeerRecord | undefined, input: SessionInput): SessionInput | undefined {
  const permitted = permissionsOf(to).subscribe ? input : withoutTracks(input);
  if (owner?.audience === undefined || permitted === undefined) return permitted;
  const knows = (trackId: string): boolean => to.name !== undefined || mayReceive(owner, trackId, to);

  switch (permitted.type) {
    case 'endpointAdded': {
      const { endpoint } = permitted;
      return { ...permitted, endpoint: { ...endpoint, tracks: shownTracks(owner, endpoint.tracks, to) } };
    }
    case 'tracksAdded': {
      const tracks = shownTracks(owner, permitted.tracks, to);
      return tracks.length === 0 ? undefined : { ...permitted, tracks };
    }
    case 'tracksRemoved': {
      const trackIds = permitted.trackIds.filter(knows);
      return trackIds.length === 0 ? undefined : { ...permitted, trackIds };
    }
    case 'trackUpdated':
    case 'encodingChanged':
    case 'trackMuted':
    case 'trackStalled':
      return knows(permitted.trackId) ? permitted : undefined;
    // Whether somebody speaks is as private as the sound.
    case 'voiceActivity':
      return mayReceive(owner, permitted.trackId, to) ? permitted : undefined;
    default:
      return permitted;
  }
}

/** Returns the part of an input that concerns a peer without any received tracks; undefined when nothing does. */
function withoutTracks(input: SessionInput): SessionInput | undefined {
  if (input.type === 'tracksAdded') return undefined;

  return input.type === 'endpointAdded' ? { ...input, endpoint: { ...input.endpoint, tracks: [] } } : input;
}
