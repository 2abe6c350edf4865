import type { LiveStreams, RawRecordingStore, RecordingStore } from '@bloom/files';
import {
  type AddedPeer,
  type GuestTerms,
  type Passes,
  type PathChecks,
  structureFault,
  type RoomChanges,
  type RoomConfig,
  validate,
} from '@bloom/rooms';
import type { WhipService } from '@bloom/whip';
import type { z } from 'zod';
import { clusterOperations, type ClusterView, nodeOf } from './cluster-operations.js';
import { HttpError, missingComponentIs400 } from './errors.js';
import type { Invitations } from './invitations.js';
import { type Answer, checked, type Operation, param } from './operation.js';
import { rawRecordingOperations } from './raw-recording-operations.js';
import type { OperationId } from './routes.js';
import { AddComponentRequest, DialRequest, SubscribeRequest, UpdateComponentRequest } from './schemas/component.js';
import {
  AddPeerRequest,
  MessageRequest,
  RemovePeerRequest,
  UpdatePeerRequest,
  UpdateTrackRequest,
} from './schemas/peer.js';
import { GuestRequest, InvitationRequest, ViewerRequest } from './schemas/pass.js';
import { MoveRequest, type RoomMove } from './schemas/cluster.js';
import { RoomConfigRequest, UpdateRoomRequest } from './schemas/room.js';
import { DEFAULT_MOVE_TIMEOUT, DrainRequest, type HealthReport, type NotReadyReason } from './schemas/service.js';
import { streamRequest } from './stream-request.js';
import { checkCreated } from './schemas/check.js';
import { whipOperations } from './whip-operations.js';

/** What operators can do to a node. */
export interface NodeControl {
  /** Returns why this node accepts no new rooms; undefined if it does. */
  notReady(): NotReadyReason | undefined;
  /**
   * Returns the number of rooms left on a node (null = this one). `moveMs`: how long to move rooms to other nodes;
   * null = they stay.
   * @throws HttpError
   */
  drain(node: string | null, deadlineMs: number | null, moveMs: number | null): Promise<number>;
  /** @throws HttpError */
  undrain(node: string | null): Promise<{ draining: boolean; rooms: number }>;
  /**
   * Moves a room of any node to `node`; null = the one that a new room would go to.
   * @throws HttpError
   */
  moveRoom(roomId: string, node: string | null): Promise<RoomMove>;
}

export interface OperationOptions {
  recordings: RecordingStore;
  rawRecordings: RawRecordingStore;
  streams: LiveStreams;
  health: () => HealthReport | Promise<HealthReport>;
  node: NodeControl;
  cluster: ClusterView;
  whip: WhipService;
  passes: Passes;
  invitations: Invitations;
  checks: Pick<PathChecks, 'open'>;
  /** True if the node serves the page for guests. */
  guestPage: boolean;
  /** `JF_HOST` */
  publicHost: string;
}

const DONE: Answer = { status: 204 };

/** @throws HttpError 400 with one sentence for all structural faults, or that of the exceeded limit */
function wellFormed<T extends z.ZodType>(schema: T, body: unknown): z.infer<T> {
  const result = validate(schema, body);
  if (!result.success) throw new HttpError(400, structureFault(result.error));

  return result.data;
}

/** Returns the fields present in the body: omitted ones must stay unchanged. */
function roomChanges(body: unknown): RoomChanges {
  const given = checked(UpdateRoomRequest, body);

  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
}

function roomConfig(body: unknown): RoomConfig {
  const given = checked(RoomConfigRequest, body);
  const dataEvents = given.dataEvents ?? [];

  return {
    roomId: given.roomId ?? null,
    maxPeers: given.maxPeers ?? null,
    videoCodec: given.videoCodec ?? null,
    webhookUrl: given.webhookUrl ?? null,
    peerlessPurgeTimeout: given.peerlessPurgeTimeout ?? null,
    peerDisconnectedTimeout: given.peerDisconnectedTimeout ?? null,
    ...(dataEvents.length === 0 ? {} : { dataEvents }),
  };
}

function scopeOf(query: URLSearchParams): 'local' | 'cluster' {
  return query.get('scope') === 'cluster' ? 'cluster' : 'local';
}

/** Returns the list and, with scope `cluster`, the nodes missing from it. */
function listing<T>(scope: 'local' | 'cluster', data: T[], unreachable: string[]): Answer {
  return { status: 200, json: scope === 'cluster' ? { data, unreachable } : { data } };
}

