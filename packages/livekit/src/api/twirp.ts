import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { decode as decodeBinary, decodeText } from '../decode.js';
import { LivekitError, type LivekitErrorCode } from '../errors.js';
import type { Claims } from '../grants.js';

/** Two bytes of protobuf can become an object, so decoding a large body would stop the node for long. */
const MAX_BODY_BYTES = 256 * 1024;
/** Smaller bodies are not counted: the number of connections bounds them, and large bodies do not lock them out. */
const SMALL_BYTES = 64 * 1024;
/** Bytes of all large bodies that are being received. */
const MAX_BODIES_BYTES = 64 * 1024 * 1024;
const PATH = /^\/twirp\/livekit\.([A-Za-z]+)\/([A-Za-z]+)$/;

/** Codes and statuses of Twirp (twitchtv.github.io/twirp/docs/spec_v7.html). */
const CODES: Record<LivekitErrorCode, [code: string, status: number]> = {
  UNAUTHENTICATED: ['unauthenticated', 401],
  INVALID: ['invalid_argument', 400],
  NOT_FOUND: ['not_found', 404],
  REFUSED: ['permission_denied', 403],
  UNAVAILABLE: ['unavailable', 503],
  PRECONDITION: ['failed_precondition', 412],
  EXHAUSTED: ['resource_exhausted', 429],
  UNIMPLEMENTED: ['unimplemented', 501],
  BAD_ROUTE: ['bad_route', 404],
  INTERNAL: ['internal', 500],
};

/** A message of protobuf. */
interface Answer {
  toBinary(): Uint8Array;
  toJsonString(options: { emitDefaultValues: boolean; useProtoFieldName: boolean }): string;
}

/** Reads a message of protobuf. */
type Reading<I> = Parameters<typeof decodeBinary<I>>[0] & Parameters<typeof decodeText<I>>[0];

interface Method {
  /**
   * Decides before the body is read.
   * @throws LivekitError if no body would be accepted with these claims
   */
  admit(claims: Claims): void;
  /** Reads the body of a request, and carries it out for a caller with these claims. */
  run(body: Buffer, isJson: boolean, claims: Claims): Promise<Answer>;
}

export function method<I>(
  request: Reading<I>,
  grant: 'roomAdmin' | 'roomCreate' | 'roomList',
  run: (request: I, claims: Claims) => Promise<Answer>,
): Method {
  return {
    admit: ({ video }) => permit(video?.[grant]),
    run: (body, isJson, claims) => run(decode(request, body, isJson), claims),
  };
}

/** A method that this server does not offer. */
export function missing(what: string): Method {
  const refuse = (): never => {
    throw new LivekitError('UNIMPLEMENTED', `${what} is not available on this server`);
  };

  return { admit: refuse, run: refuse };
}

/** @throws LivekitError UNAUTHENTICATED without the grant */
export function permit(granted: boolean | null | undefined): void {
  if (granted !== true) throw new LivekitError('UNAUTHENTICATED', 'permissions denied');
}

export type Service = Readonly<Record<string, Method>>;

/** Why a service is not offered. */
type Missing = string;

/** Serves the methods of services in both encodings of Twirp. */
export class Twirp {
  readonly #services: Readonly<Record<string, Service | Missing>>;
  readonly #authenticate: (request: IncomingMessage) => Promise<Claims>;
  readonly #toError: (error: unknown) => LivekitError;
  /** Size of all large bodies that are being received. */
  #bytes = 0;

  constructor(
    services: Readonly<Record<string, Service | Missing>>,
    parts: { authenticate: (request: IncomingMessage) => Promise<Claims>; toError: (error: unknown) => LivekitError },
  ) {
    this.#services = services;
    this.#authenticate = parts.authenticate;
    this.#toError = parts.toError;
  }

  /** Serves a request whose path begins with `/twirp/`. `refused` learns of each error. */
  async serve(
    request: IncomingMessage,
    response: ServerResponse,
    { pathname, refused }: { pathname: string; refused: (error: LivekitError) => void },
  ): Promise<void> {
    response.setHeader('x-livekit-request-id', randomUUID());
    response.setHeader('access-control-allow-origin', '*');
    response.setHeader('access-control-allow-headers', 'authorization, content-type');
    if (request.method === 'OPTIONS') return void response.writeHead(204).end();
    try {
      const isJson = encodingOf(request) === 'json';
      const found = this.#find(request, pathname);
      // Nothing is kept of the body of somebody who may not call this.
      const claims = await this.#authenticate(request);
      found.admit(claims);
      const body = await this.#read(request);
      const answer = await found.run(body, isJson, claims);
      // A value out of its type's range makes this throw.
      const encoded = isJson ? jsonOf(answer) : answer.toBinary();
      response.writeHead(200, { 'content-type': isJson ? 'application/json' : 'application/protobuf' });
      response.end(encoded);
    } catch (error) {
      const refusal = this.#toError(error);
      refused(refusal);
      if (response.headersSent) return void response.destroy();
      const [code, status] = CODES[refusal.code];
      // Clients compare the whole type.
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ code, msg: refusal.message }));
      request.resume();
    }

    return undefined;
  }

  #find({ method: verb = '' }: IncomingMessage, pathname: string): Method {
    const [, name = '', call = ''] = PATH.exec(pathname) ?? [];
    const service = Object.hasOwn(this.#services, name) ? this.#services[name] : undefined;
    if (typeof service === 'string') throw new LivekitError('UNIMPLEMENTED', service);
    const found = service !== undefined && Object.hasOwn(service, call) ? service[call] : undefined;
    if (found === undefined || verb !== 'POST') throw new LivekitError('BAD_ROUTE', 'no such method');

    return found;
  }

  async #read(request: IncomingMessage): Promise<Buffer> {
    const chunks: Buffer[] = [];
    let length = 0;
    let counted = 0;
    try {
      // A destroyed request could not be answered.
      const body = request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>;
      for await (const chunk of body) {
        length += chunk.length;
        if (length > MAX_BODY_BYTES) throw new LivekitError('EXHAUSTED', `the body exceeds ${MAX_BODY_BYTES} bytes`);
        if (length > SMALL_BYTES) {
          this.#bytes += length - counted;
          counted = length;
        }
        if (counted > 0 && this.#bytes > MAX_BODIES_BYTES) {
          throw new LivekitError('EXHAUSTED', 'too many large bodies at once');
        }
        chunks.push(chunk);
      }
    } finally {
      this.#bytes -= counted;
    }

    return Buffer.concat(chunks);
  }
}

/** @throws LivekitError BAD_ROUTE for a type that is neither JSON nor protobuf */
function encodingOf({ headers }: IncomingMessage): 'json' | 'protobuf' {
  const type = (headers['content-type'] ?? '').split(';', 1)[0]?.trim().toLowerCase();
  if (type === 'application/json') return 'json';
  if (type === 'application/protobuf') return 'protobuf';
  throw new LivekitError('BAD_ROUTE', 'the content type has to be application/json or application/protobuf');
}

function decode<I>(request: Reading<I>, body: Buffer, isJson: boolean): I {
  try {
    return isJson ? decodeText(request, body.toString()) : decodeBinary(request, body);
  } catch (error) {
    throw new LivekitError('INVALID', 'the body cannot be read', { cause: error });
  }
}

/** Names are in snake case, and default values are present. */
function jsonOf(answer: Answer): string {
  return answer.toJsonString({ emitDefaultValues: true, useProtoFieldName: true });
}
