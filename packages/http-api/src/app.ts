import type { IncomingMessage, ServerResponse } from 'node:http';
import type { LiveStreams, RecordingStore } from '@bloom/files';
import type { Log } from '@bloom/log';
import type { Metrics } from '@bloom/metrics';
import type { RoomService } from '@bloom/rooms';
import { WhipService } from '@bloom/whip';
import express, { type ErrorRequestHandler, type Request, type RequestHandler, type Response } from 'express';
import { sendAnswer } from './answers.js';
import { bearerToken, createAuthenticator, createPeerAuthenticator } from './auth.js';
import type { ClusterView } from './cluster-operations.js';
import { directRoute } from './direct-route.js';
import { serveDocsPage } from './docs-page.js';
import { HttpError, toHttpError } from './errors.js';
import { fishjamView, isFishjamClient, refuseUnsupported } from './fishjam-client.js';
import { createOpenApiDocument, type OpenApiDocument } from './openapi.js';
import type { Operation, SdpType } from './operation.js';
import { createOperations, type NodeControl } from './operations.js';
import type { PublicTokenRule } from './public-token.js';
import { MAX_BODY_BYTES, MAX_SDP_BYTES, type Route, ROUTES } from './routes.js';
import type { HealthReport } from './schemas/service.js';
import { type OnStep, requestIdIn, reportSteps } from './steps.js';
import { noLiveStreams } from './stream-request.js';
import { cors, pathOf, requestLog, sendJson, trafficCount } from './transport.js';

/** Serves other paths, such as the dashboard page; calls `next` for paths it does not serve. */
export type Fallback = (request: IncomingMessage, response: ServerResponse, next: () => void) => void;

export interface HttpApiOptions {
  rooms: RoomService;
  recordings: RecordingStore;
  /** Default: no streams. */
  streams?: LiveStreams;
  health: () => HealthReport | Promise<HealthReport>;
  node: NodeControl;
  cluster: ClusterView;
  log: Log;
  metrics: Pick<Metrics, 'httpReceived' | 'httpSent'> & { quality: Pick<Metrics['quality'], 'httpRoute'> };
  settings: {
    /** `JF_SERVER_API_TOKEN` */
    apiToken: string;
    /** Who may use the token while it is the public default. If absent, everybody may. */
    publicToken?: PublicTokenRule;
    /** `JF_PUBLIC_MEDIA_FILES` */
    publicMediaFiles: boolean;
    /** Serves `/openapi.json` and `/docs`, without a token. */
    describe: boolean;
    /** Version of Bloom, semver. */
    version: string;
  };
  /** `JF_HOST` */
  publicHost: string;
  fallback?: Fallback;
  /** Called for requests that act on a room. */
  onStep?: OnStep;
}

/** The connection of a request, as its listener sees it. */
export interface RequestClient {
  /** Records that the request has shown a valid token. */
  authenticated(): void;
  /** Counts a request that needs no token. Returns false if there are too many. */
  admit(): boolean;
}

/** A listener for `http.createServer`; nothing is counted without `client`. */
export type HttpApi = (request: IncomingMessage, response: ServerResponse, client?: RequestClient) => void;

/**
 * Creates the HTTP API (docs/reference/http-api.md). Requests pass through the handlers in the order of the calls
 * below.
 */
