import {
  COMPONENT_SCHEMAS,
  parseOptions,
  RoomError,
  type Component,
  type ComponentHost,
  type ComponentKind,
} from '@bloom/rooms';
import type { S3Credentials, S3Target } from '../s3/object-store.js';

export interface RecordingKindOptions {
  /** From the environment. Each setting is given either there or in the request, never in both. */
  s3: S3Credentials | null;
  pathPrefix: string | null;
  /** Base URL of a compatible store; null = AWS. */
  endpoint: string | null;
  /** Starts recording. The files go to `target` below `prefix`, which has no leading or trailing slashes. */
  record(host: ComponentHost, to: RecordingOptions): Component;
}

export interface RecordingOptions {
  target: S3Target;
  /** Without leading or trailing slashes. */
  prefix: string;
  /** The credentials came with the request, so they end with this process. */
  byRequest: boolean;
  audioOnly: boolean;
  /** Send news of the upload. */
  notify: boolean;
}

/** Returns the component kind that records a room's tracks into files and uploads them. */
export function recordingKind(options: RecordingKindOptions): ComponentKind {
  const { endpoint, record } = options;

  return {
    type: 'recording',
    requiresH264: true,
    limitPerRoom: 1,
    prepare: async (given) => {
      const asked = parseOptions(COMPONENT_SCHEMAS.recording.options, given);
      const own = asked.credentials ?? null;
      const { endpoint: asIs, ...credentials } = credentialsOf(options.s3, own);
      const target = { ...credentials, endpoint: endpointOf(asIs ?? null) ?? endpoint };
      const prefix = prefixOf(options.pathPrefix, asked.pathPrefix ?? null);
      const subscribeMode = asked.subscribeMode ?? 'auto';
      const audioOnly = asked.audioOnly ?? false;

      return {
        properties: { subscribeMode, ...(audioOnly ? { audioOnly } : {}) },
        subscribeMode,
        start: (host) =>
          record(host, { target, prefix, byRequest: own !== null, audioOnly, notify: asked.notify ?? false }),
      };
    },
  };
}

type GivenCredentials = S3Credentials & { endpoint?: string | null | undefined };

/** Credentials with an endpoint replace those of the environment. Clients compare these texts. */
function credentialsOf(environment: S3Credentials | null, request: GivenCredentials | null): GivenCredentials {
  if (environment !== null && request !== null && (request.endpoint ?? null) === null) throw conflict('S3 credentials');
  const credentials = request ?? environment;
  if (credentials === null) {
    throw new RoomError(
      'INVALID_OPTIONS',
      'S3 credentials has to be passed either by request or at application startup as envs',
    );
  }

  return credentials;
}

/** Returns the base URL. The error does not repeat it, because it may contain a password. */
function endpointOf(given: string | null): string | null {
  if (given === null) return null;
  const url = URL.canParse(given) ? new URL(given) : undefined;
  const isPlain =
    url !== undefined && url.username === '' && url.password === '' && url.search === '' && url.hash === '';
  if (!isPlain || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    throw new RoomError(
      'INVALID_OPTIONS',
      'Expected credentials.endpoint to be an http or https URL without user, query and fragment',
    );
  }

  return url.href;
}

/** Returns the prefix without leading or trailing slashes. */
function prefixOf(environment: string | null, request: string | null): string {
  if (environment !== null && request !== null) throw conflict('S3 path prefix');
  const parts = (request ?? environment ?? '').split('/').filter(Boolean);
  if (parts.some((part) => part === '.' || part === '..')) {
    throw new RoomError('INVALID_OPTIONS', 'Invalid request body structure');
  }

  return parts.join('/');
}

function conflict(what: string): RoomError {
  return new RoomError(
    'INVALID_OPTIONS',
    `Conflicting ${what} supplied via environment variables and the REST API. Overrides on existing values are disallowed`,
  );
}
