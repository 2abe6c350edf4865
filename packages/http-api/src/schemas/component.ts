import { z } from 'zod';
import { Track } from './common.js';
import { INVALID_STRUCTURE } from './peer.js';

/** Kinds that a request may name; one that this instance does not offer is refused by the rooms. */
export const COMPONENT_TYPES = ['hls', 'rtsp', 'file', 'sip', 'recording'] as const;

const S3Credentials = z
  .object({
    accessKeyId: z.string(),
    secretAccessKey: z.string(),
    region: z.string(),
    bucket: z.string(),
  })
  .meta({ id: 'S3Credentials', description: 'Where and as whom to upload' });

const subscribeMode = z.enum(['auto', 'manual']).meta({
  description: '`auto`: every track of the room; `manual`: those of the origins that are subscribed to',
});

const SipCredentials = z
  .object({
    address: z.string().meta({ description: 'Host or IPv4 address of the registrar, with an optional port' }),
    username: z.string(),
    password: z.string(),
  })
  .meta({ id: 'SIPCredentials', description: 'Registration at a SIP provider' });

const HlsOptions = z
  .object({
    lowLatency: z.boolean().nullish().meta({ description: 'Low-latency HLS; default false' }),
    persistent: z.boolean().nullish().meta({ description: 'Keep the stream as a recording; default false' }),
    subscribeMode: subscribeMode.nullish(),
    targetWindowDuration: z
      .int()
      .min(1)
      .nullish()
      .meta({ description: 'Seconds that the playlist covers; null = everything' }),
    s3: S3Credentials.nullish(),
  })
  .meta({ id: 'ComponentOptionsHLS', description: 'Options of an HLS component' });

const FileOptions = z
  .object({
    filePath: z.string().meta({ description: 'Path below `file_component_sources`', examples: ['video.h264'] }),
    framerate: z.int().min(1).nullish().meta({ description: 'Frames per second of a video; default 30' }),
  })
  .meta({ id: 'ComponentOptionsFile', description: 'Options of a File component' });

const SipOptions = z
  .object({ registrarCredentials: SipCredentials })
  .meta({ id: 'ComponentOptionsSIP', description: 'Options of a SIP component' });

const RecordingOptions = z
  .object({
    credentials: S3Credentials.nullish(),
    pathPrefix: z.string().nullish().meta({ description: 'Prefix of the object keys' }),
    subscribeMode: subscribeMode.nullish(),
  })
  .meta({ id: 'ComponentOptionsRecording', description: 'Options of a Recording component' });

/** Body of `POST /room/:id/component` as it is checked here; the options are checked by the rooms, behind their checks. */
export const AddComponentRequest = z.object({
  type: z.enum(COMPONENT_TYPES, {
    error: (issue) => (issue.input === undefined ? INVALID_STRUCTURE : 'Invalid component type'),
  }),
  options: z.unknown().optional(),
});

/** The same body as it is documented. */
export const AddComponentDocument = z
  .union([
    z.object({ type: z.literal('hls'), options: HlsOptions.nullish() }),
    z.object({ type: z.literal('file'), options: FileOptions }),
    z.object({ type: z.literal('sip'), options: SipOptions }),
    z.object({ type: z.literal('recording'), options: RecordingOptions.nullish() }),
  ])
  .meta({ id: 'AddComponentRequest', description: 'A new component' });

export const ComponentPropertiesHLS = z
  .strictObject({
    playable: z.boolean().meta({ description: 'Whether there is something to play by now' }),
    lowLatency: z.boolean(),
    persistent: z.boolean(),
    targetWindowDuration: z.int().nullable(),
    subscribeMode,
    s3: z.null().meta({ description: 'Credentials are never shown' }),
  })
  .meta({ id: 'ComponentPropertiesHLS', description: 'Properties of an HLS component' });

export const ComponentPropertiesFile = z
  .strictObject({ filePath: z.string(), framerate: z.int().nullable() })
  .meta({ id: 'ComponentPropertiesFile', description: 'Properties of a File component' });

export const ComponentPropertiesSIP = z
  .strictObject({
    registrarCredentials: z.strictObject({ address: z.string(), username: z.string(), password: z.string() }),
  })
  .meta({ id: 'ComponentPropertiesSIP', description: 'Properties of a SIP component' });

export const ComponentPropertiesRecording = z
  .strictObject({ subscribeMode })
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
