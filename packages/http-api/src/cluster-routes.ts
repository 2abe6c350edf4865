import { z } from 'zod';
import { badRequest, notFound, type RouteOf } from './route.js';
import {
  ClusterResponse,
  LEVELS,
  LogListing,
  MAX_LINES,
  MAX_MATCH,
  MAX_NODE_NAME,
  MoveRequest,
  MoveResponse,
  PeerStatsResponse,
  PlacementResponse,
} from './schemas/cluster.js';
import { ErrorBody, MAX_ROOM_ID } from './schemas/common.js';
import { DrainRequest, DrainResponse } from './schemas/service.js';

export type ClusterRouteId =
  | 'drain_node'
  | 'move_room'
  | 'undrain_node'
  | 'get_cluster'
  | 'get_placement'
  | 'get_logs'
  | 'get_peer_stats';

const unseen = {
  503: { description: 'The node cannot be reached, or runs with `JF_INSPECTION=off`', body: ErrorBody },
};
const name = (description: string, max: number) => z.string().min(1).max(max).meta({ description });
const node = { node: name('Name of a node; default: the asked one', MAX_NODE_NAME) };

/** The routes about the nodes and what is where. */
export const CLUSTER_ROUTES: readonly RouteOf<ClusterRouteId>[] = [
  {
    id: 'drain_node',
    method: 'post',
    path: '/node/drain',
    auth: 'token',
    tag: 'health',
    summary: 'Keeps new rooms away from a node; its current rooms continue, there or, with `move`, on other nodes',
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
    id: 'move_room',
    method: 'post',
    path: '/room/:room_id/move',
    auth: 'token',
    tag: 'room',
    summary: 'Moves a room to another node, where its call continues',
    body: MoveRequest,
    answers: {
      200: { description: 'The room runs there', body: MoveResponse },
      ...badRequest,
      ...notFound,
      409: { description: 'The room stays, and the message says why', body: ErrorBody },
      500: { description: 'The other node ended meanwhile, and the room has crashed', body: ErrorBody },
      503: {
        description: 'Rooms cannot move now, a node cannot be reached, or runs with `JF_INSPECTION=off`',
        body: ErrorBody,
      },
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
];
