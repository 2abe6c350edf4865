// Shapes of the server's answers, with what the commands show. Kinds and states are any text, because a later release
// may have more of them.
import { count, flag, integer, list, nullable, number, object, optional, type Shape, text } from '@bloom/actors';

export interface Invitation {
  token: string;
  /** Null where the server has no page for guests. */
  url: string | null;
  expiresAt: number;
}

export interface Viewer {
  token: string;
  hlsUrl: string;
  expiresAt: number;
}

/** The making of one movie of a recording. */
export interface Mix {
  state: string;
  /** 0 to 1, within some of the states. */
  progress?: number;
  reason?: string;
  /** Parts that the movie lacks. */
  missing?: readonly string[];
  layout: string;
  width: number;
  height: number;
  seconds?: number;
  bytes?: number;
  /** Name of the movie while the node has it. */
  file?: string;
  requestedAt: number;
  endedAt: number | null;
}

export interface Recording {
  room: string;
  part: string;
  state: string;
  reason?: string;
  /** 0 to 1, while it is uploaded. */
  progress?: number;
  tracks: number;
  seconds: number;
  bytes: number;
  startedAt: number;
  uploadedAt: number | null;
  mix?: Mix;
}

export interface RecordingList {
  recordings: Recording[];
  unreachable: string[];
}

export interface Health {
  version: string;
  draining?: boolean;
}

/** Deeper metadata could not be written as JSON again. */
const MAX_DEPTH = 100;
/** More than any id, and than the 8,000,000 bytes of a body divided by the fields in it. */
const line = text(65_536);

export interface Track {
  id: string;
  type: string;
  muted?: boolean;
}

export interface Permissions {
  publish: boolean | string[];
  subscribe: boolean;
  metadata: boolean;
}

export interface Peer {
  id: string;
  status: string;
  metadata: unknown;
  tracks: Track[];
  permissions?: Permissions;
}

export interface Room {
  id: string;
  config: { maxPeers?: number | null };
  peers: Peer[];
  components: { id: string; type: string }[];
}

export interface RoomList {
  rooms: Room[];
  unreachable: string[];
}

export interface CreatedRoom {
  room: Room;
  address: string;
}

/** A new peer, with the addresses at which its client may connect. */
export interface AddedPeer {
  peer: Peer;
  token: string;
  websocketUrl: string;
  whipUrl: string;
  whepUrl: string;
}

const metadata: Shape<unknown> = (value, reading) =>
  isShallow(value, MAX_DEPTH) ? (value ?? null) : reading.fail(`nested at most ${MAX_DEPTH} levels deep`);

function isShallow(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return true;

  return levels > 0 && Object.values(value).every((each) => isShallow(each, levels - 1));
}

export const track: Shape<Track> = object({ id: line, type: line, muted: optional(flag) });

const publish: Shape<boolean | string[]> = (value, reading) =>
  typeof value === 'boolean' ? value : list(line, 100)(value, reading);

export const peer: Shape<Peer> = object({
  id: line,
  status: line,
  metadata,
  tracks: list(track),
  permissions: optional(object({ publish, subscribe: flag, metadata: flag })),
});

export const room: Shape<Room> = object({
  id: line,
  config: object({ maxPeers: optional(nullable(count)) }),
  peers: list(peer),
  components: list(object({ id: line, type: line })),
});

export const rooms: Shape<RoomList> = object({ rooms: list(room), unreachable: list(line) });

export const createdRoom: Shape<CreatedRoom> = object({ room, address: line });

export const addedPeer: Shape<AddedPeer> = object({
  peer,
  token: line,
  websocketUrl: line,
  whipUrl: line,
  whepUrl: line,
});

/** Milliseconds that a date can have. */
const time = integer(0, 8_640_000_000_000_000);

export const invitation: Shape<Invitation> = object({ token: line, url: nullable(line), expiresAt: time });

export const viewer: Shape<Viewer> = object({ token: line, hlsUrl: line, expiresAt: time });

export const mix: Shape<Mix> = object({
  state: line,
  progress: optional(number),
  reason: optional(line),
  missing: optional(list(line)),
  layout: line,
  width: count,
  height: count,
  seconds: optional(number),
  bytes: optional(count),
  file: optional(line),
  requestedAt: time,
  endedAt: nullable(time),
});

const recording: Shape<Recording> = object({
  room: line,
  part: line,
  state: line,
  reason: optional(line),
  progress: optional(number),
  tracks: count,
  seconds: number,
  bytes: count,
  startedAt: time,
  uploadedAt: nullable(time),
  mix: optional(mix),
});

export const recordings: Shape<RecordingList> = object({ recordings: list(recording), unreachable: list(line) });

export const health: Shape<Health> = object({ version: line, draining: optional(flag) });

/** Returns the name in a peer's metadata, in which the backend's part comes first. Anyone may have written them. */
export function nameOf({ metadata: whole }: Pick<Peer, 'metadata'>): string | null {
  for (const part of [fieldsOf(whole)['server'], fieldsOf(whole)['peer'], whole]) {
    const { name, displayName } = fieldsOf(part);
    for (const candidate of [name, displayName])
      if (typeof candidate === 'string' && candidate !== '') return candidate;
  }

  return null;
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}
