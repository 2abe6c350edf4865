/** Schemas of the documents about the HTTP API, by `kind`. Loaded only with documents.ts. */
import { z } from 'zod';

/** The server that was asked. */
const url = z.string();
const room = z.string();
const peer = z.string();
/** Milliseconds since the epoch. */
const at = z.number().int();

const permissions = z.object({
  publish: z.union([z.boolean(), z.array(z.string())]),
  subscribe: z.boolean(),
  metadata: z.boolean(),
});
const track = z.object({ id: z.string(), type: z.string(), muted: z.boolean().optional() });
const listedPeer = z.object({
  id: z.string(),
  status: z.string(),
  metadata: z.unknown(),
  tracks: z.array(track),
  permissions: permissions.optional(),
});
const listedRoom = z.object({
  id: z.string(),
  config: z.object({ maxPeers: z.number().int().nullable().optional() }),
  peers: z.array(listedPeer),
  components: z.array(z.object({ id: z.string(), type: z.string() })),
});
const context = {
  name: z.string(),
  url,
  isCurrent: z.boolean(),
  tokenFrom: z.enum(['file', 'command', 'environment']),
  tokenFile: z.string().nullable(),
};

const mix = z.object({
  state: z.string(),
  progress: z.number().optional(),
  reason: z.string().optional(),
  layout: z.string(),
  width: z.number().int(),
  height: z.number().int(),
  seconds: z.number().optional(),
  bytes: z.number().int().optional(),
  file: z.string().optional(),
  requestedAt: at,
  endedAt: at.nullable(),
});

export const PEOPLE_DOCUMENTS: Readonly<Record<string, z.ZodRawShape>> = {
  context: { change: z.enum(['added', 'used', 'removed']), ...context },
  contexts: { contexts: z.array(z.object(context)) },
  'room-list': { url, total: z.number().int(), unreachable: z.array(z.string()), rooms: z.array(listedRoom) },
  'room-created': { url, room, address: z.string() },
  'room-deleted': { url, room },
  'peer-list': {
    url,
    room,
    maxPeers: z.number().int().nullable(),
    peers: z.array(listedPeer.extend({ name: z.string().nullable() })),
  },
  'peer-added': {
    url,
    room,
    peer,
    token: z.string(),
    websocketUrl: z.string(),
    whipUrl: z.string(),
    whepUrl: z.string(),
  },
  'peer-kicked': { url, room, peer },
  'peer-muted': { url, room, peer, muted: z.boolean(), tracks: z.array(track) },
  'peer-permissions': { url, room, peer, permissions },
  invitation: { url, room, token: z.string(), link: z.string().nullable(), expiresAt: at },
  viewer: { url, room, token: z.string(), hlsUrl: z.string(), expiresAt: at },
  recordings: {
    url,
    unreachable: z.array(z.string()),
    recordings: z.array(
      z.object({
        room,
        part: z.string(),
        state: z.string(),
        reason: z.string().optional(),
        progress: z.number().optional(),
        tracks: z.number().int(),
        seconds: z.number(),
        bytes: z.number().int(),
        startedAt: at,
        uploadedAt: at.nullable(),
        mix: mix.optional(),
      }),
    ),
  },
  'recording-mix': { url, room, part: z.string(), mix, movie: z.string().nullable() },
  'recording-removed': { url, room, part: z.string() },
};
