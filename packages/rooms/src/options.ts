import { z } from 'zod';
import { RoomError } from './room-service.js';

const INVALID_STRUCTURE = 'Invalid request body structure';

/**
 * What peers and components may be created with (docs/reference/http-api.md). These schemas check the requests, and the
 * published description of the API is made from the same ones. Null means absent; unknown fields are ignored.
 */
export const PeerOptions = z
  .object({
    enableSimulcast: z.boolean().nullish().meta({ description: 'Accept simulcast from the peer; default true' }),
  })
  .meta({ id: 'PeerOptionsWebRTC', description: 'Options of a WebRTC peer' });

const S3CredentialsOption = z
  .object({
    accessKeyId: z.string(),
    secretAccessKey: z.string(),
    region: z.string(),
    bucket: z.string(),
  })
  .meta({ id: 'S3Credentials', description: 'Where and as whom to upload' });

export const SubscribeMode = z.enum(['auto', 'manual']).meta({
  description: '`auto`: every track of the room; `manual`: those of the origins that are subscribed to',
});

const SipCredentials = z
  .object({
    address: z.string().meta({ description: 'Host or IPv4 address of the registrar, with an optional port' }),
    username: z.string(),
    password: z.string(),
  })
  .meta({ id: 'SIPCredentials', description: 'Registration at a SIP provider' });

export const HlsOptions = z
  .object({
    lowLatency: z.boolean().nullish().meta({ description: 'Low-latency HLS; default false' }),
    persistent: z.boolean().nullish().meta({ description: 'Keep the stream as a recording; default false' }),
    subscribeMode: SubscribeMode.nullish(),
    targetWindowDuration: z
      .int()
      .min(1)
      .nullish()
      .meta({ description: 'Seconds that the playlist covers; null = everything' }),
    s3: S3CredentialsOption.nullish(),
  })
  .meta({ id: 'ComponentOptionsHLS', description: 'Options of an HLS component' });

const invalidFramerate = { error: () => 'Invalid framerate passed' };

const fileFields = z.object({
  filePath: z.string().meta({ description: 'Path below `file_component_sources`', examples: ['video.h264'] }),
  // Whether it is positive is checked once the file was found, which is the order that clients know.
  framerate: z.int(invalidFramerate).nullish(),
});

export const FileOptions = fileFields;

/** The documented schema, with the limit that is checked only once the file has been found. */
export const FileOptionsDocument = fileFields
  .extend({
    framerate: z
      .int(invalidFramerate)
      .min(1, invalidFramerate)
      .nullish()
      .meta({ description: 'Frames per second of a video; default 30' }),
  })
  .meta({ id: 'ComponentOptionsFile', description: 'Options of a File component' });

export const SipOptions = z
  .object({ registrarCredentials: SipCredentials })
  .meta({ id: 'ComponentOptionsSIP', description: 'Options of a SIP component' });

export const RecordingOptions = z
  .object({
    credentials: S3CredentialsOption.nullish(),
    pathPrefix: z.string().nullish().meta({ description: 'Prefix of the object keys' }),
    subscribeMode: SubscribeMode.nullish(),
  })
  .meta({ id: 'ComponentOptionsRecording', description: 'Options of a Recording component' });

/**
 * The options as `schema` understands them, for `ComponentKind.prepare`.
 * @throws RoomError `MISSING_OPTION` with the name of a required field, `INVALID_OPTIONS` for anything else
 */
export function parseOptions<T extends z.ZodType>(schema: T, given: unknown): z.infer<T> {
  let missing = false;
  const result = schema.safeParse(given, {
    error: (issue) => {
      const name = issue.path?.at(-1);
      // Only a required field can be wrong by being absent: the others may be null or left out.
      if (name === undefined || (issue.input !== undefined && issue.input !== null)) {
        return INVALID_STRUCTURE;
      }
      missing = true;

      return `Required field "${String(name)}" missing`;
    },
  });
  if (result.success) return result.data;

  const message = result.error.issues[0]?.message ?? INVALID_STRUCTURE;
  throw new RoomError(missing && message.startsWith('Required field') ? 'MISSING_OPTION' : 'INVALID_OPTIONS', message);
}

const GivenPeerOptions = PeerOptions.nullish();

/** Returns whether the peer may offer simulcast: true by default, undefined when the options are malformed. */
export function simulcastOption(given: unknown): boolean | undefined {
  const result = GivenPeerOptions.safeParse(given);

  return result.success ? (result.data?.enableSimulcast ?? true) : undefined;
}

/** Options of peers and components are two levels deep; this leaves room for future ones. */
const MAX_DEPTH = 8;

/**
 * Empties what is nested deeper than any option, so that the options can be sent to the node that owns the room. Such
 * values would be ignored, or refused for their type, wherever they are checked.
 */
export function sendableOptions(given: unknown, depth = 0): unknown {
  if (typeof given !== 'object' || given === null) return given;
  if (Array.isArray(given)) return depth === MAX_DEPTH ? [] : given.map((item) => sendableOptions(item, depth + 1));
  if (depth === MAX_DEPTH) return {};

  // Not by assignment: a client may name a key __proto__.
  return Object.fromEntries(Object.entries(given).map(([key, value]) => [key, sendableOptions(value, depth + 1)]));
}
