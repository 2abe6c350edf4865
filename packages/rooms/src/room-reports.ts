// What a node reports of its rooms.
import type { RoomMediaStats } from '@bloom/sfu';

/** What placement compares between nodes. Always current, and available without asking the rooms. */
export interface RoomsLoad {
  /** Active and pending track subscriptions. */
  forwardedTracks: number;
  /** Rooms, including those being created. */
  rooms: number;
}

interface PeerReport {
  peerId: string;
  metadata: unknown;
  /** Metadata of the peer's published tracks. */
  tracks: readonly { trackId: string; metadata: unknown }[];
  /** The peer's last offer and answer. */
  descriptions: { offer?: string; answer?: string };
}

/** A room with at least one connected peer, for the metrics report. */
export interface RoomReport {
  roomId: string;
  peers: readonly PeerReport[];
  /** Undefined when the media plane did not answer. */
  media: RoomMediaStats | undefined;
}

export interface ComponentState {
  /** null = the component receives no tracks. */
  subscribeMode: 'auto' | 'manual' | null;
  /** Endpoints chosen through the API. */
  origins: readonly string[];
  /** Tracks that the component currently receives. */
  receives: readonly { trackId: string; origin: string }[];
  /** Kind-specific details; null = none. */
  details: unknown;
}
