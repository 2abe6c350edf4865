import type { IncomingMessage, ServerResponse } from 'node:http';
import type { LiveStreams, RawRecordingStore, RecordingStore } from '@bloom/files';
import type { Log } from '@bloom/log';
import type { Metrics } from '@bloom/metrics';
import { networkOf } from '@bloom/net';
import type { Passes, PathChecks, RoomService } from '@bloom/rooms';
import type { Clock } from '@bloom/time';
import { WhipService } from '@bloom/whip';
import express, { type ErrorRequestHandler, type Request, type RequestHandler, type Response } from 'express';
import { sendAnswer } from './answers.js';
import { bearerToken, createAuthenticator, createPeerAuthenticator } from './auth.js';
import { BodyBudget } from './body-budget.js';
import type { ClusterView } from './cluster-operations.js';
import { directRoute } from './direct-route.js';
import { serveDocsPage } from './docs-page.js';
import { HttpError, toHttpError } from './errors.js';
import { FileAccess, type WantedFile } from './file-access.js';
import { fishjamView, isFishjamClient, mendFishjamPath, refuseUnsupported } from './fishjam-client.js';
import { CheckAccess, roomOfCheck } from './check-access.js';
import { Invitations } from './invitations.js';
import { createOpenApiDocument, type OpenApiDocument } from './openapi.js';
import type { Operation, SdpType } from './operation.js';
import { createOperations, type NodeControl } from './operations.js';
import { takePathToken } from './path-token.js';
import type { PublicTokenRule } from './public-token.js';
import { MAX_BODY_BYTES, MAX_SDP_BYTES, type Route, ROUTES } from './routes.js';
import type { HealthReport } from './schemas/service.js';
import { type OnStep, requestIdIn, reportSteps } from './steps.js';
import { noLiveStreams } from './stream-request.js';
import { cors, pathOf, requestLog, sendJson, trafficCount } from './transport.js';
import { nameUnknownFields } from './unknown-fields.js';
import { relayHeaders } from './whip-operations.js';

/** Serves other paths, such as the dashboard page; calls `next` for paths it does not serve. */
export type Fallback = RequestHandler;

export interface HttpApiOptions {
  rooms: RoomService;
  passes: Passes;
  recordings: RecordingStore;
  /** Recordings of tracks. */
  rawRecordings: RawRecordingStore;
  /** Default: no streams. */
  streams?: LiveStreams;
  /** If absent, nobody can check the ways to this node. */
  checks?: Pick<PathChecks, 'open'>;
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
    /** Restricts use of the token while it is the public default. If absent, everybody may use it. */
    publicMediaFiles: boolean;
    /** Serves `/openapi.json` and `/docs`, without a token. */
    describe: boolean;
    /** Logs unknown fields of bodies as warnings. Default: at debug level. */
    warnOfUnknownFields?: boolean;
    /** Version of Bloom, semver. */
    version: string;
  };
  /** `JF_HOST` */
  publicHost: string;
  fallback?: Fallback;
  /** Whether `fallback` serves the page for guests. Default false. */
  guestPage?: boolean;
  clock?: Clock;
  /** Called for requests that act on a room. */
  onStep?: OnStep;
}

/** The connection of a request, as its listener sees it. */
export interface RequestClient {
  /** Records that the request has shown a valid token. */
  authenticated(): void;
  /** Returns the client's network, which limits count by. */
  network(): string;
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
  const { warnOfUnknownFields = false } = settings;
  const app = express();
  const authenticate = createAuthenticator(settings.apiToken, settings.publicToken);
  const whip = new WhipService(options.rooms);
  const authenticatePeer = createPeerAuthenticator((token) => whip.peerOf(token));
  const access = new FileAccess({ ...options, authenticate });
  const checkAccess = new CheckAccess({ ...options, authenticate });
  const operations = createOperations({
    ...options,
    invitations: new Invitations(options),
    guestPage: options.guestPage ?? false,
    streams: options.streams ?? noLiveStreams,
    checks: options.checks ?? { open: () => Promise.resolve(undefined) },
    whip,
  });

  app.disable('x-powered-by');
  app.disable('etag');
  app.enable('case sensitive routing');

  const bodies = new BodyBudget();
  const boundBodies =
    (limit: number): RequestHandler =>
    (request, response, next) => {
      bodies.admit(request, response, limit);
      next();
    };
  const always = [trafficCount(metrics), requestLog(log), cors];
  const stepsOf = (route: Route): RequestHandler[] => {
    const authenticators = {
      token: authenticate,
      peer: authenticatePeer,
      check: (request: IncomingMessage) => checkAccess.authenticate(request),
      none: () => undefined,
    };
    const maxBodyBytes = route.maxBodyBytes ?? MAX_BODY_BYTES;
    const open = route.auth === 'none' || (route.auth === 'file' && settings.publicMediaFiles);

    return [
      open ? admit : route.auth === 'file' ? guardFile(route, access) : guard(authenticators[route.auth]),
      ...(route.textBody === undefined ? [] : [parseText(route.textBody)]),
      ...(route.body !== undefined
        ? [
            boundBodies(maxBodyBytes),
            bodyParser(maxBodyBytes),
            nameUnknownFields(route, { warn: warnOfUnknownFields, log }),
          ]
        : []),
      run(route, operations[route.id], options),
    ];
  };

