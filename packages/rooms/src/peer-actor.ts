import type { ActorContext, Behaviour } from '@bloom/actors';
import type { MediaRoom, RelayCredentials } from '@bloom/sfu';
import type { CreatePeerSession, PeerSession, SessionAction, SessionInput, VideoCodec } from './peer-session.js';
import type { PeerProtocol, PeerRequest, RoomRef, SocketRef } from './room-messages.js';

export interface PeerActorOptions {
  peerId: string;
  room: RoomRef;
  media: MediaRoom;
  relay: RelayCredentials;
  createSession: CreatePeerSession;
  videoCodec: VideoCodec | null;
  enableSimulcast: boolean;
  randomBytes: (n: number) => Uint8Array;
}

interface Connection {
  number: number;
  socket: SocketRef;
  session: PeerSession;
  /** Names of the session's running timers. */
  timers: Set<string>;
  /** Transports so far; the client that leaves on an open socket gets the next one. */
  transport: number;
}

interface PeerState {
  connection: Connection | undefined;
}

type Context = ActorContext<PeerProtocol>;

/**
 * Carries inputs and actions between one client's session, its websocket, the room and the media plane. A fault in here
 * is this peer's fault alone: the room hears of its end.
 */
export function peerBehaviour(options: PeerActorOptions): Behaviour<PeerProtocol, PeerState> {
  return {
    kind: 'peer',
    init: () => ({ connection: undefined }),
    handlers: {
      attached: (state, { connection, socket }, context) => {
        endConnection(state, context);
        options.media.openTransport(options.peerId, options.relay);
        state.connection = {
          number: connection,
          socket,
          session: newSession(options),
          timers: new Set(),
          transport: 0,
        };
      },
      detached: endConnectionHandler,
      clientEvent: (state, { socket, text }, context) => {
        if (state.connection?.socket.key === socket.key) feed(options, state, context, { type: 'clientEvent', text });
      },
      input: (state, { input }, context) => feed(options, state, context, input),
      negotiated: (state, { connection, generation }, context) => {
        if (state.connection?.number === connection) feed(options, state, context, { type: 'negotiated', generation });
      },
      negotiationFailed: (state, { connection, generation, reason }, context) => {
        if (state.connection?.number !== connection) return;
        context.log.warn('peer.negotiation_failed', { generation, reason });
        ask(options, state.connection, context, { do: 'fail', reason: '' });
      },
      sessionTimer: (state, { connection, name }, context) => {
        if (state.connection?.number !== connection) return;
        state.connection.timers.delete(name);
        feed(options, state, context, { type: 'timer', name });
      },
      describe: (state) => state.connection?.session.descriptions() ?? {},
    },
    inspect: ({ connection }) => ({
      peerId: options.peerId,
      connection:
        connection === undefined
          ? null
          : {
              number: connection.number,
              socket: connection.socket.path,
              transport: connection.transport,
              timers: [...connection.timers],
            },
    }),
  };
}

function endConnectionHandler(state: PeerState, _message: object, context: Context): void {
  endConnection(state, context);
}

function endConnection(state: PeerState, context: Context): void {
  for (const name of state.connection?.timers ?? []) context.clearTimer(name);
  state.connection = undefined;
}

function newSession(options: PeerActorOptions): PeerSession {
  return options.createSession({
    peerId: options.peerId,
    videoCodec: options.videoCodec,
    enableSimulcast: options.enableSimulcast,
    endpoint: options.media.endpoint,
    relay: options.relay,
    randomBytes: options.randomBytes,
  });
}

function ask({ room, peerId }: PeerActorOptions, { number }: Connection, context: Context, request: PeerRequest): void {
  context.cast(room, { type: 'fromPeer', peerId, connection: number, request });
}

function feed(options: PeerActorOptions, state: PeerState, context: Context, input: SessionInput): void {
  const { connection } = state;
  if (connection === undefined) return;

  let left = false;
  for (const action of connection.session.handle(input)) {
    if (action.type === 'leave') left = true;
    carryOut(options, connection, context, action);
  }
  if (left) startAnew(options, connection);
}

/** The client left on an open socket: what it connects next, ICE and DTLS included, begins from zero. */
function startAnew({ media, peerId, relay }: PeerActorOptions, connection: Connection): void {
  connection.transport += 1;
  media.closeTransport(peerId);
  media.openTransport(peerId, relay);
}

/** The table of what a session may ask for. */
function carryOut(options: PeerActorOptions, connection: Connection, context: Context, action: SessionAction): void {
  const { media, peerId } = options;

  switch (action.type) {
    case 'send':
      // What the link to another node does not take could be an answer: the client has to begin anew, as the other way round.
      if (!context.cast(connection.socket, { type: 'send', text: action.text })) context.end(connection.socket);
      return;
    case 'join':
      return ask(options, connection, context, { do: 'join', metadata: action.metadata });
    case 'leave':
      return ask(options, connection, context, { do: 'leave' });
    case 'setMetadata':
      return ask(options, connection, context, { do: 'setMetadata', metadata: action.metadata });
    case 'publish':
      return ask(options, connection, context, { do: 'publish', tracks: action.tracks });
    case 'unpublish':
      return ask(options, connection, context, { do: 'unpublish', trackIds: action.trackIds });
    case 'setTrackMetadata': {
      const { trackId, metadata } = action;
      return ask(options, connection, context, { do: 'setTrackMetadata', trackId, metadata });
    }
    case 'setEncoding': {
      const { trackId, encoding, enabled } = action;
      return ask(options, connection, context, { do: 'setEncoding', trackId, encoding, enabled });
    }
    case 'negotiate':
      return negotiate(options, connection, context, action);
    case 'setTargetVariant':
      return media.setTargetVariant(peerId, action.trackId, action.variant);
    case 'setTrackBitrates':
      return media.setTrackBitrates(action.trackId, action.bitratesBps);
    case 'setTrackMuted':
      return media.setTrackMuted(action.trackId, action.muted);
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
    case 'fail':
      return ask(options, connection, context, { do: 'fail', reason: action.reason });
    case 'warn':
      return context.log.warn(action.event, { detail: action.detail });
  }
}

function negotiate(
  { media, peerId }: PeerActorOptions,
  connection: Connection,
  context: Context,
  { negotiation }: SessionAction & { type: 'negotiate' },
): void {
  const { generation } = negotiation;
  const { number, session, transport } = connection;
  // What the media plane says of a transport that the client has left behind is of no interest, a failure least of all.
  const isCurrent = (): boolean => connection.session === session && connection.transport === transport;

  media.negotiate(peerId, negotiation).then(
    () => {
      if (isCurrent()) context.cast(context.self, { type: 'negotiated', connection: number, generation });
    },
    (error: unknown) => {
      const reason = error instanceof Error ? error.message : String(error);
      if (isCurrent())
        context.cast(context.self, { type: 'negotiationFailed', connection: number, generation, reason });
    },
  );
}
