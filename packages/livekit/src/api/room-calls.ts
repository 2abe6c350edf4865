import {
  CreateRoomRequest,
  DataPacket,
  DeleteRoomRequest,
  DeleteRoomResponse,
  ListParticipantsRequest,
  ListParticipantsResponse,
  ListRoomsRequest,
  ListRoomsResponse,
  MuteRoomTrackRequest,
  MuteRoomTrackResponse,
  type ParticipantInfo,
  type ParticipantPermission,
  RemoveParticipantResponse,
  type Room,
  RoomParticipantIdentity,
  SendDataRequest,
  SendDataResponse,
  type TrackSource,
  UpdateParticipantRequest,
  UpdateRoomMetadataRequest,
  UserPacket,
} from '@livekit/protocol';
import { defaultRoomConfig, type PeerChanges, type PeerView, type RoomService, type RoomView } from '@bloom/rooms';
import { LivekitError } from '../errors.js';
import { type Claims, type Grants, publishKinds, type SourceName } from '../grants.js';
import { dataOf } from '../json-text.js';
import { roomIdOf, sidOf } from '../names.js';
import { believedRoom, recordOf } from '../record.js';
import { PACKET_KEY } from '../session/data.js';
import { applyUpdate, changedFields } from '../session/own-record.js';
import { sourceName } from '../session/track-info.js';
import { method, missing, permit, type Service } from './twirp.js';
import { describeIfThere, describeRoom, describeTrack, participantsOf, type Shown, whipPeers } from './views.js';

const MAX_NAME_BYTES = 256;
const MAX_METADATA_BYTES = 64 * 1024;
/** Bytes of a message to participants, which crosses nodes as base64 in JSON of up to 16 KiB. */
const MAX_DATA_BYTES = 11 * 1024;

export interface RoomServiceDefaults {
  /** `JF_LIVEKIT_EMPTY_TIMEOUT`, seconds. */
  emptyTimeout: number;
  /** `JF_LIVEKIT_MAX_PARTICIPANTS`; 0 = no limit. */
  maxParticipants: number;
  /** `JF_LIVEKIT_REMOTE_UNMUTE` */
  remoteUnmute: boolean;
}

/** LiveKit's RoomService over Bloom's rooms. */
export function createRoomService(rooms: RoomService, defaults: RoomServiceDefaults): Service {
  const calls = new RoomCalls(rooms, defaults);

  return {
    CreateRoom: method(CreateRoomRequest, 'roomCreate', (request) => calls.createRoom(request)),
    ListRooms: method(ListRoomsRequest, 'roomList', (request) => calls.listRooms(request)),
    DeleteRoom: method(DeleteRoomRequest, 'roomCreate', (request) => calls.deleteRoom(request.room)),
    ListParticipants: method(ListParticipantsRequest, 'roomAdmin', (request, claims) =>
      calls.listParticipants(request.room, claims),
    ),
    GetParticipant: method(RoomParticipantIdentity, 'roomAdmin', (request, claims) =>
      calls.getParticipant(request, claims),
    ),
    RemoveParticipant: method(RoomParticipantIdentity, 'roomAdmin', (request, claims) =>
      calls.removeParticipant(request, claims),
    ),
    MutePublishedTrack: method(MuteRoomTrackRequest, 'roomAdmin', (request, claims) =>
      calls.muteTrack(request, claims),
    ),
    UpdateParticipant: method(UpdateParticipantRequest, 'roomAdmin', (request, claims) =>
      calls.updateParticipant(request, claims),
    ),
    UpdateRoomMetadata: method(UpdateRoomMetadataRequest, 'roomAdmin', (request, claims) =>
      calls.updateMetadata(request, claims),
    ),
    SendData: method(SendDataRequest, 'roomAdmin', (request, claims) => calls.sendData(request, claims)),
    UpdateSubscriptions: missing('a change of subscriptions'),
    PerformRpc: missing('a procedure call'),
    ForwardParticipant: missing('forwarding of participants'),
    MoveParticipant: missing('moving of participants'),
  };
}

class RoomCalls {
  readonly #rooms: RoomService;
  readonly #defaults: RoomServiceDefaults;

  constructor(rooms: RoomService, defaults: RoomServiceDefaults) {
    this.#rooms = rooms;
    this.#defaults = defaults;
  }

