import type { ActorContext } from '@bloom/actors';
import type { MediaEndpoint, MediaRoom, RelayCredentials, TrackKind, TransportNegotiation } from '@bloom/sfu';
import { isPowerOfTwo } from '@bloom/time';
import type { PeerPermissions, PeerRelay, VideoCodec } from '../room-service.js';
import { peerRelay } from './credentials.js';
import { MetadataGate, TICK_MS } from './metadata-gate.js';
import { Outbox, RETRY_MS } from './outbox.js';
import type { PeerConnection, PeerProtocol, SocketRef } from './peer-messages.js';
import { defaultPermissions } from './permissions.js';
import type {
  ClientKind,
  CreatePeerSession,
  PeerRequest,
  PeerSession,
  SessionAction,
  SessionInput,
  SessionTimer,
} from './peer-session.js';
import { type ExpectedTracks, TrackNames } from './track-names.js';

export interface PeerActorOptions {
  peerId: string;
  /** Sends a request to the room on behalf of the connection with this number. */
  toRoom: (sender: Pick<ActorContext<PeerProtocol>, 'cast'>, connection: number, request: PeerRequest) => void;
  media: MediaRoom;
  /** Closes the peer's transport. */
  closeTransport: () => void;
  relay: RelayCredentials;
  createSession: CreatePeerSession;
  videoCodec: VideoCodec | null;
  enableSimulcast: boolean;
  randomBytes: (n: number) => Uint8Array;
  /** Set for a peer of a room that has moved here. */
  expected?: ExpectedTracks | undefined;
}

interface Connection {
  number: number;
  socket: SocketRef;
  session: PeerSession;
  outbox: Outbox;
  /** The socket is being closed because it did not accept an event: the client has to start over. */
  cutOff: boolean;
  /** The node of the socket has ended; what is sent is lost until the client resumes. */
  lost: boolean;
  /** Names of the session's running timers. */
  timers: Set<string>;
  /** Number of transports so far; a client that leaves on an open socket gets the next one. */
  transport: number;
  /** What the session announces. */
  endpoint: MediaEndpoint;
}

/** Time from a client's request for its relay to its connection. */
const UNUSED_RELAY_MS = 30_000;

type Context = ActorContext<PeerProtocol>;

/**
 * One peer and its current connection: feeds the client's session, and maps the session's actions to their effects.
 * Each method takes the context of the message being handled, so that its effects carry the id of that request.
 */
export class PeerState {
  readonly #options: PeerActorOptions;
  /** Outlives connections, so reconnecting does not refill it. */
  readonly #metadata = new MetadataGate();
  readonly #names: TrackNames;
  /** Kinds of tracks that the client may publish. Outlives connections. */
  #publishes: readonly TrackKind[] = ['audio', 'video'];
  #permissions: PeerPermissions = defaultPermissions;
  #connection: Connection | undefined;
  #ticking = false;
  /** True while a disconnected peer has a transport, for the relay that its client asked for. */
  #prepared = false;

  constructor(options: PeerActorOptions) {
    this.#options = options;
    this.#names = new TrackNames(options.expected);
  }

  isConnection(number: number): boolean {
    return this.#connection?.number === number;
  }

  isSocket({ key }: SocketRef): boolean {
    return this.#connection?.socket.key === key;
  }

  attach(context: Context, { number, socket, client }: PeerConnection): void {
    if (this.#connection?.number === number) return resume(context, this.#connection, socket);
    const { peerId, media, relay } = this.#options;
    this.#endConnection(context);
    // The client may have allocated at the relay of a prepared transport: another one would refuse its data.
    const prepared = this.#prepared ? media.endpointOf(peerId) : undefined;
    this.#prepared = false;
    context.clearTimer('relay');
    const endpoint = prepared ?? media.openTransport(peerId, relay);
    this.#connection = {
      number,
      socket,
      session: this.#newSession(client, endpoint),
      outbox: new Outbox(),
      cutOff: false,
      lost: false,
      timers: new Set(),
      transport: 0,
      endpoint,
    };
  }