  app.use(trafficCount(metrics), requestLog(log));
  app.options(['/whip', '/whep'], nameRelay(whip, authenticatePeer));
  app.use(cors);
  for (const route of ROUTES) app[route.method](route.path, ...stepsOf(route));
  for (const path of SESSION_PATHS) app.all(path, wrongMethod(path));
  app.get('/validate', forFishjamOnly, guard(authenticate), (_request, response) => void response.sendStatus(200));
  if (settings.describe) serveDescription(app, settings);
  if (fallback !== undefined) app.use(admit, fallback);
  app.get('/', tellBrowser);

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
    mendFishjamPath(request);
    takePathToken(request);
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

/** Admits requests for the files of a stream or a recording. */
function guardFile({ id }: Route, access: FileAccess): RequestHandler {
  const wanted = (request: Request, response: Response): WantedFile => {
    const { params } = request;
    const network = networkOfClient(request);

    return id === 'get_hls_content'
      ? { kind: 'stream', network, roomId: String(params['room_id']) }
      : { kind: 'recording', network, recordingId: String(params['recording_id']), signal: abortedWith(response) };
  };

  return async (request, response, next) => {
    await access.authenticate(request, response, wanted(request, response));
    CLIENTS.get(request)?.authenticated();
    next();
  };
}

/** Returns a signal that aborts when the client disconnects before the end of the response. */
function abortedWith(response: ServerResponse): AbortSignal {
  const gone = new AbortController();
  response.once('close', () => {
    if (!response.writableFinished) gone.abort();
  });

  return gone.signal;
}

const JSON_TYPE = 'application/json';
/** Charsets that clients name on purpose: the body really uses them, and the parser can read it. */
const WIDE_CHARSET = /;\s*charset="?utf-(?:16|32)/i;

/** Returns a step that parses JSON bodies; bodies of other types are ignored. */
function bodyParser(limit: number): RequestHandler {
  const parseJson = express.json({ limit, strict: false, type: JSON_TYPE });

  return (request, response, next) => {
    // JSON is UTF-8 (RFC 8259, section 8.1) whatever charset a client adds out of habit; the parser would refuse most
    // charsets.
    const type = request.headers['content-type'] ?? '';
    if (!WIDE_CHARSET.test(type) && request.is(JSON_TYPE) === JSON_TYPE) request.headers['content-type'] = JSON_TYPE;
    parseJson(request, response, (error?: unknown) => {
      if (error === undefined) next();
      else if (statusOf(error) === 413) next(new HttpError(413, `Request body exceeds ${limit} bytes`));
      else next(new HttpError(400, 'Request body is not valid JSON'));
    });
  };
}

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

/** Adds the relay to the answer to `OPTIONS` for a peer's valid token; without one it stays a plain preflight. */
function nameRelay(whip: WhipService, authenticate: ReturnType<typeof createPeerAuthenticator>): RequestHandler {
  return async (request, response, next) => {
    let token: string;
    try {
      authenticate(request, response);
      token = bearerToken(request);
    } catch (error) {
      if (toHttpError(error) === undefined) throw error;
      next();
      return;
    }
    CLIENTS.get(request)?.authenticated();
    const headers = await relayHeaders(whip, { token, requestId: requestIdIn(response) });
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
    next();
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

function run(route: Route, operation: Operation, { rooms, onStep, metrics }: HttpApiOptions): RequestHandler {
  const measure = metrics.quality.httpRoute(route.id);

  return async (request, response) => {
    const startedAt = performance.now();
    if (onStep !== undefined) reportSteps(route, { request, response, onStep });
    const signal = abortedWith(response);
    response.once('close', () => measure((performance.now() - startedAt) / 1_000));

    const body = route.body === undefined ? {} : objectOf(request.body);
    const isFishjam = isFishjamClient(request);
    if (isFishjam) refuseUnsupported(route.id, body);
    const requestId = requestIdIn(response);
    const answer = await operation({
      params: pathParameters(request),
      query: new URLSearchParams(request.url.split('?').slice(1).join('?')),
      body,
      signal,
      rooms: rooms.forRequest(requestId),
      requestId,
      secure: isSecure(request),
      network: () => networkOfClient(request),
      checkRoom: roomOfCheck(request),
      token: route.auth === 'peer' ? bearerToken(request) : '',
      text: typeof request.body === 'string' ? request.body : '',
      ifMatch: request.headers['if-match'],
    });
    const isJson = isFishjam && 'json' in answer;
    await sendAnswer(request, response, isJson ? { ...answer, json: fishjamView(route.id, answer.json) } : answer);
  };
}

/** Returns the client's network, behind trusted proxies too. */
function networkOfClient(request: IncomingMessage): string {
  return CLIENTS.get(request)?.network() ?? networkOf(request.socket.remoteAddress ?? '');
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

/** Tells people why a node without a page has none. Programs get the JSON of an unknown route, as before. */
const tellBrowser: RequestHandler = (request, response, next) => {
  response.vary('Accept');
  if (request.accepts(['json', 'html']) === 'html') response.status(404).type('text/plain').send(NO_PAGE);
  else next();
};

const NO_PAGE = `This is a Bloom media server. It shows no page here: its dashboard is off.
The operator turns it on with JF_DASHBOARD=true, and restarts the server.
`;

/** Answers unknown routes, and known paths with another method: never 405. */
const unknownRoute: RequestHandler = (_request, response) => {
  sendJson(response, 404, { errors: { detail: 'Not Found' } });
};

function statusOf(error: unknown): number | undefined {
  const status: unknown = typeof error === 'object' && error !== null && 'status' in error ? error.status : undefined;

  return typeof status === 'number' ? status : undefined;
}

function failure(log: Log): ErrorRequestHandler {
  // express recognises an error handler by its four parameters.
  // oxlint-disable-next-line max-params
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