  async createRoom(request: CreateRoomRequest): Promise<Room> {
    const { name, metadata, egress, maxParticipants, emptyTimeout } = request;
    if (name === '') throw new LivekitError('INVALID', 'name cannot be empty');
    limit('name', name, MAX_NAME_BYTES);
    limit('metadata', metadata, MAX_METADATA_BYTES);
    if (egress !== undefined) throw new LivekitError('PRECONDITION', 'egress is not available on this server');
    const roomId = roomIdOf(name);
    const present = await this.#find(roomId);
    if (present !== undefined) return this.#describedRoom(present);

    const maxPeers = maxParticipants || this.#defaults.maxParticipants;
    try {
      await this.#rooms.createRoom({
        ...defaultRoomConfig,
        roomId,
        ...(roomId === name ? {} : { name }),
        maxPeers: maxPeers === 0 ? null : maxPeers,
        peerlessPurgeTimeout: emptyTimeout || this.#defaults.emptyTimeout,
      });
    } catch (error) {
      // Another call was faster.
      if ((error as { code?: unknown }).code !== 'ROOM_EXISTS') throw error;
    }
    const view = metadata === '' ? this.#rooms.getRoom(roomId) : this.#rooms.updateRoom(roomId, { metadata });

    return this.#describedRoom(await view);
  }

  async listRooms({ names }: ListRoomsRequest): Promise<ListRoomsResponse> {
    const wanted = new Set(names.map(roomIdOf));
    const { rooms } = await this.#rooms.listRooms('cluster');
    const shown = await Promise.all(
      rooms.filter(({ id }) => wanted.size === 0 || wanted.has(id)).map((view) => describeIfThere(this.#rooms, view)),
    );

    return new ListRoomsResponse({ rooms: shown.filter((room) => room !== undefined) });
  }

  async deleteRoom(room: string): Promise<DeleteRoomResponse> {
    await this.#rooms.deleteRoom(room.startsWith('RM_') ? await this.#idOf(room) : roomIdOf(room));

    return new DeleteRoomResponse();
  }

  async listParticipants(room: string, claims: Claims): Promise<ListParticipantsResponse> {
    const view = await this.#administrated(room, claims);
    const all = participantsOf(view, await whipPeers(this.#rooms, view));

    return new ListParticipantsResponse({ participants: all.map(({ info }) => info) });
  }

  async getParticipant({ room, identity }: RoomParticipantIdentity, claims: Claims): Promise<ParticipantInfo> {
    return this.#described(await this.#administrated(room, claims), identity);
  }

  async removeParticipant(
    { room, identity }: RoomParticipantIdentity,
    claims: Claims,
  ): Promise<RemoveParticipantResponse> {
    const view = await this.#administrated(room, claims);
    await this.#rooms.removePeer(view.id, peerOf(participant(view, identity)).id);

    return new RemoveParticipantResponse();
  }

  async muteTrack(
    { room, identity, trackSid, muted }: MuteRoomTrackRequest,
    claims: Claims,
  ): Promise<MuteRoomTrackResponse> {
    const view = await this.#administrated(room, claims);
    if (!muted && !this.#defaults.remoteUnmute) throw new LivekitError('PRECONDITION', 'remote unmute not enabled');
    const { id: peerId, tracks } = peerOf(participant(view, identity));
    const track = tracks.find(({ id }) => sidOf('TR', id) === trackSid);
    if (track === undefined) throw new LivekitError('NOT_FOUND', 'track is not found');
    const changed = await this.#rooms.muteTrack(view.id, { peerId, trackId: track.id, muted });

    return new MuteRoomTrackResponse({ track: describeTrack(changed, 0) });
  }

  async updateParticipant(request: UpdateParticipantRequest, claims: Claims): Promise<ParticipantInfo> {
    const { room, identity, permission } = request;
    const view = await this.#administrated(room, claims);
    const shown = participant(view, identity);
    const record = applyUpdate(shown.record, request);
    const isDescribed = record !== shown.record && JSON.stringify(record) !== JSON.stringify(shown.record);
    if (isDescribed && !isNative(shown)) throw new LivekitError('PRECONDITION', 'the participant is no LiveKit client');
    const sources = permission === undefined ? undefined : sourcesOf(permission);
    const fields = { ...changedFields(shown.record, request), ...(sources === undefined ? {} : { sources }) };
    const changes: PeerChanges = {
      ...(isNative(shown) ? { fields } : {}),
      ...(permission === undefined ? {} : { permissions: permissionsOf(permission, sources ?? []) }),
    };
    await this.#rooms.updatePeer(view.id, peerOf(shown).id, changes);

    return this.#described(await believedRoom(this.#rooms, view.id), identity);
  }

  async updateMetadata({ room, metadata }: UpdateRoomMetadataRequest, claims: Claims): Promise<Room> {
    const { id } = await this.#administrated(room, claims);
    limit('metadata', metadata, MAX_METADATA_BYTES);

    return this.#describedRoom(await this.#rooms.updateRoom(id, { metadata: metadata === '' ? null : metadata }));
  }

  async sendData(request: SendDataRequest, claims: Claims): Promise<SendDataResponse> {
    const { room, data, kind, topic, destinationSids, destinationIdentities } = request;
    const view = await this.#administrated(room, claims);
    if (data.length > MAX_DATA_BYTES) throw new LivekitError('INVALID', `the data exceeds ${MAX_DATA_BYTES} bytes`);
    limit('topic', topic ?? '', MAX_NAME_BYTES);
    const sids = new Set(destinationSids);
    const identities = new Set(destinationIdentities);
    const isForAll = sids.size === 0 && identities.size === 0;
    const all = participantsOf(view).filter(
      ({ info }) => isForAll || sids.has(info.sid) || identities.has(info.identity),
    );
    const user = new UserPacket({ payload: data, ...(topic === undefined ? {} : { topic }) });
    const packet = new DataPacket({ kind, value: { case: 'user', value: user } }).toBinary();
    const native = { [PACKET_KEY]: Buffer.from(packet).toString('base64') };
    const [natives, others] = [all.filter(isNative), all.filter((each) => !isNative(each))];
    await this.#message(view, natives, { topic: topic ?? '', data: native });
    await this.#message(view, others, { topic: topic ?? '', data: dataOf(data) });

    return new SendDataResponse();
  }

  async #message(
    { id }: RoomView,
    all: readonly Shown[],
    { topic, data }: { topic: string; data: unknown },
  ): Promise<void> {
    const to = all.flatMap(({ peer }) => (peer === undefined ? [] : [peer.id]));
    if (to.length === 0) return;
    // Somebody may have left in the meantime.
    await this.#rooms.sendMessage(id, { topic: topic === '' ? 'data' : topic, data, to }).catch((error: unknown) => {
      if ((error as { code?: unknown }).code !== 'PEER_NOT_FOUND') throw error;
    });
  }

  /** Returns a room that the token administrates. A token for one room is of no use for another. */
  async #administrated(room: string, { video }: Claims): Promise<RoomView> {
    permit(video?.roomAdmin === true && video.room === room);

    return believedRoom(this.#rooms, roomIdOf(room));
  }

  async #find(roomId: string): Promise<RoomView | undefined> {
    try {
      return await this.#rooms.getRoom(roomId);
    } catch (error) {
      if ((error as { code?: unknown }).code === 'ROOM_NOT_FOUND') return undefined;
      throw error;
    }
  }

  async #idOf(sid: string): Promise<string> {
    const { rooms } = await this.#rooms.listRooms('cluster');
    for (const view of rooms) {
      const room = await describeIfThere(this.#rooms, view);
      if (room?.sid === sid) return view.id;
    }
    throw new LivekitError('NOT_FOUND', 'requested room does not exist');
  }

  async #described(view: RoomView, identity: string): Promise<ParticipantInfo> {
    return participant(view, identity, await whipPeers(this.#rooms, view)).info;
  }

  async #describedRoom(view: RoomView): Promise<Room> {
    return describeRoom(view, await this.#rooms.createdAt(view.id));
  }
}

function limit(what: string, text: string, bytes: number): void {
  if (Buffer.byteLength(text) > bytes) throw new LivekitError('INVALID', `the ${what} may have at most ${bytes} bytes`);
}

function participant(view: RoomView, identity: string, byWhip?: ReadonlySet<string>): Shown {
  const found = participantsOf(view, byWhip).find(({ info }) => info.identity === identity);
  if (found === undefined) throw new LivekitError('NOT_FOUND', 'participant does not exist');

  return found;
}

/** Returns true for a participant with LiveKit's client. */
function isNative({ peer }: Shown): boolean {
  return peer !== undefined && recordOf(peer.metadata) !== undefined;
}

function peerOf({ peer }: Shown): PeerView {
  if (peer === undefined) throw new LivekitError('PRECONDITION', 'the participant is a component of the server');

  return peer;
}

function sourcesOf({ canPublishSources }: ParticipantPermission): SourceName[] {
  return canPublishSources.map((source: TrackSource) => sourceName(source)).filter((name) => name !== 'unknown');
}

/** Returns the permissions of a peer that replace those it has. */
function permissionsOf(
  { canPublish, canSubscribe, canPublishData, canUpdateMetadata }: ParticipantPermission,
  canPublishSources: readonly SourceName[],
): NonNullable<PeerChanges['permissions']> {
  const grants: Grants = {
    canPublish,
    canSubscribe,
    canPublishData,
    canPublishSources,
    canUpdateOwnMetadata: canUpdateMetadata,
    hidden: false,
  };

  return { publish: publishKinds(grants), subscribe: canSubscribe, metadata: canUpdateMetadata };
}
