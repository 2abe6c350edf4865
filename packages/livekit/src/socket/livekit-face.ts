import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { DisconnectReason, LeaveRequest_Action, SignalResponse } from '@livekit/protocol';
import type { Log } from '@bloom/log';
import { gatheredWrites, networkOf, type Upgrade } from '@bloom/net';
import type { RoomService } from '@bloom/rooms';
import { Allowances, awakeClock, type Clock, LogThrottle, spread, Timer } from '@bloom/time';
import { WebSocketServer } from 'ws';
import { createRoomService, type RoomServiceDefaults } from '../api/room-calls.js';
import { Twirp } from '../api/twirp.js';
import { LivekitError, type LivekitErrorCode } from '../errors.js';
import { textOf, uint32Of } from '../json-text.js';
import { roomSid } from '../names.js';
import { leave } from '../session/responses.js';
import { type ApiKey, Tokens } from '../tokens.js';
import { Admission, type Applicant, applicant, claimedNames, type RoomDefaults, toLivekitError } from './admission.js';
import { readJoinParameters, readJoinRequest, requestsWith } from './join-request.js';
import { type ClientSocket, Participation } from './participation.js';
import { SignalSocket } from './signal-socket.js';
import { isSignalPath, type Target, targetOf } from './target.js';

/** The largest frame is the state of a resumed session: two SDPs of 256 KiB, whose ends of lines text escapes. */
const MAX_FRAME_BYTES = 2 * 1024 * 1024;
/** Joins of one identity in one room, those that resume and requests that validate included. */
const JOINS = { burst: 5, perSecond: 5 };
/** How long a client has to close a refused connection. */
const LINGER_MS = 1_000;

/** Services that this server does not offer, with the reason that its clients are given. */
const UNAVAILABLE = {
  Egress: 'egress is not available on this server',
  Ingress: 'ingress is not available on this server',
  SIP: 'the SIP API is not available on this server',
  AgentDispatchService: 'agents are not available on this server',
  Connector: 'connectors are not available on this server',
};

const STATUS: Record<LivekitErrorCode, number> = {
  UNAUTHENTICATED: 401,
  INVALID: 400,
  NOT_FOUND: 404,
  REFUSED: 403,
  UNAVAILABLE: 503,
  PRECONDITION: 412,
  EXHAUSTED: 429,
  UNIMPLEMENTED: 501,
  BAD_ROUTE: 404,
  INTERNAL: 500,
};

export interface LivekitFaceOptions {
  rooms: RoomService;
  keys: readonly ApiKey[];
  defaults: RoomDefaults & RoomServiceDefaults;
  log: Log;
  /** Name of this node, shown to clients. */
  nodeId: string;
  /** Release of Bloom. */
  release: string;
  clock?: Clock;
}

/** LiveKit's signalling on the listener of a node. */
export class LivekitFace {
  readonly #options: LivekitFaceOptions;
  readonly #clock: Clock;
  readonly #tokens: Tokens;
  readonly #admission: Admission;
  readonly #sockets = new WebSocketServer({ noServer: true, maxPayload: MAX_FRAME_BYTES, perMessageDeflate: false });
  readonly #participations = new Map<string, Participation>();
  readonly #joins: Allowances;
  readonly #throttle: LogThrottle;
  readonly #twirp: Twirp;
  #closing = false;

