import { RoomConfiguration, type JoinRequest } from '@livekit/protocol';
import {
  type NamedConfig,
  type PeerView,
  type RoomConfig,
  RoomError,
  defaultRoomConfig,
  type RoomService,
  type RoomView,
} from '@bloom/rooms';
import { type Clock, sleep } from '@bloom/time';
import { LivekitError } from '../errors.js';
import { type Claims, type Grants, grantsOf, kindOf, publishKinds } from '../grants.js';
import { roomIdOf, sidOf } from '../names.js';
import { believedRoom, type ParticipantRecord, recordOf } from '../record.js';
import { applyUpdate, checkRecord } from '../session/own-record.js';

const MAX_NAME_BYTES = 256;
/** Time for a new room to become known on every node; clients wait 5 s for a join. */
const ANNOUNCED_WITHIN_MS = 2_000;
const ASK_AGAIN_MS = 20;
/** What a node says of a room that another one has just created. */
const COMING: ReadonlySet<string> = new Set(['ROOM_NOT_FOUND', 'OWNER_UNREACHABLE']);

export interface RoomDefaults {
  /** `JF_LIVEKIT_AUTO_CREATE` */
  autoCreate: boolean;
  /** `JF_LIVEKIT_DEPARTURE_TIMEOUT`, seconds. */
  departureTimeout: number;
  /** `JF_LIVEKIT_MAX_PARTICIPANTS`; 0 = no limit. */
  maxParticipants: number;
}

/** Somebody who may join according to the token and the request. */
export interface Applicant {
  claims: Claims;
  grants: Grants;
  record: ParticipantRecord;
  roomId: string;
  roomName: string;
  join: JoinRequest;
}

/**
 * Returns the identity and the room of a token to join with.
 * @throws LivekitError UNAUTHENTICATED or INVALID, with the text that clients show
 */
export function claimedNames({ video, sub: identity }: Claims): { identity: string; roomName: string } {
  if (video?.roomJoin !== true) throw new LivekitError('UNAUTHENTICATED', 'permissions denied');
  if (identity === undefined || identity === null || identity === '') {
    throw new LivekitError('INVALID', 'identity cannot be empty');
  }
  if (Buffer.byteLength(identity) > MAX_NAME_BYTES) throw tooLong('identity');
  const roomName = video.room ?? '';
  if (roomName === '') throw new LivekitError('INVALID', 'no room name');
  if (Buffer.byteLength(roomName) > MAX_NAME_BYTES) throw tooLong('name of a room');

  return { identity, roomName };
}

/**
 * Returns who wants to join which room, from a verified token and the request.
 * @throws LivekitError UNAUTHENTICATED or INVALID, with the text that clients show
 */
export function applicant(claims: Claims, join: JoinRequest, clock: Pick<Clock, 'wall'>): Applicant {
  const { name, metadata, attributes } = claims;
  const { identity, roomName } = claimedNames(claims);
  const grants = grantsOf(claims);
  const { clientInfo } = join;
  const given: ParticipantRecord = {
    identity,
    name: name ?? '',
    kind: kindOf(claims),
    metadata: metadata ?? '',
    attributes: attributes ?? {},
    joinedAt: clock.wall(),
    ...(clientInfo === undefined || clientInfo.clientProtocol === 0
      ? {}
      : { clientProtocol: clientInfo.clientProtocol }),
    ...(clientInfo === undefined || clientInfo.capabilities.length === 0
      ? {}
      : { capabilities: clientInfo.capabilities.slice(0, 16) }),
    ...(grants.canPublishSources.length === 0 ? {} : { sources: grants.canPublishSources }),
  };
  checkRecord(given);

  return { claims, grants, record: withOwn(given, join, grants), roomId: roomIdOf(roomName), roomName, join };
}

/** Applies what the client says about itself, which requires a permission. */
function withOwn(
  record: ParticipantRecord,
  { metadata, participantAttributes: attributes }: JoinRequest,
  { canUpdateOwnMetadata }: Grants,
): ParticipantRecord {
  if (metadata === '' && Object.keys(attributes).length === 0) return record;
  if (!canUpdateOwnMetadata) throw new LivekitError('UNAUTHENTICATED', 'permissions denied');

  return applyUpdate(record, { name: '', metadata, attributes });
}

