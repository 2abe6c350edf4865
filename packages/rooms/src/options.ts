// Creation options of peers (docs/reference/http-api.md). These schemas check the requests, and the published API
// description is generated from them. Null means absent; unknown fields are ignored.
import { z } from 'zod';
import { MAX_METADATA_BYTES } from './peer/metadata-gate.js';
import { done, refused, type Outcome } from './outcome.js';
import { DEFAULT_TTL } from './peer/credentials.js';
import { defaultPermissions, mergePermissions } from './peer/permissions.js';
import { type PeerPermissions, RoomError } from './room-service.js';
import { INVALID_STRUCTURE, validate } from './validation.js';

/** Maximum depth of arrays and objects in the backend's JSON. */
const MAX_LEVELS = 100;
/** Size limit for the data of one message, as JSON in UTF-8. */
const MAX_MESSAGE_BYTES = 16 * 1024;
const MAX_TOPIC_LENGTH = 256;
/** Limit on the peers that one message names. */
export const MAX_RECEIVERS = 10_000;
/** Seconds; the largest signed 32-bit value. */
const MAX_TTL = 2 ** 31 - 1;

/** Returns a schema for any JSON value up to this size. */
function boundedJson(name: string, maxBytes: number) {
  return z
    .unknown()
    .refine((value) => !nestsDeeper(value, MAX_LEVELS), {
      error: `Expected ${name} of at most ${MAX_LEVELS} levels`,
      abort: true,
    })
    .refine((value) => Buffer.byteLength(JSON.stringify(value) ?? '') <= maxBytes, {
      error: `Expected ${name} of at most ${maxBytes} bytes`,
    });
}

/** Metadata of a peer or a room, set by the backend; null = none. */
export const ServerMetadata = boundedJson('metadata', MAX_METADATA_BYTES);

/** Body of a message to clients, without its recipients. */
export const MessageContent = z.object({
  topic: z.string().min(1).max(MAX_TOPIC_LENGTH).meta({ description: 'What the message is about' }),
  data: boundedJson('data', MAX_MESSAGE_BYTES)
    .refine((value) => value !== undefined, { error: () => INVALID_STRUCTURE })
    .meta({ description: 'Any JSON value of up to 16 KiB' }),
});

export const Permissions = z
  .object({
    publish: z
      .union([z.boolean(), z.array(z.enum(['audio', 'video', 'data'])).max(3)], {
        error: 'Expected publish to be true, false or an array of audio, video and data',
      })
      .nullish()
      .meta({ description: 'Whether the client may publish, or the kinds it may publish; default true' }),
    subscribe: z.boolean().nullish().meta({ description: 'Whether it receives tracks of others; default true' }),
    metadata: z.boolean().nullish().meta({ description: 'Whether its own metadata is shown; default true' }),
  })
  .meta({ id: 'PeerPermissions', description: 'What the client of the peer may do' });

export const PeerOptions = z
  .object({
    enableSimulcast: z.boolean().nullish().meta({ description: 'Accept simulcast from the peer; default true' }),
    metadata: ServerMetadata.meta({
      description: 'Metadata set by the backend; others see `{"peer": ..., "server": ...}`; default null',
    }).nullish(),
    permissions: Permissions.nullish(),
    ttl: z
      .int()
      .min(1)
      .max(MAX_TTL)
      .nullish()
      .meta({ description: 'Seconds for which the token is valid; default 86400' }),
  })
  .meta({ id: 'PeerOptionsWebRTC', description: 'Options of a WebRTC peer' });

/**
 * Parses the options with `schema`, for `ComponentKind.prepare`.
 * @throws RoomError `MISSING_OPTION` with the name of a required field, `INVALID_OPTIONS` for anything else
 */
export function parseOptions<T extends z.ZodType>(schema: T, given: unknown): z.infer<T> {
  let missing = false;
  const result = validate(schema, given, {
    error: (issue) => {
      const name = issue.path?.at(-1);
      // Only a required field can fail by being absent: the others may be null or missing.
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

export interface ParsedPeerOptions {
  enableSimulcast: boolean;
  /** Null = none. */
  metadata: unknown;
  /** Undefined unless the backend has set any. */
  permissions: PeerPermissions | undefined;
  /** Lifetime of the token in seconds. */
  ttl: number;
}

/** Returns the options of a new peer with defaults applied, or refuses malformed ones. */
export function peerOptions(given: unknown): Outcome<ParsedPeerOptions> {
  const result = validate(GivenPeerOptions, given);
  if (!result.success) return refused('INVALID_OPTIONS', structureFault(result.error));
  const { enableSimulcast, metadata, permissions, ttl } = result.data ?? {};

  return done({
    enableSimulcast: enableSimulcast ?? true,
    metadata: metadata ?? null,
    permissions:
      permissions === undefined || permissions === null ? undefined : mergePermissions(defaultPermissions, permissions),
    ttl: ttl ?? DEFAULT_TTL,
  });
}

/** Returns the error text for a refused value: its own text for a limit, a common one for any structural fault. */
export function structureFault({ issues }: z.ZodError): string {
  const own = issues.find(({ code }) => code === 'custom');

  return own?.message ?? INVALID_STRUCTURE;
}

function nestsDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;

  return levels === 0 || Object.values(value).some((inner) => nestsDeeper(inner, levels - 1));
}

/** Deeper than any valid option or metadata. Anything below is emptied first, then refused or ignored. */
const MAX_DEPTH = 128;

/**
 * Empties values nested deeper than any option so that the options can be sent to the room's owner. Every check would
 * ignore such values or refuse them for their type anyway.
 */
export function sendableOptions(given: unknown, depth = 0): unknown {
  if (typeof given !== 'object' || given === null) return given;
  if (Array.isArray(given)) return depth === MAX_DEPTH ? [] : given.map((item) => sendableOptions(item, depth + 1));
  if (depth === MAX_DEPTH) return {};

  // Do not assign: a client may use the key __proto__.
  return Object.fromEntries(Object.entries(given).map(([key, value]) => [key, sendableOptions(value, depth + 1)]));
}
