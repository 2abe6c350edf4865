import {
  COMPONENT_TYPES,
  FileOptionsDocument,
  HlsOptions,
  RecordingOptions,
  RtspOptions,
  SipOptions,
  SubscribeMode,
} from '@bloom/rooms';
import { z } from 'zod';
import { Track } from './common.js';
import { INVALID_STRUCTURE } from './peer.js';

/** Body of `POST /room/:id/component` as checked here; the rooms check the options after their own checks. */
export const AddComponentRequest = z.object({
  type: z.enum(COMPONENT_TYPES, {
    error: (issue) => (issue.input === undefined ? INVALID_STRUCTURE : 'Invalid component type'),
  }),
  options: z.unknown().optional(),
});

/** The same body as documented. */
export const AddComponentDocument = z
  .union([
    z.object({ type: z.literal('hls'), options: HlsOptions.nullish() }),
    z.object({ type: z.literal('rtsp'), options: RtspOptions }),
    z.object({ type: z.literal('file'), options: FileOptionsDocument }),
    z.object({ type: z.literal('sip'), options: SipOptions }),
    z.object({ type: z.literal('recording'), options: RecordingOptions.nullish() }),
  ])
  .meta({ id: 'AddComponentRequest', description: 'A new component' });

const ComponentPropertiesHLS = z
  .strictObject({
    playable: z.boolean().meta({ description: 'Whether there is something to play by now' }),
    lowLatency: z.boolean(),
    persistent: z.boolean(),
    targetWindowDuration: z.int().nullable(),
    subscribeMode: SubscribeMode,
    s3: z.null().meta({ description: 'Credentials are never shown' }),
  })
  .meta({ id: 'ComponentPropertiesHLS', description: 'Properties of an HLS component' });

const ComponentPropertiesRTSP = z
  .strictObject({
    sourceUri: z.string().meta({ description: 'Credentials are replaced by `***`' }),
    rtpPort: z.int(),
    reconnectDelay: z.int(),
    keepAliveInterval: z.int(),
    pierceNat: z.boolean(),
  })
  .meta({ id: 'ComponentPropertiesRTSP', description: 'Properties of an RTSP component' });

const ComponentPropertiesFile = z
  .strictObject({ filePath: z.string(), framerate: z.int().nullable() })
  .meta({ id: 'ComponentPropertiesFile', description: 'Properties of a File component' });

const ComponentPropertiesSIP = z
  .strictObject({
    registrarCredentials: z.strictObject({ address: z.string(), username: z.string(), password: z.string() }),
  })
  .meta({ id: 'ComponentPropertiesSIP', description: 'Properties of a SIP component' });

const ComponentPropertiesRecording = z
  .strictObject({ subscribeMode: SubscribeMode })
  .meta({ id: 'ComponentPropertiesRecording', description: 'Properties of a Recording component' });

function componentOf<T extends string, P extends z.ZodType>(type: T, id: string, properties: P) {
  return z
    .strictObject({
      id: z.string().meta({ description: 'Component id, a UUID' }),
      type: z.literal(type),
      properties,
      tracks: z.array(Track),
    })
    .meta({ id, description: `A component of the kind ${type}` });
}

export const Component = z
  .union([
    componentOf('hls', 'ComponentHLS', ComponentPropertiesHLS),
    componentOf('rtsp', 'ComponentRTSP', ComponentPropertiesRTSP),
    componentOf('file', 'ComponentFile', ComponentPropertiesFile),
    componentOf('sip', 'ComponentSIP', ComponentPropertiesSIP),
    componentOf('recording', 'ComponentRecording', ComponentPropertiesRecording),
  ])
  .meta({ id: 'Component', description: 'A part of the room that the server runs' });

export const ComponentDetails = z
  .strictObject({ data: Component })
  .meta({ id: 'ComponentDetailsResponse', description: 'The new component' });

/** Body of `POST /room/:id/component/:id/subscribe`. */
export const SubscribeRequest = z
  .object({
    origins: z
      .array(z.string({ error: () => INVALID_STRUCTURE }), { error: () => INVALID_STRUCTURE })
      .meta({ description: 'Ids of peers and components whose tracks, now and later, are wanted' }),
  })
  .meta({ id: 'SubscriptionConfig', description: 'What to subscribe to' });

/** Body of `POST /sip/:room_id/:component_id/call`. */
export const DialRequest = z
  .object({
    phoneNumber: z
      .string({ error: () => INVALID_STRUCTURE })
      .meta({ description: 'Number to call', examples: ['+48 123-456-789'] }),
  })
  .meta({ id: 'DialConfig', description: 'Whom to call' });
