import { LeaveRequest_Action, DisconnectReason, SignalResponse } from '@livekit/protocol';
import type { Log } from '@bloom/log';
import type { AttachedPeer, PeerSocket, RoomService, SocketEnd } from '@bloom/rooms';
import { type Clock, Timer } from '@bloom/time';
import { LivekitError } from '../errors.js';
import { type Claims, grantsAtLeast } from '../grants.js';
import { sidOf } from '../names.js';
import { leave } from '../session/responses.js';
import { type JoinMessage, type Leaving, readFromSession, toSession } from '../session/session-message.js';
import type { Tokens } from '../tokens.js';

/** How long the room has to answer a join; less than clients wait for it. */
const JOIN_TIMEOUT_MS = 4_000;
/**
 * How long a participant stays after its websocket was lost, once its media has been connected. Browsers retry for 50
 * s.
 */
const AWAY_MS = 60_000;
const REFRESH_MS = 5 * 60_000;
/** Minimum lifetime of a refreshed token, seconds. */
const REFRESHED_TTL_S = 10 * 60;
/** Close reason with which a room ends. */
const ROOM_STOPPED = 'Room stopped';
/** Close code with which a room ends because its node stops. */
const GOING_AWAY = 1001;
/** Close code with which a room goes on at another node. */
const ROOM_MOVED = 1012;
/** Close reason for a participant that has resumed through another node. */
const RESUMED = 'Resumed elsewhere';

/** A websocket of the client. */
export interface ClientSocket {
  /** Sends a frame: binary SignalResponse. */
  send(bytes: Uint8Array): void;
  /** Closes the websocket without notifying the participation. Idempotent. */
  close(code?: number): void;
}

export interface ParticipationOptions {
  rooms: RoomService;
  tokens: Tokens;
  log: Log;
  clock: Clock;
  claims: Claims;
  roomId: string;
  peerId: string;
  onEnd: (participation: Participation) => void;
}

/**
 * A participant on the node that accepted its join: passes frames between its websocket and its session, and outlives
 * the websocket for a while, so that the client can resume.
 */
export class Participation implements PeerSocket {
  readonly sid: string;
  readonly #options: ParticipationOptions;
  #peer: AttachedPeer | undefined;
  #socket: ClientSocket | undefined;
  /** Frames for a client that has no websocket yet; undefined once it has had one. */
  #early: Uint8Array[] | undefined = [];
  #onJoined: ((error?: LivekitError) => void) | undefined;
  #isConnected = false;
  /** The next websocket is the first one at this node of a client that had others elsewhere. */
  #isFromElsewhere = false;
  #ended = false;
  /** The claims of the next token. */
  #claims: Claims;
  readonly #away: Timer;
  readonly #refresh: Timer;

  constructor(options: ParticipationOptions) {
    this.#options = options;
    this.#claims = options.claims;
    this.sid = sidOf('PA', options.peerId);
    this.#away = new Timer(options.clock);
    this.#refresh = new Timer(options.clock);
  }

