import type { ServedFile } from '@bloom/files';
import { type RoomService, validate } from '@bloom/rooms';
import type { z } from 'zod';
import { HttpError } from './errors.js';

export type SdpType = 'application/sdp' | 'application/trickle-ice-sdpfrag';

/** A request after routing, authentication and parsing. */
export interface Call {
  /** Decoded path parameters. */
  params: Readonly<Record<string, string>>;
  query: URLSearchParams;
  /** The JSON object of the body; empty for any other body. */
  body: Readonly<Record<string, unknown>>;
  /** Aborted when the client has disconnected. */
  signal: AbortSignal;
  /** The rooms, on behalf of this request. */
  rooms: RoomService;
  /** The `x-request-id` of the response. */
  requestId: string;
  /** True if the request arrived over TLS, here or at a proxy. */
  secure: boolean;
  /** Returns the network of the client, for limits. */
  network(): string;
  /** The room of the guest or peer who checks the ways to the node; undefined for an operator. */
  checkRoom: string | undefined;
  /** The bearer token if the route requires a peer's; otherwise empty. */
  token: string;
  /** Body of a route that takes text. */
  text: string;
  /** `if-match` */
  ifMatch: string | undefined;
}

export type Answer =
  | { status: 200 | 201 | 202; json: unknown }
  | { status: 201; text: string }
  | { status: 503; json: unknown }
  | { status: 200 | 204 }
  | { status: 200 | 201; sdp: string; type: SdpType; headers: Readonly<Record<string, string>> }
  | { status: 200; file: ServedFile; noStore?: boolean };

export type Operation = (call: Call) => Promise<Answer>;

export function param(params: Readonly<Record<string, string>>, name: string): string {
  const value = params[name];
  if (value === undefined) throw new TypeError(`the route has no parameter "${name}"`);

  return value;
}

/** Returns the message for a field whose schema has none: Zod's sentences do not name it. */
function namedField({ path = [], input, expected = 'another value' }: z.core.$ZodRawIssue): string | undefined {
  if (path.length === 0) return undefined;
  if (input === undefined || input === null) return `Required field "${String(path.at(-1))}" missing`;

  return `Invalid ${path.join('.')}: expected ${String(expected)}`;
}

/** @throws HttpError 400 with the message of the first invalid field */
export function checked<T extends z.ZodType>(schema: T, body: unknown): z.infer<T> {
  const result = validate(schema, body, { error: namedField });
  if (!result.success) throw new HttpError(400, result.error.issues[0]?.message ?? 'Invalid request body structure');

  return result.data;
}
