import {
  INVALID_STRUCTURE,
  MAX_RECEIVERS,
  MessageContent,
  PeerOptions,
  Permissions,
  ServerMetadata,
} from '@bloom/rooms';
import { z } from 'zod';
import { Metadata, Track } from './common.js';

/**
 * Body of `POST /room/:id/peer` as checked here. The rooms check the options after the room, its limit and the peer
 * type.
 */
export const AddPeerRequest = z.object({
  type: z.literal('webrtc', {
    error: (issue) => (issue.input === undefined ? INVALID_STRUCTURE : 'Invalid peer type'),
  }),
  options: z.unknown().optional(),
});

/** Body of `POST /room/:id/peer` as documented. */
export const AddPeerDocument = AddPeerRequest.extend({
  type: z.literal('webrtc').meta({ description: 'Type of the peer' }),
  options: PeerOptions.nullish(),
}).meta({ id: 'AddPeerRequest', description: 'A new peer' });

export const Peer = z
  .strictObject({
    id: z.string().meta({ description: 'Peer id, a UUID', examples: ['4a1c1164-5fb7-425d-89d7-24cdb8fff1cf'] }),
    type: z.literal('webrtc'),
    status: z.enum(['connected', 'disconnected']).meta({ description: 'Whether its websocket is connected' }),
    tracks: z.array(Track),
    metadata: Metadata,
    permissions: z
      .strictObject({
        publish: z.union([z.boolean(), z.array(z.enum(['audio', 'video', 'data']))]),
        subscribe: z.boolean(),
        metadata: z.boolean(),
      })
      .optional()
      .meta({ description: 'What its client may do; absent unless the backend has given permissions' }),
  })
  .meta({ id: 'Peer', description: 'A participant of the room' });

export const PeerCreated = z
  .strictObject({
    data: z.strictObject({
      peer: Peer,
      token: z
        .string()
        .meta({ description: 'What the client authenticates its websocket with; valid for 24 hours, or the `ttl`' }),
      peer_websocket_url: z.string().meta({
        description: 'Address of the websocket, without scheme',
        examples: ['localhost:5002/socket/peer/websocket'],
      }),
      whip_url: z.string().meta({ description: 'Where the client may publish by WHIP instead, with the token' }),
      whep_url: z.string().meta({ description: 'Where the client may watch by WHEP instead, with the token' }),
    }),
  })
  .meta({ id: 'PeerDetailsResponse', description: 'The new peer and how it connects' });

export const PeerDetails = z.strictObject({ data: Peer }).meta({ id: 'PeerResponse', description: 'The peer' });

/** Body of `PATCH /room/:id/peer/:id`. */
export const UpdatePeerRequest = z
  .object({
    metadata: ServerMetadata.meta({
      description: 'Metadata set by the backend; null removes it, leaving it out keeps it',
    }).optional(),
    permissions: Permissions.nullish().meta({ description: 'Those that are left out or null stay as they are' }),
  })
  .meta({ id: 'UpdatePeerRequest', description: 'Changes of a peer' });

/** Bytes of UTF-8: a close frame holds 123. */
const MAX_REASON_BYTES = 100;

/** Body of `DELETE /room/:id/peer/:id`, which is optional. */
export const RemovePeerRequest = z
  .object({
    reason: z
      .string()
      .refine((reason) => Buffer.byteLength(reason) <= MAX_REASON_BYTES, {
        error: `Expected a reason of at most ${MAX_REASON_BYTES} bytes`,
      })
      // For the documentation only: the check counts bytes.
      .meta({ maxLength: MAX_REASON_BYTES })
      .nullish()
      .meta({ description: 'Close reason of its websocket, up to 100 bytes; default `Peer removed`' }),
  })
  .meta({ id: 'RemovePeerRequest', description: 'Why the peer is removed' });

/** Body of `PATCH /room/:id/peer/:id/track/:id`. */
export const UpdateTrackRequest = z
  .object({ muted: z.boolean().meta({ description: 'Whether to withhold the track from everyone' }) })
  .meta({ id: 'UpdateTrackRequest', description: 'Changes of a track' });

export const TrackDetails = z.strictObject({ data: Track }).meta({ id: 'TrackResponse', description: 'The track' });

/** Body of `POST /room/:id/message`. */
export const MessageRequest = MessageContent.extend({
  to: z
    .array(z.string())
    .max(MAX_RECEIVERS)
    .nullish()
    .meta({ description: 'Ids of the peers to receive it; default: all peers of the room' }),
}).meta({ id: 'RoomMessageRequest', description: 'A message to clients' });

export const MessageSent = z
  .strictObject({
    data: z.strictObject({ delivered: z.int().min(0).meta({ description: 'Clients that it was sent to' }) }),
  })
  .meta({ id: 'RoomMessageResponse', description: 'How many clients the message was sent to' });