export function createHttpApi(options: HttpApiOptions): HttpApi {
  const { settings, metrics, log, fallback } = options;
  const app = express();
  const authenticate = createAuthenticator(settings.apiToken, settings.publicToken);
  const whip = new WhipService(options.rooms);
  const authenticatePeer = createPeerAuthenticator((token) => whip.peerOf(token));
  const operations = createOperations({
    ...options,
    streams: options.streams ?? noLiveStreams,
    whip,
  });

  app.disable('x-powered-by');
  app.disable('etag');
  app.enable('case sensitive routing');

  const always = [trafficCount(metrics), requestLog(log), cors];
  const stepsOf = (route: Route): RequestHandler[] => {
    const open = route.auth === 'none' || (route.auth === 'file' && settings.publicMediaFiles);

    return [
      open ? admit : guard(route.auth === 'peer' ? authenticatePeer : authenticate),
      ...(route.textBody === undefined ? [] : [parseText(route.textBody)]),
      ...(route.body !== undefined ? [parseBody] : []),
      run(route, operations[route.id], options),
    ];
  };

  app.use(...always);
  for (const route of ROUTES) app[route.method](route.path, ...stepsOf(route));
  for (const path of SESSION_PATHS) app.all(path, wrongMethod(path));
  app.get('/validate', forFishjamOnly, guard(authenticate), (_request, response) => void response.sendStatus(200));
  if (settings.describe) serveDescription(app, settings);
  if (fallback !== undefined) app.use(admit, fallback);

  app.use(unknownRoute);
  app.use(failure(log));

  const streams = ROUTES.find(({ id }) => id === 'get_hls_content')!;
  const isOfStream = directRoute({
    method: 'GET',
    path: /^\/hls\/([^/]+)\/([^/]+)\/?$/,
    parameters: ['room_id', 'filename'],
    steps: [...always, ...stepsOf(streams)],
    failure: failure(log),
  });

  return (request, response, client) => {
    if (client !== undefined) CLIENTS.set(request, client);
    if (!isOfStream(request, response)) app(request, response);
  };
}

const CLIENTS = new WeakMap<IncomingMessage, RequestClient>();

/** Admits a limited number of requests that need no token. */
const admit: RequestHandler = (request, _response, next) => {
  if (CLIENTS.get(request)?.admit() === false) throw new HttpError(503, 'Too many requests without a token');
  next();
};

function guard(authenticate: (request: IncomingMessage, response: ServerResponse) => void): RequestHandler {
  return (request, response, next) => {
    authenticate(request, response);
    CLIENTS.get(request)?.authenticated();
    next();
  };
}

const JSON_TYPE = 'application/json';
/** Charsets that clients name on purpose: the body really uses them, and the parser can read it. */
const WIDE_CHARSET = /;\s*charset="?utf-(?:16|32)/i;
const parseJson = express.json({ limit: MAX_BODY_BYTES, strict: false, type: JSON_TYPE });

/** Parses JSON bodies; bodies of other types are ignored. */
const parseBody: RequestHandler = (request, response, next) => {
  // JSON is UTF-8 (RFC 8259, section 8.1) whatever charset a client adds out of habit; the parser would refuse most
  // charsets.
  const type = request.headers['content-type'] ?? '';
  if (!WIDE_CHARSET.test(type) && request.is(JSON_TYPE) === JSON_TYPE) request.headers['content-type'] = JSON_TYPE;
  parseJson(request, response, (error?: unknown) => {
    if (error === undefined) next();
    else if (statusOf(error) === 413) next(new HttpError(413, `Request body exceeds ${MAX_BODY_BYTES} bytes`));
    else next(new HttpError(400, 'Request body is not valid JSON'));
  });
};

/** Reads a body of this type and refuses others. */
function parseText(type: SdpType): RequestHandler {
  const read = express.text({ limit: MAX_SDP_BYTES, type, defaultCharset: 'utf-8' });

  return (request, response, next) => {
    if (request.is(type) !== type) throw new HttpError(415, `The content type has to be ${type}`);
    read(request, response, (error?: unknown) => {
      if (error === undefined) next();
      else if (statusOf(error) === 413) next(new HttpError(413, `Request body exceeds ${MAX_SDP_BYTES} bytes`));
      else next(new HttpError(400, 'Request body cannot be read'));
    });
  };
}

const SESSION_PATHS = [...new Set(ROUTES.filter(({ auth }) => auth === 'peer').map(({ path }) => path))];

/**
 * Answers methods that a WHIP or WHEP resource does not have (RFC 9725 section 4.1); the rest of the API answers 404.
 */
function wrongMethod(path: string): RequestHandler {
  const allowed = ROUTES.filter((route) => route.path === path).map(({ method }) => method.toUpperCase());

  return (request, response) => {
    response.setHeader('allow', [...allowed, 'OPTIONS'].join(', '));
    throw new HttpError(405, `${request.method} is not allowed here`);
  };
}