  constructor(options: LivekitFaceOptions) {
    this.#options = options;
    this.#clock = options.clock ?? awakeClock;
    this.#joins = new Allowances(JOINS, this.#clock);
    this.#tokens = new Tokens(options.keys, this.#clock);
    this.#admission = new Admission(options.rooms, options.defaults, this.#clock);
    this.#throttle = new LogThrottle(options.clock);
    this.#twirp = new Twirp(
      { ...UNAVAILABLE, RoomService: createRoomService(options.rooms, options.defaults) },
      {
        authenticate: (request) => this.#tokens.verify(tokenOf(request, new URLSearchParams())),
        toError: toLivekitError,
      },
    );
  }

  /** Serves an upgrade for one of `SIGNAL_PATHS`; all refusals come before the websocket. */
  handleUpgrade(upgrade: Upgrade): boolean {
    const { request, socket, address } = upgrade;
    this.#open(upgrade).catch((error: unknown) => {
      const refusal = toLivekitError(error);
      this.#refused(refusal, address);
      this.#refuse(socket, refusal);
    });
    // The client may close while the room decides.
    request.socket.on('error', () => undefined);

    return true;
  }

  /** Serves a request for a path of this face; returns false for other paths. */
  handle(request: IncomingMessage, response: ServerResponse, address: string): boolean {
    const target = targetOf(request.url ?? '');
    const { pathname } = target;
    if (pathname.startsWith('/twirp/')) {
      const refused = (error: LivekitError): void => this.#refused(error, address);
      this.#twirp.serve(request, response, { pathname, refused }).catch(() => response.destroy());
      return true;
    }
    if (!isSignalPath(pathname)) return false;
    if (request.method === 'OPTIONS') {
      respond(response, 204, '');
      return true;
    }
    this.#applicant(request, target)
      .then((who) => {
        this.#assertOpen();
        return this.#admission.check(who);
      })
      .then(() => respond(response, 200, 'success'))
      .catch((error: unknown) => {
        const refusal = toLivekitError(error);
        this.#refused(refusal, address);
        respond(response, STATUS[refusal.code], refusal.message);
      });

    return true;
  }

  /**
   * Lets a client with this URL join without a websocket, and passes it what it would be sent.
   * @throws LivekitError
   */
  async joinWithout(url: string, client: ClientSocket): Promise<void> {
    const target = targetOf(url);
    const participation = await this.#join(await this.#applicant({ headers: {} }, target), target);
    participation.bind(client);
  }

  /** Tells all clients, one after the other, to start over elsewhere, and ends their participations. */
  async close(): Promise<void> {
    this.#closing = true;
    await spread([...this.#participations.values()], (participation) => participation.shutDown(), this.#clock);
    // Those whose join was under way.
    for (const participation of this.#participations.values()) participation.shutDown();
    this.#sockets.close();
  }

  async #applicant(request: Pick<IncomingMessage, 'headers'>, { searchParams, isOld }: Target): Promise<Applicant> {
    const claims = await this.#tokens.verify(tokenOf(request, searchParams));
    const { identity, roomName } = claimedNames(claims);
    // Decoding the request costs the most.
    this.#count(JSON.stringify([roomName, identity]));

    const join = isOld ? readJoinParameters(searchParams) : await readJoinRequest(searchParams.get('join_request'));

    return applicant(claims, join, this.#clock);
  }

  async #open(upgrade: Upgrade): Promise<void> {
    const target = targetOf(upgrade.request.url ?? '');
    const who = await this.#applicant(upgrade.request, target);
    if (who.join.reconnect) return this.#resume(who, upgrade);
    const participation = await this.#join(who, target);
    this.#accept(upgrade, participation);
    // The client is gone, or has sent an upgrade that ws refuses: nothing would ever end the participation.
    if (!participation.isBound) participation.end('connection_lost');

    return undefined;
  }

  async #join(who: Applicant, { isOld }: Target): Promise<Participation> {
    this.#assertOpen();
    const { room, createdAt, peerId, token, record } = await this.#admission.admit(who);
    const { nodeId, release } = this.#options;
    const participation = this.#participate(who, peerId);
    this.#participations.set(participation.sid, participation);
    const { metadata, maxPeers, peerlessPurgeTimeout } = room.config;
    await participation.join(token, {
      record,
      grants: who.grants,
      room: {
        sid: roomSid(who.roomId, createdAt),
        name: who.roomName,
        createdAt,
        metadata: textOf(metadata),
        maxParticipants: uint32Of(maxPeers ?? 0),
        departureTimeout: uint32Of(peerlessPurgeTimeout ?? 0),
      },
      protocol: who.join.clientInfo?.protocol ?? 0,
      autoSubscribe: who.join.connectionSettings?.autoSubscribe ?? true,
      ...(isOld ? { twoConnections: true } : {}),
      issuer: who.claims.iss,
      nodeId,
      release,
      requests: requestsWith(who.join),
    });

    return participation;
  }

  #participate({ claims, roomId }: Applicant, peerId: string): Participation {
    const { rooms, log } = this.#options;
    const participation: Participation = new Participation({
      rooms,
      tokens: this.#tokens,
      log,
      clock: this.#clock,
      claims,
      roomId,
      peerId,
      onEnd: ({ sid }) => {
        if (this.#participations.get(sid) === participation) this.#participations.delete(sid);
      },
    });

    return participation;
  }

  async #resume(who: Applicant, upgrade: Upgrade): Promise<void> {
    const known = this.#participations.get(who.join.participantSid);
    const participation = known ?? (await this.#takeOver(who));
    if (participation?.mayContinue(who) === true) {
      this.#accept(upgrade, participation);
      // The client has gone meanwhile.
      if (known === undefined && !participation.isBound) participation.awaitReturn();
      return undefined;
    }
    this.#sockets.handleUpgrade(upgrade.request, upgrade.socket, upgrade.head, (socket) => {
      const message = leave(DisconnectReason.STATE_MISMATCH, LeaveRequest_Action.RECONNECT);
      socket.on('error', () => undefined);
      socket.send(new SignalResponse({ message }).toBinary());
      socket.close(1000);
    });

    return undefined;
  }

  /** Returns a participant that had its last websocket at another node; undefined if there is none. */
  async #takeOver(who: Applicant): Promise<Participation | undefined> {
    this.#assertOpen();
    const peerId = await this.#admission.peerWith(who.join.participantSid, who);
    if (peerId === undefined) return undefined;
    const participation = this.#participate(who, peerId);
    const isTaken = await participation.takeOver().catch(() => false);
    if (!isTaken) {
      participation.drop();
      return undefined;
    }
    this.#participations.set(participation.sid, participation);
    // Nobody else would end it.
    if (this.#closing) participation.shutDown();

    return participation;
  }

  #accept({ request, socket, head }: Upgrade, participation: Participation): void {
    const { log } = this.#options;
    this.#sockets.handleUpgrade(request, socket, head, (accepted) =>
      new SignalSocket(accepted, participation, { log, clock: this.#clock, write: gatheredWrites(socket) }).open(),
    );
  }

  /** @throws LivekitError UNAVAILABLE when the node closes */
  #assertOpen(): void {
    if (this.#closing) throw new LivekitError('UNAVAILABLE', 'the node shuts down');
  }

  /** @throws LivekitError EXHAUSTED when the identity joins too often */
  #count(identity: string): void {
    if (!this.#joins.take(identity)) throw new LivekitError('EXHAUSTED', 'too many joins of this identity');
  }

  /** Answers an upgrade with a refusal, whose text native clients show. */
  #refuse(socket: Duplex, { code, message }: LivekitError): void {
    const status = STATUS[code];
    const lines = [
      `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
      ...Object.entries(HEADERS).map(([name, value]) => `${name}: ${value}`),
      `content-length: ${Buffer.byteLength(message)}`,
      'connection: close',
    ];
    socket.end(`${lines.join('\r\n')}\r\n\r\n${message}`);
    const overdue = new Timer(this.#clock);
    overdue.start(LINGER_MS, () => socket.destroy());
    socket.once('close', () => overdue.stop()).resume();
  }

  /** Logs refusals at a limited rate: any stranger can cause them as often as they like. */
  #refused(refusal: LivekitError, address: string): void {
    const { code, message, cause } = refusal;
    if (!this.#throttle.allows(`${code} ${networkOf(address)}`)) return;
    if (code === 'INTERNAL') this.#options.log.error('livekit.failed', { error: cause });
    else this.#options.log.info('livekit.refused', { code, reason: message });
  }
}

/** @throws LivekitError UNAUTHENTICATED without a token */
function tokenOf({ headers }: Pick<IncomingMessage, 'headers'>, parameters: URLSearchParams): string {
  const { authorization } = headers;
  const token =
    authorization === undefined ? parameters.get('access_token') : /^Bearer +(\S+)$/i.exec(authorization)?.[1];
  if (authorization !== undefined && token === undefined) {
    throw new LivekitError('UNAUTHENTICATED', 'the header Authorization has no bearer token');
  }
  if (token === null || token === undefined || token === '') {
    throw new LivekitError('UNAUTHENTICATED', 'permissions denied');
  }

  return token;
}

const HEADERS = {
  'access-control-allow-origin': '*',
  'access-control-allow-headers': 'authorization, content-type',
  'content-type': 'text/plain; charset=utf-8',
};

function respond(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, HEADERS).end(text);
}
