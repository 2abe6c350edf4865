import type { ActorContext, Behaviour } from '@bloom/actors';
import type { MediaRoom, RelayCredentials, TrackKind } from '@bloom/sfu';
import { isPowerOfTwo } from '@bloom/time';
import type { VideoCodec } from '../room-service.js';
import { MetadataGate, TICK_MS } from './metadata-gate.js';
import { Outbox, RETRY_MS } from './outbox.js';
import { PEER_SHAPES, type PeerProtocol, type SocketRef } from './peer-messages.js';
import type {
  ClientKind,
  CreatePeerSession,
  PeerRequest,
  PeerSession,
  SessionAction,
  SessionInput,
} from './peer-session.js';

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
}

interface Connection {
  number: number;
  socket: SocketRef;
  session: PeerSession;
  outbox: Outbox;
  /** The socket is being closed because it did not accept an event: the client has to start over. */
  cutOff: boolean;
  /** Names of the session's running timers. */
  timers: Set<string>;
  /** Number of transports so far; a client that leaves on an open socket gets the next one. */
  transport: number;
}

interface PeerState {
  connection: Connection | undefined;
  /** Outlives connections, so reconnecting does not refill it. */
  metadata: MetadataGate;
  ticking: boolean;
  /** Kinds of tracks that the client may publish. Outlives connections. */
  publishes: readonly TrackKind[];
}

type Context = ActorContext<PeerProtocol>;

/**
 * Carries inputs and actions between a client's session, its websocket, the room and the media plane. The room monitors
 * the actor, so a fault here ends only this peer.
 */
export function peerBehaviour(options: PeerActorOptions): Behaviour<PeerProtocol, PeerState> {
  return {
    kind: 'peer',
    shapes: PEER_SHAPES,
    init: () => ({
      connection: undefined,
      metadata: new MetadataGate(),
      ticking: false,
      publishes: ['audio', 'video'],
    }),
    handlers: {
      attached: (state, { connection: { number, socket, client } }, context) => {
        endConnection(state, context);
        options.media.openTransport(options.peerId, options.relay);
        state.connection = {
          number,
          socket,
          session: newSession(options, state, client),
          outbox: new Outbox(),
          cutOff: false,
          timers: new Set(),
          transport: 0,
        };
      },
      detached: (state, _message, context) => {
        // The client may have left after the room closed the transport, and have a new one by now.
        if (state.connection !== undefined && state.connection.transport > 0) options.closeTransport();
        endConnection(state, context);
      },
      clientEvent: (state, { socket, text }, context) => {
        if (state.connection?.socket.key === socket.key) feed(options, state, context, { type: 'clientEvent', text });
      },
      setPublishes: (state, { kinds }, context) => {
        state.publishes = kinds;
        feed(options, state, context, { type: 'setPublishes', kinds });
      },
      deliver: (state, { message }, context) => feed(options, state, context, { type: 'roomMessage', message }),
      input: (state, { input }, context) => feed(options, state, context, input),
      negotiated: (state, { connection, generation }, context) => {
        if (state.connection?.number === connection) feed(options, state, context, { type: 'negotiated', generation });
      },
      negotiationFailed: (state, { connection, generation, reason }, context) => {
        if (state.connection?.number !== connection) return;
        context.log.warn('peer.negotiation_failed', { generation, reason });
        options.toRoom(context, connection, { type: 'fail', reason: '' });
      },
      sessionTimer: (state, { connection, name }, context) => {
        if (state.connection?.number !== connection) return;
        state.connection.timers.delete(name);
        feed(options, state, context, { type: 'timer', name });
      },
      metadataTick: (state, _message, context) => {
        state.ticking = false;
        const { connection, metadata } = state;
        for (const request of metadata.tick()) {
          if (connection !== undefined) options.toRoom(context, connection.number, request);
        }
        keepTicking(state, context);
      },
      outboxTick: ({ connection }, _message, context) => {
        if (connection === undefined || connection.cutOff) return;
        if (!connection.outbox.retry(taking(connection, context))) cutOff(connection, context);
        else if (!connection.outbox.isEmpty) context.setTimer('outbox', RETRY_MS, { type: 'outboxTick' });
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

function endConnection(state: PeerState, context: Context): void {
  for (const name of state.connection?.timers ?? []) context.clearTimer(name);
  context.clearTimer('outbox');
  state.connection = undefined;
  state.metadata.disconnected();
}

function keepTicking(state: PeerState, context: Context): void {
  if (state.ticking || !state.metadata.needsTick) return;
  state.ticking = true;
  context.setTimer('metadata', TICK_MS, { type: 'metadataTick' });
}

/** Passes a request of the session to the room, subject to the metadata limits. */
function request(options: PeerActorOptions, state: PeerState, context: Context, wanted: PeerRequest): void {
  const { connection, metadata } = state;
  if (connection === undefined) return;

  const before = metadata.dropped;
  const admitted = metadata.admit(wanted);
  // A client can repeat this endlessly: log occurrences 1, 2, 4, 8 and so on.
  if (metadata.dropped > before && isPowerOfTwo(metadata.dropped)) {
    context.log.warn('peer.metadata_too_large', { dropped: metadata.dropped });
  }
  if (admitted !== undefined) options.toRoom(context, connection.number, admitted);
  keepTicking(state, context);
}

function newSession(options: PeerActorOptions, { publishes }: PeerState, client: ClientKind): PeerSession {
  return options.createSession({
    peerId: options.peerId,
    client,
    videoCodec: options.videoCodec,
    enableSimulcast: options.enableSimulcast,
    publishes,
    endpoint: options.media.endpoint,
    relay: options.relay,
    randomBytes: options.randomBytes,
  });
}

function feed(options: PeerActorOptions, state: PeerState, context: Context, input: SessionInput): void {
  const { connection } = state;
  if (connection === undefined) return;

  let left = false;
  for (const action of connection.session.handle(input)) {
    if (action.type === 'leave') left = true;
    carryOut(options, state, connection, context, action);
  }
  if (left) startAnew(options, connection);
}

/** Replaces the transport of a client that left on its open socket: its next `connect` starts with new ICE and DTLS. */
function startAnew({ media, closeTransport, peerId, relay }: PeerActorOptions, connection: Connection): void {
  connection.transport += 1;
  closeTransport();
  media.openTransport(peerId, relay);
}

function send(connection: Connection, context: Context, text: string): void {
  const { outbox } = connection;
  if (connection.cutOff) return;
  const wasEmpty = outbox.isEmpty;
  if (!outbox.send(text, taking(connection, context))) cutOff(connection, context);
  else if (wasEmpty && !outbox.isEmpty) context.setTimer('outbox', RETRY_MS, { type: 'outboxTick' });
}

function taking({ socket }: Connection, context: Context): (text: string) => boolean {
  return (text) => context.cast(socket, { type: 'send', text });
}

function cutOff(connection: Connection, context: Context): void {
  connection.cutOff = true;
  context.end(connection.socket);
}

/** Maps the actions of a session to their effects. */
function carryOut(
  options: PeerActorOptions,
  state: PeerState,
  connection: Connection,
  context: Context,
  action: SessionAction,
): void {
  switch (action.type) {
    case 'send':
      return send(connection, context, action.text);
    case 'negotiate':
      return negotiate(options, connection, context, action);
    case 'media':
      return options.media.do(action.command);
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
      return request(options, state, context, action);
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
  // The outcome of a transport that the client has left must be ignored, failures above all.
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
