import type { Endpoint, PeerView, RoomService, RoomView } from '@bloom/rooms';
import { KINDS, type ParticipantKind, SOURCES, type SourceName } from './grants.js';

/**
 * What others see of a LiveKit participant. It is the backend's part of the peer's metadata, so every node and every
 * session of the room reads it there.
 */
export interface ParticipantRecord {
  identity: string;
  name: string;
  kind: ParticipantKind;
  metadata: string;
  attributes: Readonly<Record<string, string>>;
  /** Unix milliseconds. */
  joinedAt: number;
  /** What the client itself can read; others must not be able to set it. */
  clientProtocol?: number;
  capabilities?: readonly number[];
  /** Sources that it may publish; absent: all. */
  sources?: readonly SourceName[];
}

/** Longest metadata shown of other participants, bytes. */
const MAX_SHOWN_METADATA = 64 * 1024;

/** By the backend's part of the metadata, which is replaced rather than changed: all sessions of a room read it. */
const records = new WeakMap<object, ParticipantRecord | null>();

/** Returns the record in metadata of a peer, or undefined if the peer is not a LiveKit participant. */
export function recordOf(metadata: unknown): ParticipantRecord | undefined {
  const server = asRecord(asRecord(metadata)['server']);
  const known = records.get(server);
  if (known !== undefined) return known ?? undefined;
  const record = readRecord(server);
  records.set(server, record ?? null);

  return record;
}

function readRecord(server: Record<string, unknown>): ParticipantRecord | undefined {
  const { identity, name, kind, metadata: text, attributes, joinedAt, clientProtocol, capabilities, sources } = server;
  const known = KINDS.find((each) => each === kind);
  if (typeof identity !== 'string' || known === undefined) return undefined;

  return {
    identity,
    name: typeof name === 'string' ? name : '',
    kind: known,
    metadata: typeof text === 'string' ? text : '',
    attributes: Object.fromEntries(
      Object.entries(asRecord(attributes)).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
    ),
    joinedAt: isCount(joinedAt) ? joinedAt : 0,
    ...(isInt32(clientProtocol) ? { clientProtocol } : {}),
    ...(Array.isArray(capabilities) ? { capabilities: capabilities.filter(isInt32) } : {}),
    ...(Array.isArray(sources) ? { sources: SOURCES.filter((source) => sources.includes(source)) } : {}),
  };
}

/** Returns metadata in which `server` is the backend's part only: what a client claims becomes the peer's own part. */
export function believed({ metadata, claimsServer }: Pick<Endpoint, 'metadata' | 'claimsServer'>): unknown {
  return claimsServer === true ? { peer: metadata, server: null } : metadata;
}

/** Returns the room with metadata of peers in which `server` is the backend's part only. */
export async function believedRoom(rooms: RoomService, roomId: string): Promise<RoomView> {
  const view = await rooms.getRoom(roomId);
  if (!view.peers.some(({ metadata }) => 'server' in asRecord(metadata))) return view;
  const described = new Set(await rooms.describedPeers(roomId));

  return { ...view, peers: view.peers.map((peer) => believedPeer(peer, described.has(peer.id))) };
}

/** Returns a peer with metadata in which `server` is the backend's part only, if the backend has set any. */
export function believedPeer(peer: PeerView, isDescribed: boolean): PeerView {
  const { metadata } = peer;
  if (isDescribed || !('server' in asRecord(metadata))) return peer;

  return { ...peer, metadata: believed({ metadata, claimsServer: true }) };
}

/** Returns the record with which a peer of another face, or a component, is shown; undefined if it is not shown. */
export function foreignRecord({ id, type, metadata, client }: Endpoint): ParticipantRecord | undefined {
  const shown = { identity: id, metadata: '', attributes: {}, joinedAt: 0 };
  if (type === 'hls' || type === 'recording') return undefined;
  if (type === 'sip') return { ...shown, kind: 'sip', name: '' };
  if (type !== 'webrtc') return { ...shown, kind: 'ingress', name: type };

  const { server, peer } = asRecord(metadata);
  const identity = asRecord(server)['identity'];
  const names = [asRecord(server)['name'], ...[asRecord(peer), asRecord(metadata)].flatMap((each) => namesIn(each))];
  const text = metadata === null || metadata === undefined ? '' : JSON.stringify(metadata);

  return {
    ...shown,
    identity: typeof identity === 'string' && identity !== '' ? identity : id,
    kind: client === 'whip' ? 'ingress' : 'standard',
    name: names.find((name) => typeof name === 'string') ?? '',
    metadata: Buffer.byteLength(text) > MAX_SHOWN_METADATA ? '' : text,
  };
}

function namesIn(fields: Record<string, unknown>): unknown[] {
  return [fields['name'], fields['displayName']];
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

/** True for a count that protobuf's int32 can hold; a larger one could not be sent to any client. */
function isInt32(value: unknown): value is number {
  return isCount(value) && value < 2 ** 31;
}

export function asRecord(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
}