function run(route: Route, operation: Operation, { onStep, metrics }: HttpApiOptions): RequestHandler {
  const measure = metrics.quality.httpRoute(route.id);

  return async (request, response) => {
    const startedAt = performance.now();
    if (onStep !== undefined) reportSteps(route, request, response, onStep);
    const gone = new AbortController();
    response.once('close', () => {
      if (!response.writableFinished) gone.abort();
      measure((performance.now() - startedAt) / 1_000);
    });

    const body = route.body === undefined ? {} : objectOf(request.body);
    const isFishjam = isFishjamClient(request);
    if (isFishjam) refuseUnsupported(route.id, body);
    const answer = await operation({
      params: pathParameters(request),
      query: new URLSearchParams(request.url.split('?').slice(1).join('?')),
      body,
      signal: gone.signal,
      requestId: requestIdIn(response),
      secure: isSecure(request),
      token: route.auth === 'peer' ? bearerToken(request) : '',
      text: typeof request.body === 'string' ? request.body : '',
      ifMatch: request.headers['if-match'],
    });
    const isJson = isFishjam && 'json' in answer;
    await sendAnswer(request, response, isJson ? { ...answer, json: fishjamView(route.id, answer.json) } : answer);
  };
}

/** Returns whether this listener uses TLS, or a proxy reports that it does. */
function isSecure({ socket, headers }: IncomingMessage): boolean {
  if ('encrypted' in socket) return true;
  const forwarded = headers['x-forwarded-proto'];

  return typeof forwarded === 'string' && forwarded.split(',', 1)[0]?.trim().toLowerCase() === 'https';
}

function pathParameters(request: Request): Record<string, string> {
  const parameters: Record<string, string> = {};
  for (const [name, value] of Object.entries(request.params)) if (typeof value === 'string') parameters[name] = value;

  return parameters;
}

/** @throws HttpError 400 for an array, which no SDK sends or uses to mean "no parameters" */
function objectOf(body: unknown): Readonly<Record<string, unknown>> {
  if (Array.isArray(body)) throw new HttpError(400, 'Invalid request body structure');

  return typeof body === 'object' && body !== null ? (body as Record<string, unknown>) : {};
}

function serveDescription(app: express.Express, settings: HttpApiOptions['settings']): void {
  // Built on the first request, because it takes a cold process 0.1 s.
  let document: OpenApiDocument | undefined;

  app.get('/openapi.json', (_request, response) => {
    document ??= createOpenApiDocument(settings);
    sendJson(response, 200, document);
  });
  serveDocsPage(app);
}

/** Leaves the route to Fishjam clients, which use it to check their token. */
const forFishjamOnly: RequestHandler = (request, _response, next) =>
  next(isFishjamClient(request) ? undefined : 'route');

/** Answers unknown routes, and known paths with another method: never 405. */
const unknownRoute: RequestHandler = (_request, response) => {
  sendJson(response, 404, { errors: { detail: 'Not Found' } });
};

function statusOf(error: unknown): number | undefined {
  const status: unknown = typeof error === 'object' && error !== null && 'status' in error ? error.status : undefined;

  return typeof status === 'number' ? status : undefined;
}

function failure(log: Log): ErrorRequestHandler {
  return (error: unknown, request: Request, response: Response, _next) => {
    const requestLog = (response.locals['log'] as Log | undefined) ?? log;

    if (response.headersSent || response.destroyed) {
      // The response was interrupted, usually because the client disconnected.
      requestLog.debug('http.answer_broken', { path: pathOf(request), error });
      response.destroy();
      return;
    }

    const known = toHttpError(error) ?? clientError(error);
    if (known !== undefined) {
      sendJson(response, known.status, { errors: known.message });
      return;
    }

    requestLog.error('http.failed', { method: request.method, path: pathOf(request), error });
    sendJson(response, 500, { errors: { detail: 'Internal Server Error' } });
  };
}

/** Translates express errors, such as a path that cannot be decoded. */
function clientError(error: unknown): HttpError | undefined {
  const status = statusOf(error);

  return status !== undefined && status >= 400 && status < 500 ? new HttpError(400, 'Bad Request') : undefined;
}
