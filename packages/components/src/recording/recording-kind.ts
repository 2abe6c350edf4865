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
  record(host: ComponentHost, target: S3Target, prefix: string): Component;
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
      const target = { ...credentialsOf(options.s3, asked.credentials ?? null), endpoint };
      const prefix = prefixOf(options.pathPrefix, asked.pathPrefix ?? null);
      const subscribeMode = asked.subscribeMode ?? 'auto';

      return {
        properties: { subscribeMode },
        subscribeMode,
        start: (host) => record(host, target, prefix),
      };
    },
  };
}

/** Clients compare these texts. */
function credentialsOf(environment: S3Credentials | null, request: S3Credentials | null): S3Credentials {
  if (environment !== null && request !== null) throw conflict('S3 credentials');
  const credentials = request ?? environment;
  if (credentials === null) {
    throw new RoomError(
      'INVALID_OPTIONS',
      'S3 credentials has to be passed either by request or at application startup as envs',
    );
  }

  return credentials;
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
