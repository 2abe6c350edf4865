import { z } from 'zod';
import type { SdpType } from './operation.js';
import {
  ClusterResponse,
  LEVELS,
  LogListing,
  MAX_LINES,
  MAX_MATCH,
  MAX_NODE_NAME,
  PeerStatsResponse,
  PlacementResponse,
} from './schemas/cluster.js';
import { ErrorBody, MAX_ROOM_ID } from './schemas/common.js';
import { AddComponentDocument, ComponentDetails, DialRequest, SubscribeRequest } from './schemas/component.js';
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
import { RoomConfigRequest, RoomCreated, RoomDetails, RoomListing, UpdateRoomRequest } from './schemas/room.js';
import { DrainRequest, DrainResponse, HealthResponse, NotReady, RecordingListing, Up } from './schemas/service.js';

/** Limit on a request body. */
export const MAX_BODY_BYTES = 8_000_000;

/** Limit on an SDP offer or fragment. */
export const MAX_SDP_BYTES = 64 * 1024;

/** Body of a response: empty, text, a file, SDP, or JSON of this shape. */
export type AnswerBody = 'empty' | 'text' | 'file' | SdpType | z.ZodType;

interface RouteOf<Id extends string> {
  readonly id: Id;
  readonly method: 'get' | 'post' | 'patch' | 'delete';
  /** Express path; parameters are `:name`. */
  readonly path: string;
  /**
   * `file`: requires the token unless `JF_PUBLIC_MEDIA_FILES` opens the files. `peer`: requires a peer's token. `none`:
   * for probes.
   */
  readonly auth: 'token' | 'file' | 'peer' | 'none';
  readonly tag: 'room' | 'hls' | 'recording' | 'sip' | 'whip' | 'health' | 'cluster';
  readonly summary: string;
  /** JSON body as documented. */
  readonly body?: z.ZodType;
  /** Body taken as text; other types are refused with 415. */
  readonly textBody?: SdpType;
  /** Query parameters as documented; all are optional. */
  readonly query?: Readonly<Record<string, z.ZodType>>;
  /** True if `If-Match` is required. */
  readonly ifMatch?: true;
  readonly answers: Readonly<Record<number, { description: string; body: AnswerBody }>>;
}

const badRequest = { 400: { description: 'Invalid request', body: ErrorBody } };
const notFound = { 404: { description: 'Not found', body: ErrorBody } };
const unavailable = { 503: { description: 'The node that owns the room cannot be reached', body: ErrorBody } };
const deleted = { 204: { description: 'Done', body: 'empty' } } as const;
const file = {
  200: { description: 'The file', body: 'file' },
  206: { description: 'The range asked for', body: 'file' },
} as const;
const unsatisfiable = { 416: { description: 'The range lies outside the file', body: 'empty' } } as const;
const unseen = {
  503: { description: 'The node cannot be reached, or runs with `JF_INSPECTION=off`', body: ErrorBody },
};
const text = (description: string) => z.string().meta({ description });
const name = (description: string, max: number) => z.string().min(1).max(max).meta({ description });
const node = { node: name('Name of a node; default: the asked one', MAX_NODE_NAME) };
const scope = { scope: text('`cluster` for those of every node; otherwise those of this node') };
/** Longer numbers are not exact integers, and no stream has them. */
const position = (description: string) => z.int().min(0).max(999_999_999_999_999).meta({ description });

const SDP = 'application/sdp';
const FRAGMENT = 'application/trickle-ice-sdpfrag';

/** Returns the routes with their ids in the type. */
function routesOf<Id extends string>(routes: readonly RouteOf<Id>[]): readonly RouteOf<Id>[] {
  return routes;
}

