import type { LiveStreams, RecordingStore } from '@bloom/files';
import { structureFault, type RoomChanges, type RoomConfig, type RoomService } from '@bloom/rooms';
import type { WhipService } from '@bloom/whip';
import type { z } from 'zod';
import { clusterOperations, type ClusterView, nodeOf } from './cluster-operations.js';
import { HttpError, missingComponentIs400 } from './errors.js';
import { type Answer, type Operation, param } from './operation.js';
import type { OperationId } from './routes.js';
import { AddComponentRequest, DialRequest, SubscribeRequest } from './schemas/component.js';
import {
  AddPeerRequest,
  MessageRequest,
  RemovePeerRequest,
  UpdatePeerRequest,
  UpdateTrackRequest,
} from './schemas/peer.js';
import { RoomConfigRequest, UpdateRoomRequest } from './schemas/room.js';
import { DrainRequest, type HealthReport, type NotReadyReason } from './schemas/service.js';
import { streamRequest } from './stream-request.js';
import { whipOperations } from './whip-operations.js';

/** What operators can do to a node. */
export interface NodeControl {
  /** Returns why this node accepts no new rooms; undefined if it does. */
  notReady(): NotReadyReason | undefined;
  /** Returns the number of rooms left on a node (null = this one). @throws HttpError */
  drain(node: string | null, deadlineMs: number | null): Promise<number>;
  /** @throws HttpError */
  undrain(node: string | null): Promise<{ draining: boolean; rooms: number }>;
}

export interface OperationOptions {
  rooms: RoomService;
  recordings: RecordingStore;
  streams: LiveStreams;
  health: () => HealthReport | Promise<HealthReport>;
  node: NodeControl;
  cluster: ClusterView;
  whip: WhipService;
  /** `JF_HOST` */
  publicHost: string;
}

const DONE: Answer = { status: 204 };

/** @throws HttpError 400 with the message of the first invalid field */
function checked<T extends z.ZodType>(schema: T, body: unknown): z.infer<T> {
  const result = schema.safeParse(body);
  if (!result.success) throw new HttpError(400, result.error.issues[0]?.message ?? 'Invalid request body structure');

  return result.data;
}

/** @throws HttpError 400 with one sentence for all structural faults, or that of the exceeded limit */
function wellFormed<T extends z.ZodType>(schema: T, body: unknown): z.infer<T> {
  const result = schema.safeParse(body);
  if (!result.success) throw new HttpError(400, structureFault(result.error));

  return result.data;
}

/** Returns the fields that are in the body: omitted ones must stay unchanged. */
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

/** Returns the list and, for the cluster, the nodes missing from it. */
function listing<T>(scope: 'local' | 'cluster', data: T[], unreachable: string[]): Answer {
  return { status: 200, json: scope === 'cluster' ? { data, unreachable } : { data } };
}

