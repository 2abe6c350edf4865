import { PeerOptions } from '@bloom/rooms';
import { z } from 'zod';
import { Metadata, Track } from './common.js';

export const INVALID_STRUCTURE = 'Invalid request body structure';

/**
 * Body of `POST /room/:id/peer` as checked here. The options are checked by the rooms, after the room, its limit and the type
 * of peer.
 */
export const AddPeerRequest = z.object({
  type: z.literal('webrtc', {
    error: (issue) => (issue.input === undefined ? INVALID_STRUCTURE : 'Invalid peer type'),
  }),
  options: z.unknown().optional(),
});

/** The same body as documented. */
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
  })
  .meta({ id: 'Peer', description: 'A participant of the room' });

export const PeerCreated = z
  .strictObject({
    data: z.strictObject({
      peer: Peer,
      token: z.string().meta({ description: 'What the client authenticates its websocket with; valid for 24 hours' }),
      peer_websocket_url: z.string().meta({
        description: 'Address of the websocket, without scheme',
        examples: ['localhost:5002/socket/peer/websocket'],
      }),
    }),
  })
  .meta({ id: 'PeerDetailsResponse', description: 'The new peer and how it connects' });
