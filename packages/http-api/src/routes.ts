import { z } from 'zod';
import { CLUSTER_ROUTES } from './cluster-routes.js';
import { RAW_RECORDING_ROUTES } from './raw-recording-routes.js';
import { badRequest, notFound, type RouteOf, unavailable } from './route.js';
import { CheckCreated } from './schemas/check.js';
import { ErrorBody } from './schemas/common.js';
import {
  AddComponentDocument,
  ComponentDetails,
  DialRequest,
  SubscribeRequest,
  UpdateComponentRequest,
} from './schemas/component.js';
import {
  AddPeerDocument,
  MessageRequest,
  MessageSent,
  PeerCreated,
  PeerDetails,
  RemovePeerRequest,
  TrackDetails,
  UpdatePeerRequest,
  UpdateTrackRequest,
} from './schemas/peer.js';
import { GuestRequest, InvitationCreated, InvitationRequest, ViewerCreated, ViewerRequest } from './schemas/pass.js';
import { RoomConfigRequest, RoomCreated, RoomDetails, RoomListing, UpdateRoomRequest } from './schemas/room.js';
import { HealthResponse, NotReady, RecordingListing, Up } from './schemas/service.js';
import { sessionRoutes } from './session-routes.js';

/** Limit on a request body. */
export const MAX_BODY_BYTES = 8_000_000;

/** Limit on the body of a request that needs no token. */
const MAX_STRANGERS_BODY_BYTES = 16_384;

/** Limit on an SDP offer or fragment. */
export const MAX_SDP_BYTES = 64 * 1024;

const deleted = { 204: { description: 'Done', body: 'empty' } } as const;
const file = {
  200: { description: 'The file', body: 'file' },
  206: { description: 'The range asked for', body: 'file' },
} as const;
const unsatisfiable = { 416: { description: 'The range lies outside the file', body: 'empty' } } as const;
const tooManyLookUps = {
  429: { description: "A viewer's token asks for too much that is not found", body: ErrorBody },
};
const text = (description: string) => z.string().meta({ description });
const scope = { scope: text('`cluster` for those of every node; otherwise those of this node') };
/** Longer numbers are not exact integers, and no stream has them. */
const position = (description: string) => z.int().min(0).max(999_999_999_999_999).meta({ description });

/** Returns the routes with their ids in the type. */
function routesOf<Id extends string>(routes: readonly RouteOf<Id>[]): readonly RouteOf<Id>[] {
  return routes;
}