  /**
   * Returns true if somebody with these claims may take over: the same identity in the same room, by the same API key,
   * whose token grants all that the participant may do. The sid proves nothing, since the whole room is told it.
   */
  mayContinue({ roomId, claims }: { roomId: string; claims: Claims }): boolean {
    if (this.#ended || roomId !== this.#options.roomId) return false;
    const { iss, sub } = this.#claims;

    return claims.iss === iss && claims.sub === sub && grantsAtLeast(claims, this.#claims);
  }

  get ended(): boolean {
    return this.#ended;
  }

  /**
   * Joins the room as the peer with this token. Resolves once the room has answered.
   * @throws LivekitError UNAVAILABLE when it does not
   */
  async join(token: string, message: JoinMessage): Promise<void> {
    const timer = new Timer(this.#options.clock);
    try {
      const attached = await this.#options.rooms.attachPeer(token, this, 'livekit');
      if (typeof attached === 'string') throw new LivekitError('UNAVAILABLE', attached);
      this.#peer = attached;
      const joined = new Promise<void>((resolve, reject) => {
        this.#onJoined = (error) => (error === undefined ? resolve() : reject(error));
        timer.start(JOIN_TIMEOUT_MS, () => reject(new LivekitError('UNAVAILABLE', 'the room does not answer')));
      });
      attached.receive(toSession.join(message));
      await joined;
    } catch (error) {
      this.end('closed_by_server');
      throw error;
    } finally {
      timer.stop();
    }
  }

  /**
   * Takes the participant over from the node that had its last websocket, which has verified nothing of the new one:
   * its session checks the claims. Resolves with false if there is no such participant any more.
   */
  async takeOver(): Promise<boolean> {
    const { rooms, roomId, peerId } = this.#options;
    const attached = await rooms.resumePeer({ roomId, peerId }, this);
    if (typeof attached === 'string') return false;
    this.#peer = attached;
    this.#isConnected = true;
    this.#isFromElsewhere = true;
    this.#early = undefined;

    return true;
  }

  /** Gives the participant its websocket, or another one in place of a lost one. */
  bind(socket: ClientSocket): void {
    if (this.#ended) return socket.close();
    this.#away.stop();
    const former = this.#socket;
    this.#socket = socket;
    former?.close();
    const early = this.#early;
    this.#early = undefined;
    if (early === undefined) this.#peer?.receive(toSession.resume(this.#isFromElsewhere ? this.#claims : undefined));
    else for (const frame of early) socket.send(frame);
    // A client from elsewhere gets its token once its session has checked the last one.
    if (!this.#isFromElsewhere) this.#sendToken();
    this.#isFromElsewhere = false;
    this.#refresh.repeat(REFRESH_MS, () => this.#sendToken());
  }

  /** True while the participant has a websocket. */
  get isBound(): boolean {
    return this.#socket !== undefined;
  }

  /** Takes a frame of the client: binary SignalRequest. */
  receive(socket: ClientSocket, bytes: Uint8Array): void {
    if (socket === this.#socket) this.#peer?.receive(toSession.request(bytes));
  }

  /** Handles the loss of a websocket: the participant stays for a while, unless it has no media to keep. */
  lost(socket: ClientSocket): void {
    if (socket !== this.#socket || this.#ended) return;
    this.#socket = undefined;
    this.#refresh.stop();
    this.awaitReturn();
  }

  /** Lets the client without a websocket resume for a while, unless it has no media to keep. */
  awaitReturn(): void {
    if (!this.#isConnected) return this.end('connection_lost');
    this.#peer?.receive(toSession.away());
    this.#away.start(AWAY_MS, () => this.end('connection_lost'));
  }

  send(text: string): void {
    if (this.#ended) return undefined;
    const message = readFromSession(text);
    switch (message.type) {
      case 'frame':
        this.#onJoined?.();
        if (this.#early !== undefined) this.#early.push(message.bytes);
        else this.#socket?.send(message.bytes);
        return undefined;
      case 'connected':
        this.#isConnected = true;
        return undefined;
      case 'leave':
        this.#onJoined?.(new LivekitError('UNAVAILABLE', 'the participant was replaced'));
        return this.end(
          message.leaving.reason === DisconnectReason.CLIENT_INITIATED ? 'closed_by_client' : 'closed_by_server',
        );
      case 'grants': {
        const { grants, record } = message;
        const { name, metadata, attributes } = record;
        this.#claims = {
          ...this.#claims,
          name,
          metadata,
          attributes,
          video: { ...this.#claims.video, ...grants, canPublishSources: [...grants.canPublishSources] },
        };
        return this.#sendToken();
      }
      case 'unmuted': {
        const { rooms, roomId, peerId } = this.#options;
        const released = rooms.muteTrack(roomId, { peerId, trackId: message.trackId, muted: false });
        return void released.catch((error: unknown) => this.#failed(error));
      }
      case 'record': {
        const { rooms, roomId, peerId } = this.#options;
        return void rooms
          .updatePeer(roomId, peerId, { fields: message.fields })
          .catch((error: unknown) => this.#failed(error));
      }
    }
  }

  /** Handles the end of the peer, which the room decides. */
  close(code: number, reason: string): void {
    this.#onJoined?.(new LivekitError('UNAVAILABLE', reason));
    if (this.#ended) return;
    if (reason === RESUMED) return this.#forget('closed_by_server');
    if (code === ROOM_MOVED) {
      // Its peer is expected there.
      this.#tell({ reason: DisconnectReason.MIGRATION, action: LeaveRequest_Action.RECONNECT });
      return this.#forget('closed_by_server');
    }
    if (code === GOING_AWAY)
      this.#tell({ reason: DisconnectReason.SERVER_SHUTDOWN, action: LeaveRequest_Action.RECONNECT });
    else if (code !== 1000) this.#tell({ reason: DisconnectReason.MIGRATION, action: LeaveRequest_Action.RECONNECT });
    else if (reason === ROOM_STOPPED)
      this.#tell({ reason: DisconnectReason.ROOM_DELETED, action: LeaveRequest_Action.DISCONNECT });
    else this.#tell({ reason: DisconnectReason.PARTICIPANT_REMOVED, action: LeaveRequest_Action.DISCONNECT });
    this.end('closed_by_server');
  }

  async ping(): Promise<boolean> {
    return !this.#ended;
  }

  /** Ends the participation and removes the peer. Idempotent. */
  end(end: SocketEnd): void {
    if (this.#ended) return;
    this.#forget(end);
    const { rooms, roomId, peerId } = this.#options;
    // The room may have removed it, or be gone with its node.
    rooms.removePeer(roomId, peerId).catch(() => undefined);
  }

  /** Gives up a participation that has taken nobody over. */
  drop(): void {
    this.#forget('closed_by_server');
  }

  /** Ends the participation at this node only. */
  #forget(end: SocketEnd): void {
    this.#stop();
    this.#peer?.detach(end);
    this.#options.onEnd(this);
  }

  #stop(code?: number): void {
    this.#ended = true;
    this.#early = undefined;
    this.#away.stop();
    this.#refresh.stop();
    this.#socket?.close(code);
  }

  /** The node closes: its clients start over elsewhere, or resume there if their room goes on at another node. */
  shutDown(): void {
    if (this.#ended) return;
    if (this.#peer?.handOver !== undefined && this.#isConnected) {
      this.#stop(GOING_AWAY);
      this.#peer.handOver();
      return this.#options.onEnd(this);
    }
    this.#tell({ reason: DisconnectReason.SERVER_SHUTDOWN, action: LeaveRequest_Action.RECONNECT });
    this.end('closed_by_server');
  }

  #tell({ reason, action }: Leaving): void {
    this.#socket?.send(new SignalResponse({ message: leave(reason, action) }).toBinary());
  }

  /** Sends a token with the current grants, with which the client reconnects. */
  #sendToken(): void {
    const { tokens, clock } = this.#options;
    const { iss, exp, ...claims } = this.#claims;
    const ttlS = Math.max(REFRESHED_TTL_S, Math.floor(exp - clock.wall() / 1_000));
    tokens.sign(iss, claims, ttlS).then(
      (value) => this.#socket?.send(new SignalResponse({ message: { case: 'refreshToken', value } }).toBinary()),
      (error: unknown) => this.#failed(error),
    );
  }

  #failed(error: unknown): void {
    this.#options.log.warn('livekit.call_failed', {
      roomId: this.#options.roomId,
      peerId: this.#options.peerId,
      error,
    });
  }
}