/** Returns the routes of one protocol: its endpoint and its sessions. */
function sessionRoutes<Name extends 'whip' | 'whep'>(
  name: Name,
  summary: string,
  query?: RouteOf<string>['query'],
): RouteOf<`${'post' | 'patch' | 'delete'}_${Name}`>[] {
  const session = { path: `/${name}/:session_id`, auth: 'peer', tag: 'whip' } as const;

  return [
    {
      id: `post_${name}`,
      method: 'post',
      path: `/${name}`,
      auth: 'peer',
      tag: 'whip',
      summary,
      textBody: SDP,
      ...(query === undefined ? {} : { query }),
      answers: {
        201: { description: 'The answer; `location` names the session, `link` the relay', body: SDP },
        400: { description: 'The SDP offer is not usable', body: ErrorBody },
        ...notFound,
        406: { description: 'The SDP offer has no codec that the room allows', body: ErrorBody },
        409: { description: 'The peer is connected by websocket', body: ErrorBody },
        429: { description: 'The peer connects too often, or has too many requests in progress', body: ErrorBody },
        ...unavailable,
      },
    },
    {
      ...session,
      id: `patch_${name}`,
      method: 'patch',
      summary: 'Takes candidates, and restarts ICE',
      textBody: FRAGMENT,
      ifMatch: true,
      answers: {
        200: { description: 'ICE restarts: the credentials of the server', body: FRAGMENT },
        204: { description: 'Nothing to do: the server learns addresses from connectivity checks', body: 'empty' },
        400: { description: 'The SDP fragment is not usable', body: ErrorBody },
        ...notFound,
        412: { description: '`If-Match` names former credentials', body: ErrorBody },
        428: { description: '`If-Match` is missing', body: ErrorBody },
        429: {
          description: 'ICE was restarted less than a second ago, or the peer has too many requests in progress',
          body: ErrorBody,
        },
        ...unavailable,
      },
    },
    {
      ...session,
      id: `delete_${name}`,
      method: 'delete',
      summary: 'Ends the session: its peer is disconnected',
      answers: {
        200: { description: 'Ended', body: 'empty' },
        ...notFound,
        429: { description: 'The peer has too many requests in progress', body: ErrorBody },
        ...unavailable,
      },
    },
  ];
}

/** Every route, as served by express, described by OpenAPI and walked through by the tests. */
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
    answers: { ...file, ...unsatisfiable, ...badRequest, ...notFound, ...unavailable },
  },
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
      503: { description: 'What was waited for did not come, or the node cannot be reached', body: ErrorBody },
    },
  },
  ...sessionRoutes('whip', 'Publishes by WHIP (RFC 9725)'),
  ...sessionRoutes('whep', 'Watches by WHEP; by default whoever speaks', {
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
  {
    id: 'drain_node',
    method: 'post',
    path: '/node/drain',
    auth: 'token',
    tag: 'health',
    summary: 'Keeps new rooms away from a node; those it has go on',
    body: DrainRequest,
    query: node,
    answers: {
      200: { description: 'The node drains', body: DrainResponse },
      ...badRequest,
      ...notFound,
      ...unseen,
    },
  },
  {
    id: 'undrain_node',
    method: 'delete',
    path: '/node/drain',
    auth: 'token',
    tag: 'health',
    summary: 'Lets a node take new rooms again',
    query: node,
    answers: {
      200: { description: 'The order is withdrawn', body: DrainResponse },
      ...badRequest,
      ...notFound,
      ...unseen,
    },
  },
  {
    id: 'get_cluster',
    method: 'get',
    path: '/cluster',
    auth: 'token',
    tag: 'cluster',
    summary: 'Shows the nodes, their load and their links',
    answers: { 200: { description: 'The cluster', body: ClusterResponse }, ...unseen },
  },
  {
    id: 'get_placement',
    method: 'get',
    path: '/cluster/placement',
    auth: 'token',
    tag: 'cluster',
    summary: 'Shows why a room is on its node, or where the next one would go',
    query: { room: name('Id of a room; default: one that would be created now', MAX_ROOM_ID) },
    answers: { 200: { description: 'The decision', body: PlacementResponse }, ...badRequest, ...notFound, ...unseen },
  },
  {
    id: 'get_logs',
    method: 'get',
    path: '/cluster/logs',
    auth: 'token',
    tag: 'cluster',
    summary: 'Shows the last lines of the log of a node',
    query: {
      ...node,
      level: z.enum(LEVELS).meta({ description: 'Least severity; default `debug`' }),
      match: name('Only lines with this text', MAX_MATCH),
      limit: z.int().min(1).max(MAX_LINES).meta({ description: 'Most lines; default 200' }),
    },
    answers: { 200: { description: 'Lines', body: LogListing }, ...badRequest, ...notFound, ...unseen },
  },
  {
    id: 'get_peer_stats',
    method: 'get',
    path: '/room/:room_id/peer/:peer_id/stats',
    auth: 'token',
    tag: 'cluster',
    summary: 'Measures for a second what a peer sends and receives',
    answers: { 200: { description: 'Rates', body: PeerStatsResponse }, ...notFound, ...unseen },
  },
]);

export type Route = (typeof ROUTES)[number];
export type OperationId = Route['id'];
