// Creation options and visible properties of each kind of component (docs/reference/http-api.md#components). The kinds
// check their options with these schemas, and the published API description is generated from them. Null means absent;
// unknown fields are ignored.
import { z } from 'zod';

const S3Credentials = z
  .object({
    accessKeyId: z.string(),
    secretAccessKey: z.string(),
    region: z.string(),
    bucket: z.string(),
  })
  .meta({ id: 'S3Credentials', description: 'Where and as whom to upload' });

/** Maximum number of peers and components that a manual-mode component subscribes to. */
export const MAX_ORIGINS = 10_000;

const SubscribeMode = z.enum(['auto', 'manual']).meta({
  description: '`auto`: every track of the room; `manual`: those of the origins that are subscribed to',
});

const SipCredentials = z
  .object({
    address: z.string().meta({ description: 'Host or IPv4 address of the registrar, with an optional port' }),
    username: z.string(),
    password: z.string(),
  })
  .meta({ id: 'SIPCredentials', description: 'Registration at a SIP provider' });

const AnyCodec = z
  .boolean()
  .nullish()
  .meta({ description: 'Take VP8 and VP9 beside H.264, so that it works in any room; default false' });
const takesAnyCodec = z.literal(true).optional().meta({ description: 'Present if it takes VP8 and VP9 beside H.264' });

const HlsOptions = z
  .object({
    lowLatency: z.boolean().nullish().meta({ description: 'Low-latency HLS; default false' }),
    persistent: z.boolean().nullish().meta({ description: 'Keep the stream as a recording; default false' }),
    subscribeMode: SubscribeMode.nullish(),
    targetWindowDuration: z
      .int()
      .min(1)
      .nullish()
      .meta({ description: 'Seconds that the playlist covers; null = everything' }),
    s3: S3Credentials.nullish(),
    anyCodec: AnyCodec,
  })
  .meta({ id: 'ComponentOptionsHLS', description: 'Options of an HLS component' });

const invalidFramerate = { error: () => 'Invalid framerate passed' };

export const FileOptions = z.object({
  filePath: z.string().meta({ description: 'Path below `file_component_sources`', examples: ['video.h264'] }),
  // Checked for being positive only once the file has been found: clients rely on that order.
  framerate: z.int(invalidFramerate).nullish(),
});

/** The documented schema, including the limit that is checked only once the file has been found. */
const FileOptionsDocument = FileOptions.extend({
  framerate: z
    .int(invalidFramerate)
    .min(1, invalidFramerate)
    .nullish()
    .meta({ description: 'Frames per second of a video; default 30' }),
}).meta({ id: 'ComponentOptionsFile', description: 'Options of a File component' });

const RtspOptions = z
  .object({
    sourceUri: z.string().meta({
      description: 'Address with the scheme `rtsp`, `rtsps`, `srt`, `rtmp` or `rtmps`. Credentials are shown as `***`',
      examples: ['rtsp://camera.example:554/stream1'],
    }),
    rtpPort: z
      .int()
      .min(1)
      .max(65_535)
      .nullish()
      .meta({ description: 'Local port of RTP over UDP; default 20000. Unused over TCP' }),
    reconnectDelay: z
      .int()
      .min(0)
      .nullish()
      .meta({ description: 'Milliseconds between a lost connection and the next one; default 15000' }),
    keepAliveInterval: z
      .int()
      .min(0)
      .nullish()
      .meta({ description: 'Accepted; the session is kept alive twice in the time that the source demands' }),
    pierceNat: z.boolean().nullish().meta({ description: 'Accepted; RTP over UDP always opens its way through NAT' }),
  })
  .meta({ id: 'ComponentOptionsRTSP', description: 'Options of an RTSP component' });

const SipOptions = z
  .object({ registrarCredentials: SipCredentials })
  .meta({ id: 'ComponentOptionsSIP', description: 'Options of a SIP component' });

const RecordingOptions = z
  .object({
    credentials: S3Credentials.extend({
      endpoint: z
        .string()
        .max(2_048)
        .nullish()
        .meta({
          description:
            'Base URL of the store, with path-style addresses. With it, these credentials replace those of the server',
          examples: ['https://store.example'],
        }),
    })
      .meta({ id: 'RecordingCredentials', description: 'Where and as whom to upload a recording' })
      .nullish(),
    pathPrefix: z.string().nullish().meta({ description: 'Prefix of the object keys' }),
    subscribeMode: SubscribeMode.nullish(),
    notify: z
      .boolean()
      .nullish()
      .meta({ description: 'Send `RecordingUploaded` or `RecordingFailed` once; default false' }),
    audioOnly: z.boolean().nullish().meta({ description: 'Record no pictures; default false' }),
    anyCodec: AnyCodec,
  })
  .meta({ id: 'ComponentOptionsRecording', description: 'Options of a Recording component' });

/** The kinds that requests may name; a node refuses those it does not offer. Schema names in the API contain `name`. */
export const COMPONENT_SCHEMAS = {
  hls: {
    name: 'HLS',
    options: HlsOptions,
    properties: z
      .strictObject({
        playable: z.boolean().meta({ description: 'Whether there is something to play by now' }),
        lowLatency: z.boolean(),
        persistent: z.boolean(),
        targetWindowDuration: z.int().nullable(),
        subscribeMode: SubscribeMode,
        s3: z.null().meta({ description: 'Credentials are never shown' }),
        anyCodec: takesAnyCodec,
      })
      .meta({ id: 'ComponentPropertiesHLS', description: 'Properties of an HLS component' }),
  },
  rtsp: {
    name: 'RTSP',
    options: RtspOptions,
    properties: z
      .strictObject({
        sourceUri: z.string().meta({ description: 'Credentials are replaced by `***`' }),
        rtpPort: z.int(),
        reconnectDelay: z.int(),
        keepAliveInterval: z.int(),
        pierceNat: z.boolean(),
      })
      .meta({ id: 'ComponentPropertiesRTSP', description: 'Properties of an RTSP component' }),
  },
  file: {
    name: 'File',
    options: FileOptionsDocument,
    properties: z
      .strictObject({ filePath: z.string(), framerate: z.int().nullable() })
      .meta({ id: 'ComponentPropertiesFile', description: 'Properties of a File component' }),
  },
  sip: {
    name: 'SIP',
    options: SipOptions,
    properties: z
      .strictObject({
        registrarCredentials: z.strictObject({ address: z.string(), username: z.string(), password: z.string() }),
      })
      .meta({ id: 'ComponentPropertiesSIP', description: 'Properties of a SIP component' }),
  },
  recording: {
    name: 'Recording',
    options: RecordingOptions,
    properties: z
      .strictObject({
        subscribeMode: SubscribeMode,
        paused: z.boolean().optional().meta({ description: 'Whether it is paused; absent until it first was' }),
        audioOnly: z.literal(true).optional().meta({ description: 'Present if no pictures are recorded' }),
        anyCodec: takesAnyCodec,
      })
      .meta({ id: 'ComponentPropertiesRecording', description: 'Properties of a Recording component' }),
  },
};

export type ComponentType = keyof typeof COMPONENT_SCHEMAS;
export const COMPONENT_TYPES = Object.keys(COMPONENT_SCHEMAS) as ComponentType[];