/** Returns the answer about a new peer. */
function peerAdded({ peer, token, websocketUrl }: AddedPeer, secure: boolean): Answer {
  const base = `${secure ? 'https' : 'http'}://${websocketUrl.replace(/\/socket\/peer\/websocket$/, '')}`;
  const urls = { peer_websocket_url: websocketUrl, whip_url: `${base}/whip`, whep_url: `${base}/whep` };

  return { status: 201, json: { data: { peer, token, ...urls } } };
}

/** Returns the operation of each route; errors become responses in errors.ts. */
export function createOperations({
  recordings,
  rawRecordings,
  streams,
  health,
  node,
  cluster,
  whip,
  passes,
  invitations,
  checks,
  guestPage,
  publicHost,
}: OperationOptions): Record<OperationId, Operation> {
  return {
    create_room: async ({ body, rooms }) => {
      const { room, address } = await rooms.createRoom(roomConfig(body));
      const addresses = { service_address: address, jellyfish_address: address, fishjam_address: address };

      return { status: 201, json: { data: { room, ...addresses } } };
    },

    get_all_rooms: async ({ query, rooms }) => {
      const scope = scopeOf(query);
      const { rooms: found, unreachable } = await rooms.listRooms(scope);

      return listing(scope, found, unreachable);
    },

    get_room: async ({ params, rooms }) => ({
      status: 200,
      json: { data: await rooms.getRoom(param(params, 'room_id')) },
    }),

    update_room: async ({ params, body, rooms }) => ({
      status: 200,
      json: { data: await rooms.updateRoom(param(params, 'room_id'), roomChanges(body)) },
    }),

    delete_room: async ({ params, rooms }) => {
      await rooms.deleteRoom(param(params, 'room_id'));

      return DONE;
    },

    create_viewer: async ({ params, body, rooms, secure }) => {
      const { ttl } = checked(ViewerRequest, body);
      const roomId = param(params, 'room_id');
      const room = { roomId, createdAt: await rooms.createdAt(roomId) };
      const { token, expiresAt } = passes.issueViewer(room, ttl ?? undefined);
      const base = `${secure ? 'https' : 'http'}://${publicHost}`;

      return {
        status: 201,
        json: { data: { token, hls_url: `${base}/hls/${roomId}/~${token}/index.m3u8`, expires_at: expiresAt } },
      };
    },

    create_invitation: async ({ params, body, rooms, secure }) => {
      const { ttl, name, permissions, uses } = checked(InvitationRequest, body);
      const roomId = param(params, 'room_id');
      const room = { roomId, createdAt: await rooms.createdAt(roomId) };
      const terms: GuestTerms = {
        uses: uses ?? 0,
        ...(name === undefined || name === null ? {} : { name }),
        ...(permissions === undefined || permissions === null ? {} : { permissions }),
      };
      const { token, expiresAt } = passes.issueInvitation(room, terms, ttl ?? undefined);
      const url = guestPage ? `${secure ? 'https' : 'http'}://${publicHost}/#invitation=${token}` : null;

      return { status: 201, json: { data: { token, url, expires_at: expiresAt } } };
    },

    accept_invitation: async ({ body, network, rooms, secure }) => {
      const given = checked(GuestRequest, body);
      const { name, permissions, ...invitation } = invitations.read(given.token, network());
      const metadata = { name: name ?? given.name ?? 'Guest' };
      const options = { metadata, ...(permissions === undefined ? {} : { permissions }) };

      return peerAdded(await rooms.addGuest(invitation.roomId, { invitation, options }), secure);
    },

    create_check: async ({ checkRoom }) => {
      const check = await checks.open(checkRoom).catch((cause: unknown) => {
        throw new HttpError(503, 'No media worker is up', { cause });
      });
      if (check === undefined) throw new HttpError(503, 'Too many checks are under way; try again in half a minute');

      return { status: 201, json: checkCreated(check) };
    },

    add_peer: async ({ params, body, rooms, secure }) => {
      const { options } = checked(AddPeerRequest, body);
      const roomId = param(params, 'room_id');

      return peerAdded(await rooms.addPeer(roomId, options ?? {}), secure);
    },

    update_peer: async ({ params, body, rooms }) => {
      const { metadata, permissions } = wellFormed(UpdatePeerRequest, body);
      const changes = {
        ...(metadata === undefined ? {} : { metadata }),
        ...(permissions === undefined || permissions === null ? {} : { permissions }),
      };
      const peer = await rooms.updatePeer(param(params, 'room_id'), param(params, 'id'), changes);

      return { status: 200, json: { data: peer } };
    },

    delete_peer: async ({ params, body, rooms }) => {
      const { reason } = wellFormed(RemovePeerRequest, body);
      const options = reason === undefined || reason === null ? {} : { reason };
      await rooms.removePeer(param(params, 'room_id'), param(params, 'id'), options);

      return DONE;
    },

    update_track: async ({ params, body, rooms }) => {
      const { muted } = wellFormed(UpdateTrackRequest, body);
      const track = { peerId: param(params, 'peer_id'), trackId: param(params, 'track_id'), muted };

      return {
        status: 200,
        json: { data: await rooms.muteTrack(param(params, 'room_id'), track) },
      };
    },

    delete_track: async ({ params, rooms }) => {
      const track = { peerId: param(params, 'peer_id'), trackId: param(params, 'track_id') };
      await rooms.removeTrack(param(params, 'room_id'), track);

      return DONE;
    },

    send_message: async ({ params, body, rooms }) => {
      const { to, topic, data } = wellFormed(MessageRequest, body);
      const message = { topic, data, ...(to === undefined || to === null ? {} : { to }) };

      return {
        status: 202,
        json: { data: await rooms.sendMessage(param(params, 'room_id'), message) },
      };
    },

    add_component: async ({ params, body, rooms }) => {
      const { type, options } = checked(AddComponentRequest, body);

      const component = await rooms.addComponent(param(params, 'room_id'), type, options ?? {});

      return { status: 201, json: { data: component } };
    },

    update_component: async ({ params, body, rooms }) => {
      const changes = wellFormed(UpdateComponentRequest, body);
      const component = await rooms.updateComponent(param(params, 'room_id'), param(params, 'id'), changes);

      return { status: 200, json: { data: component } };
    },

    delete_component: async ({ params, rooms }) => {
      await rooms.removeComponent(param(params, 'room_id'), param(params, 'id'));

      return DONE;
    },

    subscribe_to: async ({ params, body, rooms }) => {
      const { origins } = checked(SubscribeRequest, body);
      const componentId = param(params, 'component_id');
      await rooms.subscribeComponent(param(params, 'room_id'), componentId, origins).catch(missingComponentIs400);

      return { status: 201, text: 'Successfully subscribed for tracks' };
    },

    dial: async ({ params, body, rooms }) => {
      const { phoneNumber } = checked(DialRequest, body);
      const componentId = param(params, 'component_id');
      await rooms.dial(param(params, 'room_id'), componentId, phoneNumber).catch(missingComponentIs400);

      return { status: 201, text: `Successfully schedule calling phone_number: ${phoneNumber}` };
    },

    end_call: async ({ params, rooms }) => {
      await rooms.hangUp(param(params, 'room_id'), param(params, 'component_id')).catch(missingComponentIs400);

      return DONE;
    },

    get_recordings: async ({ query }) => {
      const scope = scopeOf(query);
      const { ids, unreachable } = await recordings.list(scope);

      return listing(scope, ids, unreachable);
    },

    delete_recording: async ({ params }) => {
      await recordings.remove(param(params, 'recording_id'));

      return DONE;
    },

    get_recording_content: async ({ params, signal }) => ({
      status: 200,
      file: await recordings.open(param(params, 'recording_id'), param(params, 'filename'), signal),
    }),

    ...rawRecordingOperations(rawRecordings),

    get_hls_content: async ({ params, query, signal }) => {
      const file = { roomId: param(params, 'room_id'), name: param(params, 'filename') };
      const request = streamRequest(file, query, signal);

      // Proxies must not cache a growing playlist.
      return { status: 200, file: await streams.open(request), noStore: request.fileName.endsWith('.m3u8') };
    },

    ...whipOperations(whip, publicHost),

    healthcheck: async () => ({ status: 200, json: { data: await health() } }),

    node_live: async () => ({ status: 200, json: { status: 'UP' } }),

    node_ready: async () => {
      const reason = node.notReady();

      return reason === undefined
        ? { status: 200, json: { status: 'UP' } }
        : { status: 503, json: { status: 'DOWN', reason } };
    },

    drain_node: async (call) => {
      const { deadline = null, move, moveTimeout } = checked(DrainRequest, call.body);
      const moveMs = move === true ? (moveTimeout ?? DEFAULT_MOVE_TIMEOUT) * 1_000 : null;
      const rooms = await node.drain(nodeOf(call), deadline && deadline * 1_000, moveMs);

      return { status: 200, json: { data: { draining: true, rooms } } };
    },

    undrain_node: async (call) => ({ status: 200, json: { data: await node.undrain(nodeOf(call)) } }),

    move_room: async ({ params, body }) => {
      const { node: to = null } = checked(MoveRequest, body);

      return { status: 200, json: { data: await node.moveRoom(param(params, 'room_id'), to) } };
    },

    ...clusterOperations(cluster),
  };
}