  /**
   * Returns the relay of the current connection. A disconnected peer gets a transport for its next one, because the
   * relay serves nobody without; it is closed 30 s after the last call.
   */
  openRelay(context: Context): PeerRelay {
    const { peerId, media, relay } = this.#options;
    if (this.#connection !== undefined) return peerRelay(this.#connection.endpoint, relay);
    const prepared = this.#prepared ? media.endpointOf(peerId) : undefined;
    this.#prepared = true;
    context.setTimer('relay', UNUSED_RELAY_MS, { type: 'relayUnused' });

    return peerRelay(prepared ?? media.openTransport(peerId, relay), relay);
  }

  /** Closes the transport that no connection has used. */
  closeRelay(): void {
    if (!this.#prepared) return;
    this.#prepared = false;
    void this.#options.media.closeTransport(this.#options.peerId);
  }

  detach(context: Context): void {
    // The client may have left after the room closed the transport, and have a new one by now.
    if (this.#connection !== undefined && this.#connection.transport > 0) this.#options.closeTransport();
    this.#endConnection(context);
    this.#names.reset();
  }

  /** `expected`: tracks of the connection that has just ended, which its client publishes again on another. */
  expectTracks(expected: ExpectedTracks): void {
    this.#names.expect(expected);
  }

  setPublishes(context: Context, allowed: { kinds: readonly TrackKind[]; permissions: PeerPermissions }): void {
    const { kinds, permissions } = allowed;
    this.#publishes = kinds;
    this.#permissions = permissions;
    this.feed(context, { type: 'setPublishes', kinds, permissions });
  }

  /** Passes an input to the session and carries out the resulting actions. */
  feed(context: Context, input: SessionInput): void {
    const connection = this.#connection;
    if (connection === undefined) return;

    let left = false;
    if (input.type === 'socketLost') connection.lost = true;
    const actions = connection.session.handle(this.#names.toClient(input));
    for (const action of this.#names.toRoom(actions, context.now())) {
      if (action.type === 'leave') left = true;
      this.#perform(context, connection, action);
    }
    if (!left) return;
    this.#names.reset();
    this.#replaceTransport(connection);
  }

  sessionTimer(context: Context, name: SessionTimer): void {
    this.#connection?.timers.delete(name);
    this.feed(context, { type: 'timer', name });
  }

  metadataTick(context: Context): void {
    this.#ticking = false;
    for (const request of this.#metadata.tick()) {
      if (this.#connection !== undefined) this.#options.toRoom(context, this.#connection.number, request);
    }
    this.#keepTicking(context);
  }

  outboxTick(context: Context): void {
    const connection = this.#connection;
    if (connection === undefined || connection.cutOff || connection.lost) return;
    if (!connection.outbox.retry(taking(context, connection))) cutOff(context, connection);
    else if (!connection.outbox.isEmpty) context.setTimer('outbox', RETRY_MS, { type: 'outboxTick' });
  }

  descriptions(): { offer?: string; answer?: string } {
    return this.#connection?.session.descriptions() ?? {};
  }

  /** Returns the state for operators. */
  inspect(): unknown {
    const connection = this.#connection;

    return {
      peerId: this.#options.peerId,
      connection:
        connection === undefined
          ? null
          : {
              number: connection.number,
              socket: connection.socket.path,
              transport: connection.transport,
              timers: [...connection.timers],
            },
    };
  }

  #newSession(client: ClientKind, endpoint: MediaEndpoint): PeerSession {
    const { peerId, relay, videoCodec, enableSimulcast, randomBytes, createSession } = this.#options;

    return createSession({
      peerId,
      client,
      videoCodec,
      enableSimulcast,
      publishes: this.#publishes,
      permissions: this.#permissions,
      endpoint,
      relay,
      randomBytes,
    });
  }

  #endConnection(context: Context): void {
    for (const name of this.#connection?.timers ?? []) context.clearTimer(name);
    context.clearTimer('outbox');
    this.#connection = undefined;
    this.#metadata.disconnected();
  }

  /**
   * Replaces the transport of a client that left on its open socket: its next `connect` starts with new ICE and DTLS.
   */
  #replaceTransport(connection: Connection): void {
    const { peerId, media, relay, closeTransport } = this.#options;
    connection.transport += 1;
    closeTransport();
    media.openTransport(peerId, relay, { at: connection.endpoint });
  }

  #perform(context: Context, connection: Connection, action: SessionAction): void {
    switch (action.type) {
      case 'send':
        return send(context, connection, action.text);
      case 'negotiate':
        return this.#negotiate(context, connection, action.negotiation);
      case 'media':
        return this.#options.media.do(action.command);
      case 'setTimer':
        connection.timers.add(action.name);
        return context.setTimer(action.name, action.ms, {
          type: 'sessionTimer',
          connection: connection.number,
          name: action.name,
        });
      case 'clearTimer':
        connection.timers.delete(action.name);
        return context.clearTimer(action.name);
      case 'warn':
        return context.log.warn(action.event, { detail: action.detail });
      default:
        return this.#request(context, connection, action);
    }
  }

  #negotiate(context: Context, connection: Connection, negotiation: TransportNegotiation): void {
    const { media, peerId } = this.#options;
    const { generation, receiver } = negotiation;
    const { number, session, transport } = connection;
    // Ignore the outcome, and especially the failure, of a transport that the client has already left.
    const isCurrent = (): boolean => connection.session === session && connection.transport === transport;

    if (receiver === true) media.openReceiver(peerId);
    media.negotiate(peerId, negotiation).then(
      () => {
        const outcome = { connection: number, generation, ...(receiver === true ? { receiver } : {}) };
        if (isCurrent()) context.cast(context.self, { ...outcome, type: 'negotiated' });
      },
      (error: unknown) => {
        const reason = error instanceof Error ? error.message : String(error);
        if (isCurrent())
          context.cast(context.self, { type: 'negotiationFailed', connection: number, generation, reason });
      },
    );
  }

  /** Passes a request of the session to the room, subject to the metadata limits. */
  #request(context: Context, connection: Connection, wanted: PeerRequest): void {
    const metadata = this.#metadata;
    const before = metadata.dropped;
    const admitted = metadata.admit(wanted);
    // A client can repeat this endlessly: log occurrences 1, 2, 4, 8 and so on.
    if (metadata.dropped > before && isPowerOfTwo(metadata.dropped)) {
      context.log.warn('peer.metadata_too_large', { dropped: metadata.dropped });
    }
    if (admitted !== undefined) this.#options.toRoom(context, connection.number, admitted);
    this.#keepTicking(context);
  }

  #keepTicking(context: Context): void {
    if (this.#ticking || !this.#metadata.needsTick) return;
    this.#ticking = true;
    context.setTimer('metadata', TICK_MS, { type: 'metadataTick' });
  }
}

function send(context: Context, connection: Connection, text: string): void {
  const { outbox } = connection;
  if (connection.cutOff || connection.lost) return;
  const wasEmpty = outbox.isEmpty;
  if (!outbox.send(text, taking(context, connection))) cutOff(context, connection);
  else if (wasEmpty && !outbox.isEmpty) context.setTimer('outbox', RETRY_MS, { type: 'outboxTick' });
}

/** Gives a session another socket. Its client is sent the whole state, so what has not been sent is dropped. */
function resume(context: Context, connection: Connection, socket: SocketRef): void {
  Object.assign(connection, { socket, outbox: new Outbox(), cutOff: false, lost: false });
  context.clearTimer('outbox');
}

function taking(context: Context, { socket }: Connection): (text: string) => boolean {
  return (text) => context.cast(socket, { type: 'send', text });
}

function cutOff(context: Context, connection: Connection): void {
  connection.cutOff = true;
  context.end(connection.socket);
}
