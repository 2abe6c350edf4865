import { randomUUID } from 'node:crypto';
import type { ComponentView, PeerRelay, RoomService } from '@bloom/rooms';
import { WhipError } from './errors.js';
import { acceptOffer } from './offer.js';
import { parseFragment } from './sdp-fragment.js';
import type { RoomRules, SessionAnswer, SessionRequest, SessionRole } from './session-message.js';

export interface OpenedSession {
  sessionId: string;
  sdp: string;
  /** Identifies the ICE credentials. */
  etag: string;
  iceServer: PeerRelay;
}

/** The parts of a request other than its body. */
export interface SessionCaller {
  /** The peer's token. */
  token: string;
  requestId: string;
}

/** WHIP and WHEP without HTTP, for the rooms of any node of the cluster. */
export class WhipService {
  readonly #rooms: RoomService;

  constructor(rooms: RoomService) {
    this.#rooms = rooms;
  }

  /**
   * Connects a peer with its offer.
   * @throws WhipError UNAUTHORIZED, INVALID_OFFER or NO_CODEC
   * @throws RoomError PEER_CONNECTED, TOO_MANY_CONNECTIONS, PEER_NOT_FOUND, ROOM_NOT_FOUND or OWNER_UNREACHABLE
   */
  async open({ token, requestId }: SessionCaller, role: SessionRole, sdp: string): Promise<OpenedSession> {
    const { roomId, peerId } = this.peerOf(token);
    // Check the offer before the peer connects: a bad offer must not notify anyone.
    const rooms = this.#rooms.forRequest(requestId);
    const { config, components } = await rooms.getRoom(roomId);
    acceptOffer(sdp, role.type, { ...config, recorder: recorderIn(components) });
    const session = { roomId, peerId, sessionId: randomUUID() };
    const request: SessionRequest = { type: 'offer', role, sdp };
    const answer = parsed(await rooms.openSession(session, JSON.stringify(request)));
    if (answer.type === 'answer') return { sessionId: session.sessionId, ...answer };

    await rooms.closeSession(session);
    if (answer.type === 'refused') throw new WhipError(answer.code, answer.reason);
    throw new Error(`a session answered an offer with ${answer.type}`);
  }

  /**
   * Returns the relay of a peer that wants to connect, or has: see `RoomService.openRelay`.
   * @throws WhipError UNAUTHORIZED
   * @throws RoomError PEER_NOT_FOUND, ROOM_NOT_FOUND or OWNER_UNREACHABLE
   */
  async relay({ token, requestId }: SessionCaller): Promise<PeerRelay> {
    const { roomId, peerId } = this.peerOf(token);

    return this.#rooms.forRequest(requestId).openRelay(roomId, peerId);
  }

  /**
   * Handles an SDP fragment: candidates are ignored, new credentials restart ICE.
   * @param etag entity tag of the credentials that the client knows; null = any
   * @returns the server's fragment after a restart, otherwise undefined
   * @throws WhipError UNAUTHORIZED, INVALID_FRAGMENT, STALE or TOO_MANY_RESTARTS
   * @throws RoomError SESSION_NOT_FOUND, ROOM_NOT_FOUND or OWNER_UNREACHABLE
   */
  async update(
    { token, requestId }: SessionCaller,
    sessionId: string,
    { etag, fragment }: { etag: string | null; fragment: string },
  ): Promise<{ fragment: string; etag: string } | undefined> {
    const session = { ...this.peerOf(token), sessionId };
    const request: SessionRequest = { type: 'update', etag, ice: parseFragment(fragment) };
    const answer = parsed(await this.#rooms.forRequest(requestId).askSession(session, JSON.stringify(request)));
    if (answer.type === 'stale') throw new WhipError('STALE', `The entity tag is not "${answer.etag}"`);
    if (answer.type === 'tooManyRestarts') {
      throw new WhipError('TOO_MANY_RESTARTS', 'ICE was restarted less than a second ago; try again');
    }

    return answer.type === 'restarted' ? { fragment: answer.fragment, etag: answer.etag } : undefined;
  }

  /**
   * Ends a session, which disconnects its peer.
   * @throws WhipError UNAUTHORIZED
   * @throws RoomError SESSION_NOT_FOUND, ROOM_NOT_FOUND or OWNER_UNREACHABLE
   */
  async close({ token, requestId }: SessionCaller, sessionId: string): Promise<void> {
    await this.#rooms.forRequest(requestId).closeSession({ ...this.peerOf(token), sessionId });
  }

  /**
   * Returns the peer for which the token was issued, whether or not it still exists.
   * @throws WhipError UNAUTHORIZED
   */
  peerOf(token: string): { roomId: string; peerId: string } {
    const claim = this.#rooms.readToken(token);
    if (claim === 'expired token') throw new WhipError('UNAUTHORIZED', 'Expired token');
    if (claim === 'invalid token') throw new WhipError('UNAUTHORIZED', 'Invalid token');

    return claim;
  }
}

function recorderIn(components: readonly ComponentView[]): RoomRules['recorder'] {
  for (const { type, properties } of components) {
    const { subscribeMode, audioOnly } = properties;
    if (subscribeMode !== 'auto' || audioOnly === true) continue;
    if (type === 'hls') return 'HLS stream';
    if (type === 'recording') return 'recording';
  }

  return undefined;
}

function parsed(text: string): SessionAnswer {
  return JSON.parse(text) as SessionAnswer;
}
