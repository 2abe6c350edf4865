import { ActorError, type ActorSystem } from '@bloom/actors';
import { Timer, type Clock } from '@bloom/time';
import { done, refusals, refused, type Outcome } from '../outcome.js';
import type { AttachedPeer, PeerSocket, SessionAddress, SocketEnd } from '../room-service.js';
import type { RoomRef } from './room-messages.js';
import { attachSocket } from '../peer/attach.js';
import type { AttachedSockets } from '../peer/attached-sockets.js';

/** How long a session has to answer a request; shorter than callers wait for the room. */
const ANSWER_TIMEOUT_MS = 3_000;
/** How long the room has to attach a session. */
const ATTACH_TIMEOUT_MS = 3_000;

export interface RequestSessionsOptions {
  system: ActorSystem;
  clock: Clock;
  /** Holds the sessions' actors while they live. */
  sockets: AttachedSockets;
}

/**
 * Sessions of clients that send requests instead of holding a websocket (WHIP and WHEP). They run on the node of their
 * room, so a node that only forwards their requests may stop without ending them.
 */
export class RequestSessions {
  readonly #options: RequestSessionsOptions;
  readonly #sessions = new Map<string, RequestSession>();

  constructor(options: RequestSessionsOptions) {
    this.#options = options;
  }

  /**
   * Connects a peer with its first request and returns the answer. Ends the session that the peer already has, even
   * while it is being opened: a client that has crashed or given up must be able to start over immediately.
   */
  async open(
    room: RoomRef,
    { roomId, peerId, sessionId }: SessionAddress,
    { request, requestId }: { request: string; requestId: string },
  ): Promise<Outcome<string>> {
    const { system, clock, sockets } = this.#options;
    for (const session of this.#sessions.values()) if (session.isOf(roomId, peerId)) session.end('closed_by_server');

    const session = new RequestSession({ roomId, peerId, clock, onEnd: () => this.#sessions.delete(sessionId) });
    this.#sessions.set(sessionId, session);
    const attached = await attachSocket({
      system,
      attach: (sender, message) => sender.call(room, { type: 'attach', ...message }, ATTACH_TIMEOUT_MS),
      roomId,
      peerId,
      socket: session,
      client: 'http',
      sockets,
      requestId,
    }).catch((error: unknown) => {
      session.end('closed_by_server');
      if (!(error instanceof ActorError)) throw error;
      return refused('OWNER_UNREACHABLE', `Room ${roomId} does not answer`);
    });
    if (typeof attached === 'object') {
      if ('ok' in attached) return attached;
      session.attached(attached);
      return session.ask(request);
    }
    session.end('closed_by_server');
    if (attached === 'peer already connected') return refusals.peerConnected(peerId);
    if (attached === 'too many connections') return refusals.tooManyConnections(peerId);
    return attached === 'peer not found' ? refusals.peerNotFound(peerId) : refusals.roomNotFound(roomId);
  }

  async ask(address: SessionAddress, request: string): Promise<Outcome<string>> {
    return this.#find(address)?.ask(request) ?? refusals.sessionNotFound(address.sessionId);
  }

  /** Ends a session as the loss of a websocket does. */
  close(address: SessionAddress): Outcome<null> {
    const session = this.#find(address);
    if (session === undefined) return refusals.sessionNotFound(address.sessionId);
    session.end('closed_by_client');

    return done(null);
  }

  #find({ roomId, peerId, sessionId }: SessionAddress): RequestSession | undefined {
    const session = this.#sessions.get(sessionId);

    return session?.isOf(roomId, peerId) === true ? session : undefined;
  }
}

interface RequestSessionOptions {
  roomId: string;
  peerId: string;
  clock: Clock;
  onEnd: () => void;
}

/** One session. To the room it is a socket whose client answers every ping. */
class RequestSession implements PeerSocket {
  readonly #options: RequestSessionOptions;
  #peer: AttachedPeer | undefined;
  #ended = false;
  /** Unanswered requests, in order. */
  readonly #waiting: ((outcome: Outcome<string>) => void)[] = [];

  constructor(options: RequestSessionOptions) {
    this.#options = options;
  }

  isOf(roomId: string, peerId: string): boolean {
    return this.#options.roomId === roomId && this.#options.peerId === peerId;
  }

  attached(peer: AttachedPeer): void {
    this.#peer = peer;
    // The room may have closed the session by now.
    if (this.#ended) this.end('closed_by_server');
  }

  ask(request: string): Promise<Outcome<string>> {
    if (this.#ended) return Promise.resolve(this.#gone());

    return new Promise((resolve) => {
      const timer = new Timer(this.#options.clock);
      this.#waiting.push((outcome) => {
        timer.stop();
        resolve(outcome);
      });
      // A late answer would be taken as the next request's answer, so the client has to start over.
      timer.start(ANSWER_TIMEOUT_MS, () => this.end('closed_by_server'));
      this.#peer?.receive(request);
    });
  }

  send(text: string): void {
    this.#waiting.shift()?.(done(text));
  }

  close(): void {
    this.end('closed_by_server');
  }

  async ping(): Promise<boolean> {
    return !this.#ended;
  }

  /** Idempotent. */
  end(end: SocketEnd): void {
    this.#peer?.detach(end);
    this.#peer = undefined;
    if (this.#ended) return;
    this.#ended = true;
    this.#options.onEnd();
    for (const answer of this.#waiting.splice(0)) answer(this.#gone());
  }

  #gone(): Outcome<string> {
    return refused('PEER_NOT_FOUND', `The session of peer ${this.#options.peerId} has ended`);
  }
}
