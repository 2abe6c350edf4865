import { ServerMetadata } from '@bloom/rooms';
import { z } from 'zod';
import { Component } from './component.js';
import { MAX_ROOM_ID, Metadata, shown } from './common.js';
import { Peer } from './peer.js';

/** Makes every error of the field `Expected <what>, got: <value>`. */
function expected(what: string) {
  return { error: (issue: { input?: unknown }) => `Expected ${what}, got: ${shown(issue.input)}` };
}

function badRoomId(reason: string) {
  return { error: (issue: { input?: unknown }) => `Cannot add room with id "${shown(issue.input)}" - ${reason}` };
}

const alphanumeric = badRoomId('roomId may contain only alphanumeric characters and hyphens');

const maxPeers = expected('maxPeers to be a number');
const videoCodec = expected("videoCodec to be 'h264' or 'vp8'");
const webhookUrl = expected('webhookUrl to be valid URL');
const peerlessPurgeTimeout = expected('peerlessPurgeTimeout to be a positive integer');
const peerDisconnectedTimeout = expected('peerDisconnectedTimeout to be a positive integer');
const dataEvents = expected('dataEvents to be a list of up to 16 labels of 1 to 64 bytes, without roomMessage');

function isWebhookUrl(text: string): boolean {
  // The URL parser tolerates blanks and missing slashes, which webhook addresses must not rely on.
  return /^https?:\/\/[^\s/?#]\S*$/i.test(text) && URL.canParse(text);
}

/** `roomMessage` carries messages of the backend: clients do not send on it. */
function isDataLabel(label: string): boolean {
  const bytes = Buffer.byteLength(label);

  return bytes > 0 && bytes <= 64 && label !== 'roomMessage';
}

/** Documents what `int` checks: larger numbers are not exact. */
const EXACT = { maximum: Number.MAX_SAFE_INTEGER };

/** Body of `POST /room`. The order of the fields is the order of the checks. */
export const RoomConfigRequest = z
  .object({
    roomId: z
      .string(alphanumeric)
      .regex(/^[A-Za-z0-9-]+$/, alphanumeric)
      .max(MAX_ROOM_ID, badRoomId(`roomId may have at most ${MAX_ROOM_ID} characters`))
      .nullish()
      .meta({ description: 'Id of the room, unique in the cluster; a UUID when not given', examples: ['room-1'] }),
    maxPeers: z
      .int(maxPeers)
      .min(0, maxPeers)
      .meta(EXACT)
      .nullish()
      .meta({ description: 'Most peers that the room may have; null = no limit', examples: [10] }),
    videoCodec: z
      .enum(['h264', 'vp8'], videoCodec)
      .nullish()
      .meta({ description: 'The only video codec of the room; null = any that the server supports' }),
    webhookUrl: z
      .string(webhookUrl)
      .refine(isWebhookUrl, webhookUrl)
      .meta({ format: 'uri', pattern: '^[Hh][Tt][Tt][Pp][Ss]?://[^\\s/?#]\\S*$' })
      .nullish()
      .meta({ description: 'Receiver of the notifications of the room', examples: ['https://example.com/hook'] }),
    peerlessPurgeTimeout: z
      .int(peerlessPurgeTimeout)
      .min(1, peerlessPurgeTimeout)
      .meta(EXACT)
      .nullish()
      .meta({ description: 'Seconds without a connected peer after which the room is removed; null = never' }),
    peerDisconnectedTimeout: z
      .int(peerDisconnectedTimeout)
      .min(1, peerDisconnectedTimeout)
      .meta(EXACT)
      .nullish()
      .meta({ description: 'Seconds after which a disconnected peer is removed; null = never' }),
    dataEvents: z
      .array(
        z
          .string(dataEvents)
          .refine(isDataLabel, dataEvents)
          // For the documentation only: the check counts bytes.
          .meta({ minLength: 1, maxLength: 64, not: { const: 'roomMessage' } }),
        dataEvents,
      )
      .max(16, dataEvents)
      .nullish()
      .meta({
        description: 'Labels of data channels whose messages the backend receives as `dataMessage`; null = none',
      }),
  })
  .meta({
    id: 'RoomConfigRequest',
    description: 'What a new room should be like; every field may be left out or null',
  });

/** Body of `PATCH /room/:id`; omitted fields stay unchanged. */
export const UpdateRoomRequest = RoomConfigRequest.pick({
  maxPeers: true,
  peerlessPurgeTimeout: true,
  peerDisconnectedTimeout: true,
  dataEvents: true,
})
  .extend({ metadata: ServerMetadata.meta({ description: 'Any JSON value; null removes it' }).optional() })
  .meta({ id: 'UpdateRoomRequest', description: 'Changes of a room; fields that are left out stay as they are' });

const RoomConfig = z
  .strictObject({
    roomId: z.string(),
    maxPeers: z.int().min(0).nullable(),
    videoCodec: z.enum(['h264', 'vp8']).nullable(),
    webhookUrl: z.string().nullable(),
    peerlessPurgeTimeout: z.int().min(1).nullable(),
    peerDisconnectedTimeout: z.int().min(1).nullable(),
    name: z
      .string()
      .optional()
      .meta({ description: 'Name that LiveKit clients know the room by, if it is not the id' }),
    dataEvents: z
      .array(z.string())
      .optional()
      .meta({ description: 'Labels of data channels whose messages the backend receives; absent without any' }),
    metadata: Metadata.optional().meta({ description: 'Set by the backend; absent until then' }),
  })
  .meta({ id: 'RoomConfig', description: 'Configuration of the room; fields that are not set are null' });

const Room = z
  .strictObject({
    id: z.string(),
    config: RoomConfig,
    components: z.array(Component),
    peers: z.array(Peer),
  })
  .meta({ id: 'Room', description: 'A room with its components and peers' });

const address = z
  .string()
  .meta({ description: 'Address of the node that got the room (`JF_HOST`)', examples: ['localhost:5002'] });

export const RoomCreated = z
  .strictObject({
    data: z.strictObject({
      room: Room,
      service_address: address,
      jellyfish_address: address,
      fishjam_address: address,
    }),
  })
  .meta({ id: 'RoomCreateDetailsResponse', description: 'The new room and where it is' });

export const RoomDetails = z.strictObject({ data: Room }).meta({ id: 'RoomDetailsResponse', description: 'One room' });

export const RoomListing = z
  .strictObject({
    data: z.array(Room),
    unreachable: z
      .array(z.string())
      .optional()
      .meta({ description: 'With `scope=cluster`: nodes that did not answer, so their rooms are missing' }),
  })
  .meta({ id: 'RoomsListingResponse', description: 'Rooms, in no particular order' });