/** Every route, as served by express, described by OpenAPI and visited by the tests. */
export const ROUTES = routesOf([
  {
    id: 'create_room',
    method: 'post',
    path: '/room',
    auth: 'token',
    tag: 'room',
    summary: 'Creates a room on the least loaded node',
    body: RoomConfigRequest,
    answers: {
      201: { description: 'Room created', body: RoomCreated },
      ...badRequest,
      503: { description: 'No node can take a room', body: ErrorBody },
    },
  },
  {
    id: 'get_all_rooms',
    method: 'get',
    path: '/room',
    auth: 'token',
    tag: 'room',
    summary: 'Lists rooms',
    query: scope,
    answers: { 200: { description: 'Rooms', body: RoomListing } },
  },
  {
    id: 'get_room',
    method: 'get',
    path: '/room/:room_id',
    auth: 'token',
    tag: 'room',
    summary: 'Shows a room',
    answers: { 200: { description: 'The room', body: RoomDetails }, ...notFound, ...unavailable },
  },
  {
    id: 'update_room',
    method: 'patch',
    path: '/room/:room_id',
    auth: 'token',
    tag: 'room',
    summary: 'Changes the configuration of a room',
    body: UpdateRoomRequest,
    answers: { 200: { description: 'The room', body: RoomDetails }, ...badRequest, ...notFound, ...unavailable },
  },
  {
    id: 'delete_room',
    method: 'delete',
    path: '/room/:room_id',
    auth: 'token',
    tag: 'room',
    summary: 'Removes a room with everything in it',
    answers: { ...deleted, ...notFound, ...unavailable },
  },
  {
    id: 'send_message',
    method: 'post',
    path: '/room/:room_id/message',
    auth: 'token',
    tag: 'room',
    summary: 'Sends a message to the clients of peers',
    body: MessageRequest,
    answers: {
      202: { description: 'The message is on its way', body: MessageSent },
      ...badRequest,
      ...notFound,
      ...unavailable,
    },
  },
  {
    id: 'create_viewer',
    method: 'post',
    path: '/room/:room_id/viewer',
    auth: 'token',
    tag: 'room',
    summary: 'Lets somebody watch the stream of a room without the API token',
    body: ViewerRequest,
    answers: {
      201: { description: 'What the viewer needs', body: ViewerCreated },
      ...badRequest,
      ...notFound,
      ...unavailable,
    },
  },
  {
    id: 'create_invitation',
    method: 'post',
    path: '/room/:room_id/invitation',
    auth: 'token',
    tag: 'room',
    summary: 'Invites guests to a room',
    body: InvitationRequest,
    answers: {
      201: { description: 'The invitation', body: InvitationCreated },
      ...badRequest,
      ...notFound,
      ...unavailable,
    },
  },
  {
    id: 'accept_invitation',
    method: 'post',
    path: '/invitation',
    auth: 'none',
    tag: 'room',
    summary: 'Adds the peer of a guest, who needs an invitation and no other token',
    body: GuestRequest,
    maxBodyBytes: MAX_STRANGERS_BODY_BYTES,
    answers: {
      201: { description: 'Peer added', body: PeerCreated },
      ...badRequest,
      401: { description: 'The token is wrong', body: ErrorBody },
      404: { description: 'The room has ended', body: ErrorBody },
      410: { description: 'The invitation has expired or has been used up', body: ErrorBody },
      429: { description: 'Too many wrong tokens, or too many guests in a minute', body: ErrorBody },
      503: { description: 'The room is full, or its node cannot be reached', body: ErrorBody },
    },
  },
  {
    id: 'create_check',
    method: 'post',
    path: '/check',
    auth: 'check',
    tag: 'health',
    summary: 'Lets a browser try the ways to this node for 30 seconds',
    answers: {
      201: { description: 'What the browser needs', body: CheckCreated },
      429: { description: 'Too many checks with this token in a minute', body: ErrorBody },
      503: { description: 'Too many checks are under way, or no media worker is up', body: ErrorBody },
    },
  },
  {
    id: 'add_peer',
    method: 'post',
    path: '/room/:room_id/peer',
    auth: 'token',
    tag: 'room',
    summary: 'Adds a peer',
    body: AddPeerDocument,
    answers: {
      201: { description: 'Peer added', body: PeerCreated },
      ...badRequest,
      ...notFound,
      503: { description: 'The room is full, or its node cannot be reached', body: ErrorBody },
    },
  },
  {
    id: 'update_peer',
    method: 'patch',
    path: '/room/:room_id/peer/:id',
    auth: 'token',
    tag: 'room',
    summary: 'Changes metadata and permissions of a peer',
    body: UpdatePeerRequest,
    answers: { 200: { description: 'The peer', body: PeerDetails }, ...badRequest, ...notFound, ...unavailable },
  },
  {
    id: 'delete_peer',
    method: 'delete',
    path: '/room/:room_id/peer/:id',
    auth: 'token',
    tag: 'room',
    summary: 'Removes a peer',
    body: RemovePeerRequest,
    answers: { ...deleted, ...badRequest, ...notFound, ...unavailable },
  },
  {
    id: 'update_track',
    method: 'patch',
    path: '/room/:room_id/peer/:peer_id/track/:track_id',
    auth: 'token',
    tag: 'room',
    summary: 'Mutes or unmutes a track of a peer for everyone',
    body: UpdateTrackRequest,
    answers: { 200: { description: 'The track', body: TrackDetails }, ...badRequest, ...notFound, ...unavailable },
  },
  {
    id: 'delete_track',
    method: 'delete',
    path: '/room/:room_id/peer/:peer_id/track/:track_id',
    auth: 'token',
    tag: 'room',
    summary: 'Ends a track of a peer',
    answers: { ...deleted, ...notFound, ...unavailable },
  },
  {
    id: 'add_component',
    method: 'post',
    path: '/room/:room_id/component',
    auth: 'token',
    tag: 'room',
    summary: 'Adds a component',
    body: AddComponentDocument,
    answers: {
      201: { description: 'Component added', body: ComponentDetails },
      ...badRequest,
      ...notFound,
      ...unavailable,
    },
  },
  {
    id: 'update_component',
    method: 'patch',
    path: '/room/:room_id/component/:id',
    auth: 'token',
    tag: 'room',
    summary: 'Pauses or resumes a recording',
    body: UpdateComponentRequest,
    answers: {
      200: { description: 'The component', body: ComponentDetails },
      ...badRequest,
      ...notFound,
      ...unavailable,
    },
  },
  {
    id: 'delete_component',
    method: 'delete',
    path: '/room/:room_id/component/:id',
    auth: 'token',
    tag: 'room',
    summary: 'Removes a component',
    answers: { ...deleted, ...notFound, ...unavailable },
  },
  {
    id: 'subscribe_to',
    method: 'post',
    path: '/room/:room_id/component/:component_id/subscribe',
    auth: 'token',
    tag: 'room',
    summary: 'Subscribes an HLS or Recording component in manual mode to tracks',
    body: SubscribeRequest,
    answers: {
      201: { description: 'Subscribed', body: 'text' },
      ...badRequest,
      ...notFound,
      ...unavailable,
    },
  },
  {
    id: 'dial',
    method: 'post',
    path: '/sip/:room_id/:component_id/call',
    auth: 'token',
    tag: 'sip',
    summary: 'Calls a phone number',
    body: DialRequest,
    answers: {
      201: { description: 'The call is scheduled', body: 'text' },
      ...badRequest,
      ...notFound,
      ...unavailable,
    },
  },
  {
    id: 'end_call',
    method: 'delete',
    path: '/sip/:room_id/:component_id/call',
    auth: 'token',
    tag: 'sip',
    summary: 'Ends the call',
    answers: { ...deleted, ...badRequest, ...notFound, ...unavailable },
  },
  {
    id: 'get_recordings',
    method: 'get',
    path: '/recording',
    auth: 'token',
    tag: 'recording',
    summary: 'Lists recordings that can be played',
    query: scope,
    answers: { 200: { description: 'Ids of recordings', body: RecordingListing }, ...notFound },
  },
  {
    id: 'delete_recording',
    method: 'delete',
    path: '/recording/:recording_id',
    auth: 'token',
    tag: 'recording',
    summary: 'Removes a recording',
    answers: { ...deleted, ...badRequest, ...notFound, ...unavailable },
  },
  {
    id: 'get_recording_content',
    method: 'get',
    path: '/recording/:recording_id/:filename',
    auth: 'file',
    tag: 'recording',
    summary: 'A playlist or segment of a recording',
    answers: { ...file, ...unsatisfiable, ...badRequest, ...notFound, ...tooManyLookUps, ...unavailable },
  },
  ...RAW_RECORDING_ROUTES,
  {
    id: 'get_hls_content',
    method: 'get',
    path: '/hls/:room_id/:filename',
    auth: 'file',
    tag: 'hls',
    summary: 'A playlist or segment of the live stream of a room',
    query: {
      _HLS_msn: position('Low latency: wait for this segment'),
      _HLS_part: position('Low latency: wait for this part of it; only with `_HLS_msn`'),
      _HLS_skip: text('Low latency: the playlist without its older segments'),
    },
    answers: {
      ...file,
      ...unsatisfiable,
      ...badRequest,
      ...notFound,
      ...tooManyLookUps,
      503: { description: 'What was waited for did not come, or the node cannot be reached', body: ErrorBody },
    },
  },
  ...sessionRoutes('whip', 'Publishes by WHIP (RFC 9725)'),
  ...sessionRoutes('whep', 'Watches by WHEP; by default the current speaker', {
    peer: text('Watch this peer or component'),
    track: text('Watch this track'),
  }),
  {
    id: 'healthcheck',
    method: 'get',
    path: '/health',
    auth: 'token',
    tag: 'health',
    summary: 'State of this node',
    answers: { 200: { description: 'State', body: HealthResponse } },
  },
  {
    id: 'node_live',
    method: 'get',
    path: '/health/live',
    auth: 'none',
    tag: 'health',
    summary: 'Whether this node responds; for probes',
    answers: { 200: { description: 'It does', body: Up } },
  },
  {
    id: 'node_ready',
    method: 'get',
    path: '/health/ready',
    auth: 'none',
    tag: 'health',
    summary: 'Whether this node takes new rooms; for probes',
    answers: { 200: { description: 'It does', body: Up }, 503: { description: 'It does not', body: NotReady } },
  },
  ...CLUSTER_ROUTES,
]);

export type Route = (typeof ROUTES)[number];
export type OperationId = Route['id'];
