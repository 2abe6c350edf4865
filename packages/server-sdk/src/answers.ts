// The server's answers, where they differ from what a call returns.
import type { PathCheck, Peer, RawRecording } from './types.js';

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
export type ListedRawRecording = Omit<RawRecording, 'startedAt' | 'uploadedAt'> & {
  started_at: number;
  uploaded_at: number | null;
};

/** Answer of `POST /room/{room_id}/viewer`. */
export interface CreatedViewer {
  token: string;
  hls_url: string;
  expires_at: number;
}