/** Returns the operation of each route; errors become responses in errors.ts. */
export function createOperations({
  rooms,
  recordings,
  streams,
  health,
  node,
  cluster,
  whip,
  publicHost,
}: OperationOptions): Record<OperationId, Operation> {
  return {
    create_room: async ({ body, requestId }) => {
      const { room, address } = await rooms.createRoom(roomConfig(body), requestId);
      const addresses = { service_address: address, jellyfish_address: address, fishjam_address: address };

      return { status: 201, json: { data: { room, ...addresses } } };
    },

    get_all_rooms: async ({ query }) => {
      const scope = scopeOf(query);
      const { rooms: found, unreachable } = await rooms.listRooms(scope);

      return listing(scope, found, unreachable);
    },

    get_room: async ({ params, requestId }) => ({
      status: 200,
      json: { data: await rooms.getRoom(param(params, 'room_id'), requestId) },
    }),

    update_room: async ({ params, body, requestId }) => ({
      status: 200,
      json: { data: await rooms.updateRoom(param(params, 'room_id'), roomChanges(body), requestId) },
    }),

    delete_room: async ({ params, requestId }) => {
      await rooms.deleteRoom(param(params, 'room_id'), requestId);

      return DONE;
    },

    add_peer: async ({ params, body, requestId, secure }) => {
      const { options } = checked(AddPeerRequest, body);
      const added = await rooms.addPeer(param(params, 'room_id'), options ?? {}, requestId);
      const { peer, token, websocketUrl } = added;
      const base = `${secure ? 'https' : 'http'}://${websocketUrl.replace(/\/socket\/peer\/websocket$/, '')}`;
      const urls = { peer_websocket_url: websocketUrl, whip_url: `${base}/whip`, whep_url: `${base}/whep` };

      return { status: 201, json: { data: { peer, token, ...urls } } };
    },

    update_peer: async ({ params, body, requestId }) => {
      const { metadata, permissions } = wellFormed(UpdatePeerRequest, body);
      const changes = {
        ...(metadata === undefined ? {} : { metadata }),
        ...(permissions === undefined || permissions === null ? {} : { permissions }),
      };
      const peer = await rooms.updatePeer(param(params, 'room_id'), param(params, 'id'), changes, requestId);

      return { status: 200, json: { data: peer } };
    },

    delete_peer: async ({ params, body, requestId }) => {
      const { reason } = wellFormed(RemovePeerRequest, body);
      const options = { requestId, ...(reason === undefined || reason === null ? {} : { reason }) };
      await rooms.removePeer(param(params, 'room_id'), param(params, 'id'), options);

      return DONE;
    },

    update_track: async ({ params, body, requestId }) => {
      const { muted } = wellFormed(UpdateTrackRequest, body);
      const track = { peerId: param(params, 'peer_id'), trackId: param(params, 'track_id'), muted };

      return { status: 200, json: { data: await rooms.muteTrack(param(params, 'room_id'), track, requestId) } };
    },

    delete_track: async ({ params, requestId }) => {
      const track = { peerId: param(params, 'peer_id'), trackId: param(params, 'track_id') };
      await rooms.removeTrack(param(params, 'room_id'), track, requestId);

      return DONE;
    },

    send_message: async ({ params, body, requestId }) => {
      const { to, topic, data } = wellFormed(MessageRequest, body);
      const message = { topic, data, ...(to === undefined || to === null ? {} : { to }) };

      return { status: 202, json: { data: await rooms.sendMessage(param(params, 'room_id'), message, requestId) } };
    },

    add_component: async ({ params, body, requestId }) => {
      const { type, options } = checked(AddComponentRequest, body);

      const component = await rooms.addComponent(param(params, 'room_id'), type, options ?? {}, requestId);

      return { status: 201, json: { data: component } };
    },

    delete_component: async ({ params, requestId }) => {
      await rooms.removeComponent(param(params, 'room_id'), param(params, 'id'), requestId);

      return DONE;
    },

    subscribe_to: async ({ params, body, requestId }) => {
      const { origins } = checked(SubscribeRequest, body);
      const componentId = param(params, 'component_id');
      await rooms
        .subscribeComponent(param(params, 'room_id'), componentId, origins, requestId)
        .catch(missingComponentIs400);

      return { status: 201, text: 'Successfully subscribed for tracks' };
    },

    dial: async ({ params, body, requestId }) => {
      const { phoneNumber } = checked(DialRequest, body);
      const componentId = param(params, 'component_id');
      await rooms.dial(param(params, 'room_id'), componentId, phoneNumber, requestId).catch(missingComponentIs400);

      return { status: 201, text: `Successfully schedule calling phone_number: ${phoneNumber}` };
    },

    end_call: async ({ params, requestId }) => {
      await rooms
        .hangUp(param(params, 'room_id'), param(params, 'component_id'), requestId)
        .catch(missingComponentIs400);

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

    get_hls_content: async ({ params, query, signal }) => {
      const request = streamRequest(param(params, 'room_id'), param(params, 'filename'), query, signal);

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
      const { deadline = null } = checked(DrainRequest, call.body);
      const rooms = await node.drain(nodeOf(call), deadline && deadline * 1_000);

      return { status: 200, json: { data: { draining: true, rooms } } };
    },

    undrain_node: async (call) => ({ status: 200, json: { data: await node.undrain(nodeOf(call)) } }),

    ...clusterOperations(cluster),
  };
}