/** Decides whether somebody may join, and finds or creates the room. */
export class Admission {
  readonly #rooms: RoomService;
  readonly #defaults: RoomDefaults;
  readonly #clock: Clock;

  constructor(rooms: RoomService, defaults: RoomDefaults, clock: Clock) {
    this.#rooms = rooms;
    this.#defaults = defaults;
    this.#clock = clock;
  }

  /**
   * Makes all checks of a join, without joining.
   * @throws LivekitError
   */
  async check(who: Applicant): Promise<void> {
    try {
      this.#admissible(await believedRoom(this.#rooms, who.roomId), who);
    } catch (error) {
      const refusal = toLivekitError(error);
      if (refusal.code !== 'NOT_FOUND' || !this.#defaults.autoCreate) throw refusal;
    }
  }

  /**
   * Returns the room, creating it if allowed, and the token of a new peer in it, or of one that is expected back, with
   * what others see of it.
   * @throws LivekitError
   */
  async admit(
    who: Applicant,
  ): Promise<{ room: RoomView; createdAt: number; peerId: string; token: string; record: ParticipantRecord }> {
    const { roomId, record, grants } = who;
    try {
      const room = await this.#openRoom(who);
      const former = this.#admissible(room, who);
      const createdAt = await this.#announced(() => this.#rooms.createdAt(roomId));
      const { subscribe, metadata } = { subscribe: grants.canSubscribe, metadata: grants.canUpdateOwnMetadata };
      // A guest is removed some time after its node was lost, since no backend would remove it.
      const guest = {
        invitation: { id: 'livekit', uses: 0, createdAt, expiresAt: createdAt },
        options: { metadata: record, permissions: { publish: publishKinds(grants), subscribe, metadata } },
        counts: counts(record),
        // The room may have moved, and expect the participant.
        ...(former === undefined ? {} : { returns: former.id }),
      };
      const { peer, token } = await this.#rooms.addGuest(roomId, guest).catch(async (error: unknown) => {
        const isRoomFull = error instanceof RoomError && error.code === 'PEER_LIMIT';
        if (!isRoomFull || former === undefined) throw error;
        await this.#rooms.removePeer(roomId, former.id).catch(() => undefined);
        return this.#rooms.addGuest(roomId, guest);
      });
      const own = peer.id === former?.id ? recordOf(peer.metadata) : undefined;

      return { room, createdAt, peerId: peer.id, token, record: own ?? record };
    } catch (error) {
      throw toLivekitError(error);
    }
  }

  /** Returns the id of the peer with this sid, if it is a participant with the applicant's identity. */
  async peerWith(sid: string, { roomId, record }: Applicant): Promise<string | undefined> {
    try {
      const { peers } = await believedRoom(this.#rooms, roomId);
      const isWanted = ({ id, metadata }: PeerView): boolean =>
        sidOf('PA', id) === sid && recordOf(metadata)?.identity === record.identity;

      return peers.find(isWanted)?.id;
    } catch (error) {
      if (error instanceof RoomError && error.code === 'ROOM_NOT_FOUND') return undefined;
      throw toLivekitError(error);
    }
  }

  async #openRoom(who: Applicant): Promise<RoomView> {
    const { roomId } = who;
    try {
      return await believedRoom(this.#rooms, roomId);
    } catch (error) {
      const isMissing = error instanceof RoomError && error.code === 'ROOM_NOT_FOUND';
      if (!isMissing || !this.#defaults.autoCreate) throw error;
    }
    try {
      const created = await this.#rooms.createRoom(this.#configOf(who));
      return created.room;
    } catch (error) {
      // Somebody else has created it in the meantime.
      if (error instanceof RoomError && error.code === 'ROOM_EXISTS')
        return this.#announced(() => believedRoom(this.#rooms, roomId));
      throw error;
    }
  }

  /** Asks for a room that is known to exist until its owner has announced it to this node. */
  async #announced<T>(ask: () => Promise<T>): Promise<T> {
    const until = this.#clock.now() + ANNOUNCED_WITHIN_MS;
    for (;;) {
      try {
        return await ask();
      } catch (error) {
        const isComing = error instanceof RoomError && COMING.has(error.code);
        if (!isComing || this.#clock.now() >= until) throw error;
      }
      await sleep(ASK_AGAIN_MS, { clock: this.#clock });
    }
  }

  #configOf({ roomId, roomName, claims }: Applicant): RoomConfig {
    const wanted = roomConfiguration(claims);
    const maxPeers = wanted.maxParticipants || this.#defaults.maxParticipants;

    return {
      ...defaultRoomConfig,
      roomId,
      ...(roomId === roomName ? {} : { name: roomName }),
      maxPeers: maxPeers === 0 ? null : maxPeers,
      peerlessPurgeTimeout: wanted.departureTimeout || this.#defaults.departureTimeout,
    };
  }

  /** Returns the participant that this one would replace. */
  #admissible(room: RoomView, { record }: Applicant): PeerView | undefined {
    const former = room.peers.find(({ metadata }) => recordOf(metadata)?.identity === record.identity);
    const isTaken = room.peers.some(
      (peer) => recordOf(peer.metadata) === undefined && isKnownAs(peer, record.identity),
    );
    if (isTaken) throw new LivekitError('REFUSED', 'identity is used by another peer');
    if (former === undefined && counts(record) && isFull(room)) throw new LivekitError('REFUSED', 'room is full');

    return former;
  }
}

/** Returns true if a peer of another face is shown under this identity. */
function isKnownAs({ id, metadata }: PeerView, identity: string): boolean {
  const server = (metadata as { server?: { identity?: unknown } } | null | undefined)?.server;

  return id === identity || server?.identity === identity;
}

/** Returns false for agents and recorders, which take no place in a room. */
function counts(record: ParticipantRecord | undefined): boolean {
  return record?.kind !== 'agent' && record?.kind !== 'egress';
}

function isFull({ config, peers }: { config: NamedConfig; peers: readonly PeerView[] }): boolean {
  const counted = peers.filter(({ metadata }) => counts(recordOf(metadata)));

  return config.maxPeers !== null && counted.length >= config.maxPeers;
}

/** Returns the configuration that the token wants for a room that it creates. */
function roomConfiguration({ roomConfig }: Claims): RoomConfiguration {
  if (roomConfig === undefined || roomConfig === null) return new RoomConfiguration();
  try {
    return RoomConfiguration.fromJson(roomConfig as never, { ignoreUnknownFields: true });
  } catch (error) {
    throw new LivekitError('UNAUTHENTICATED', 'invalid token: the claim roomConfig cannot be read', { cause: error });
  }
}

const CODES: Partial<Record<RoomError['code'], LivekitError['code']>> = {
  ROOM_NOT_FOUND: 'NOT_FOUND',
  PEER_NOT_FOUND: 'NOT_FOUND',
  TRACK_NOT_FOUND: 'NOT_FOUND',
  ROOM_EXISTS: 'PRECONDITION',
  PEER_LIMIT: 'REFUSED',
  INVALID_OPTIONS: 'INVALID',
  TOO_MANY_CONNECTIONS: 'EXHAUSTED',
};
const TEXTS: Partial<Record<RoomError['code'], string>> = {
  // Clients search for this text.
  ROOM_NOT_FOUND: 'requested room does not exist',
  PEER_NOT_FOUND: 'participant does not exist',
  TRACK_NOT_FOUND: 'track is not found',
  PEER_LIMIT: 'room is full',
};

/** Returns the rooms' refusal as clients see it. */
export function toLivekitError(error: unknown): LivekitError {
  if (error instanceof LivekitError) return error;
  if (!(error instanceof RoomError)) return new LivekitError('INTERNAL', 'internal error', { cause: error });

  return new LivekitError(CODES[error.code] ?? 'UNAVAILABLE', TEXTS[error.code] ?? error.message, { cause: error });
}

function tooLong(what: string): LivekitError {
  return new LivekitError('INVALID', `the ${what} may have at most ${MAX_NAME_BYTES} bytes`);
}
