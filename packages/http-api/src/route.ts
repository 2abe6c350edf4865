import type { z } from 'zod';
import type { SdpType } from './operation.js';
import { ErrorBody } from './schemas/common.js';

/** Body of a response: empty, text, a file, SDP, or JSON of this shape. */
export type AnswerBody = 'empty' | 'text' | 'file' | SdpType | z.ZodType;

export interface RouteOf<Id extends string> {
  readonly id: Id;
  readonly method: 'get' | 'post' | 'patch' | 'delete';
  /** Express path; parameters are `:name`. */
  readonly path: string;
  /**
   * `file`: requires the token, or that of a viewer or a peer of the room, unless `JF_PUBLIC_MEDIA_FILES` opens the
   * files. `peer`: requires a peer's token. `check`: requires the token, a peer's or an invitation. `none`: for probes.
   */
  readonly auth: 'token' | 'file' | 'peer' | 'check' | 'none';
  readonly tag: 'room' | 'hls' | 'recording' | 'sip' | 'whip' | 'health' | 'cluster';
  readonly summary: string;
  /** JSON body as documented. */
  readonly body?: z.ZodType;
  /** Limit on a JSON body. Default: `MAX_BODY_BYTES`. */
  readonly maxBodyBytes?: number;
  /** Body taken as text; other types are refused with 415. */
  readonly textBody?: SdpType;
  /** Query parameters as documented; all are optional. */
  readonly query?: Readonly<Record<string, z.ZodType>>;
  /** True if `If-Match` is required. */
  readonly ifMatch?: true;
  readonly answers: Readonly<Record<number, { description: string; body: AnswerBody }>>;
}

export const badRequest = { 400: { description: 'Invalid request', body: ErrorBody } };
export const notFound = { 404: { description: 'Not found', body: ErrorBody } };
export const unavailable = { 503: { description: 'The node that owns the room cannot be reached', body: ErrorBody } };
