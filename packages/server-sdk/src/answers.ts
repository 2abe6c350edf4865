// The server's answers and queries, where they differ from what a call returns and takes.
import type { CreatedPeer } from './created.js';
import type { PathCheck, Peer, RawRecording, RawRecordingMix, RawRecordingQuery } from './types.js';

/** Body of an answer; empty if nothing is returned. */
export interface Answer<T> {
  data: T;
  /** Nodes missing from a list of the cluster. */
  unreachable?: string[];
}

/** Answer of `POST /room/{room_id}/peer`. */
export interface AddedPeer {
  peer: Peer;
  token: string;
  peer_websocket_url: string;
  whip_url: string;
  whep_url: string;
}

export function created({ peer, token, peer_websocket_url, whip_url, whep_url }: AddedPeer): CreatedPeer {
  return { peer, token, websocketUrl: peer_websocket_url, whipUrl: whip_url, whepUrl: whep_url };
}

/** Answer of `POST /room/{room_id}/invitation`. */
export interface CreatedInvitation {
  token: string;
  url: string | null;
  expires_at: number;
}

/** Answer of `POST /check`. */
export interface CreatedCheck {
  relays: PathCheck['relays'];
  expires_at: number;
}

/** A recording in the answer of `GET /raw_recording`. */
export type ListedRawRecording = Omit<RawRecording, 'startedAt' | 'uploadedAt' | 'mix'> & {
  started_at: number;
  uploaded_at: number | null;
  mix?: ListedMix;
};

/** The mix of a recording there, and in the answer of `POST /raw_recording/{room_id}/{part}/mix`. */
export type ListedMix = Omit<RawRecordingMix, 'requestedAt' | 'endedAt'> & {
  requested_at: number;
  ended_at: number | null;
};

export function mixOf({ requested_at, ended_at, ...rest }: ListedMix): RawRecordingMix {
  return { ...rest, requestedAt: requested_at, endedAt: ended_at };
}

export function recordingOf({ started_at, uploaded_at, mix, ...rest }: ListedRawRecording): RawRecording {
  return {
    ...rest,
    startedAt: started_at,
    uploadedAt: uploaded_at,
    ...(mix === undefined ? {} : { mix: mixOf(mix) }),
  };
}

/** Returns the query of `GET /raw_recording`. */
export function rawQueryOf(
  scope: 'local' | 'cluster',
  { room, limit, after }: RawRecordingQuery = {},
): Readonly<Record<string, string | number | undefined>> {
  return {
    scope: scope === 'cluster' ? scope : undefined,
    room,
    limit,
    after: after && `${after.room}/${after.part}`,
  };
}

/** Answer of `POST /room/{room_id}/viewer`. */
export interface CreatedViewer {
  token: string;
  hls_url: string;
  expires_at: number;
}
