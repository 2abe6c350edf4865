import {
  type ParticipantInfo,
  ParticipantInfo_State,
  ParticipantPermission,
  Room,
  type TrackInfo,
} from '@livekit/protocol';
import type { ComponentView, PeerView, RoomService, RoomView, TrackView } from '@bloom/rooms';
import { textOf, uint32Of } from '../json-text.js';
import { roomSid, sidOf } from '../names.js';
import { foreignRecord, type ParticipantRecord, recordOf } from '../record.js';
import { describeParticipant } from '../session/participant-info.js';
import { trackInfo } from '../session/track-info.js';

/** Somebody in a room, as the server API shows them. */
export interface Shown {
  /** Undefined for a component. */
  peer: PeerView | undefined;
  record: ParticipantRecord;
  info: ParticipantInfo;
}

/** Returns everybody in a room. `byWhip`: the peers that publish by WHIP. */
export function participantsOf({ peers, components }: RoomView, byWhip: ReadonlySet<string> = new Set()): Shown[] {
  const all = peers.map((peer) => describePeer(peer, byWhip.has(peer.id) ? 'whip' : undefined));

  return [...all, ...components.map(describeComponent)].filter((shown) => shown !== undefined);
}

/** Returns the peers of another face that publish by WHIP. */
export async function whipPeers(
  rooms: Pick<RoomService, 'peersWithClient'>,
  { id, peers }: RoomView,
): Promise<ReadonlySet<string>> {
  if (peers.every(({ metadata }) => recordOf(metadata) !== undefined)) return new Set();
  const ids = await rooms.peersWithClient(id, 'whip').catch((error: unknown) => {
    // A node of an earlier release does not tell.
    if ((error as { code?: unknown }).code === 'OWNER_UNREACHABLE') return [];
    throw error;
  });

  return new Set(ids);
}

/** Returns a peer with this client as the server API shows it; undefined if it is not shown. */
export function describePeer(peer: PeerView, client?: string): Shown | undefined {
  const { id, metadata, tracks, permissions, status } = peer;
  const known = client === undefined ? {} : { client };
  const record = recordOf(metadata) ?? foreignRecord({ id, type: 'webrtc', metadata, ...known, tracks: [] });
  if (record === undefined) return undefined;
  const state = status === 'connected' ? ParticipantInfo_State.ACTIVE : ParticipantInfo_State.DISCONNECTED;
  const info = describe(record, { id, tracks, state });
  const publish = permissions?.publish ?? true;
  const kinds = typeof publish === 'boolean' ? (publish ? ['audio', 'video', 'data'] : []) : publish;
  info.permission = new ParticipantPermission({
    canPublish: kinds.includes('audio') || kinds.includes('video'),
    canPublishData: kinds.includes('data'),
    canSubscribe: permissions?.subscribe ?? true,
    canUpdateMetadata: permissions?.metadata ?? true,
  });

  return { peer, record, info };
}

/** Returns a component as the server API shows it; undefined if it is not shown. */
export function describeComponent({ id, type, tracks }: ComponentView): Shown | undefined {
  const record = foreignRecord({ id, type, metadata: null, tracks: [] });
  if (record === undefined) return undefined;

  return { peer: undefined, record, info: describe(record, { id, tracks, state: ParticipantInfo_State.ACTIVE }) };
}

function describe(
  record: ParticipantRecord,
  { id, tracks, state }: { id: string; tracks: readonly TrackView[]; state: ParticipantInfo_State },
): ParticipantInfo {
  const seen = { audio: 0, video: 0 };
  const infos = tracks.map((track) => describeTrack(track, seen[track.type]++));

  return describeParticipant(record, { sid: sidOf('PA', id), state, version: 0, tracks: infos });
}

/** The codec of a picture and its layers are known to the room's sessions only. */
export function describeTrack({ id, type, metadata, muted }: TrackView, position: number): TrackInfo {
  const info = trackInfo(
    {
      trackId: id,
      kind: type,
      codec: 'opus',
      metadata,
      encodings: [],
      disabledEncodings: [],
      muted: { server: muted === true },
    },
    position,
  );
  if (type === 'video') {
    info.mimeType = '';
    info.codecs = [];
  }

  return info;
}

/** Returns a room as LiveKit's clients and server SDKs are shown it. */
export function describeRoom({ id, config, peers, components }: RoomView, createdAt: number): Room {
  const { name = id, metadata, maxPeers, peerlessPurgeTimeout } = config;
  const connected = peers.filter(({ status }) => status === 'connected');

  return new Room({
    sid: roomSid(id, createdAt),
    name,
    emptyTimeout: uint32Of(peerlessPurgeTimeout ?? 0),
    departureTimeout: uint32Of(peerlessPurgeTimeout ?? 0),
    maxParticipants: uint32Of(maxPeers ?? 0),
    creationTime: BigInt(Math.floor(createdAt / 1_000)),
    creationTimeMs: BigInt(createdAt),
    metadata: textOf(metadata),
    numParticipants: connected.length,
    numPublishers: connected.filter(({ tracks }) => tracks.length > 0).length,
    activeRecording: components.some(({ type }) => type === 'recording'),
  });
}

/** Returns a room with its time of creation; undefined if it has ended in the meantime. */
export async function describeIfThere(rooms: RoomService, view: RoomView): Promise<Room | undefined> {
  const createdAt = await rooms.createdAt(view.id).catch(() => undefined);

  return createdAt === undefined ? undefined : describeRoom(view, createdAt);
}
