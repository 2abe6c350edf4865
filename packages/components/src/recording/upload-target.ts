import { RoomError } from '@bloom/rooms';
import type { S3Credentials, S3Target } from '../s3/object-store.js';

/** What the environment says about uploads. Each setting is given either there or in the request, never in both. */
export interface UploadDefaults {
  s3: S3Credentials | null;
  pathPrefix: string | null;
  /** Base URL of a compatible store; null = AWS. */
  endpoint: string | null;
}

/** Credentials with an endpoint replace those of the environment. */
export type RequestCredentials = S3Credentials & { endpoint?: string | null | undefined };

/**
 * Returns the bucket that the request or the environment names; null if neither does. Clients compare the texts of the
 * errors.
 * @throws RoomError `INVALID_OPTIONS`
 */
export function targetOf({ s3, endpoint }: UploadDefaults, request: RequestCredentials | null): S3Target | null {
  if (s3 !== null && request !== null && (request.endpoint ?? null) === null) throw conflict('S3 credentials');
  const given: RequestCredentials | null = request ?? s3;
  if (given === null) return null;
  const { endpoint: asIs, ...credentials } = given;

  return { ...credentials, endpoint: endpointOf(asIs ?? null) ?? endpoint };
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

/** Returns the prefix without leading or trailing slashes. @throws RoomError `INVALID_OPTIONS` */
export function prefixOf(environment: string | null, request: string | null): string {
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
