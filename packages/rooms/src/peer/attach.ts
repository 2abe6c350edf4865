import { ActorError, isRemote, newRequestId, nodeOf, type ActorSystem, type Sender } from '@bloom/actors';
import type { AttachedPeer, AttachRefusal, PeerSocket } from '../room-service.js';
import type { AttachedSockets } from './attached-sockets.js';
import { INTERNAL_ERROR } from './close-reason.js';
import type { AttachAnswer, AttachRequest, SocketRef } from './peer-messages.js';
import type { ClientKind } from './peer-session.js';
import type { RelayedSockets } from './relayed-sockets.js';
import { socketBehaviour } from './socket-actor.js';

/** How long a peer's current socket has to answer a ping before a new one replaces it. */
const PING_TIMEOUT_MS = 2_000;
/** Attempts to replace a dead socket. Each further attempt means that yet another socket attached in between. */
const MAX_ROUNDS = 3;

export interface AttachOptions {
  system: ActorSystem;
  /** Asks the room. */
  attach: (sender: Sender, request: AttachRequest) => Promise<AttachAnswer>;
  roomId: string;
  peerId: string;
  socket: PeerSocket;
  client: ClientKind;
  /** See `AttachRequest`. */
  resumes?: true;
  /** Holds the socket's actor while it lives and may belong to a room of this node. */
  sockets?: AttachedSockets;
  /** Holds the socket's actor while it lives and belongs to a room of another node. */
  relayed?: RelayedSockets;
  /** Id of the attachment; each later client message gets its own. */
  requestId: string;
}

/** The sender that traces show for client messages. */
const SENDER = 'websocket';

/** Creates an actor for the websocket and attaches it to the peer, unless the peer already has a live socket. */
export async function attachSocket({
  system,
  attach,
  roomId,
  peerId,
  socket,
  client,
  resumes,
  sockets,
  relayed,
  requestId,
}: AttachOptions): Promise<AttachedPeer | AttachRefusal> {
  const sender = system.forRequest(requestId, SENDER);
  const ref = system.spawn(socketBehaviour(socket), { folder: 'sockets', mailbox: { essential: 'all' } });
  if (sockets !== undefined) {
    sockets.add(ref);
    system.monitor(ref, () => sockets.delete(ref));
  }

  try {
    const answer = await claim((request) => attach(sender, request), {
      sender,
      peerId,
      socket: ref,
      client,
      ...(resumes === undefined ? {} : { resumes }),
    });
    if (typeof answer === 'string') {
      void system.stop(ref);
      return answer;
    }
    const { peer, room } = answer;
    // The room moved away meanwhile, and outlives this node.
    if (isRemote(peer)) sockets?.delete(ref);
    sender.cast(ref, { type: 'bind', peer });
    // LiveKit's clients start over after another code.
    const node = nodeOf(peer);
    const returns = node !== undefined && client === 'sdk' ? relayed : undefined;

    const attached: AttachedPeer = {
      receive: (text) => {
        const taken = system.forRequest(newRequestId(), SENDER).cast(peer, { type: 'clientEvent', socket: ref, text });
        // The mailbox is full and the lost event may be an offer: the client has to start over.
        if (!taken && system.isAlive(peer)) socket.close(1011, INTERNAL_ERROR);
      },
      detach: (end) => {
        // Report the reason before the actor stops: the room would take that for a lost connection.
        const how = returns?.isClosing === true ? { end, returns: true } : { end };
        if (room !== undefined && system.isAlive(ref))
          system.cast(room, { type: 'socketDown', peerId, socket: ref, ...how });
        void system.stop(ref);
      },
    };
    if (isRemote(peer) && client === 'livekit' && room !== undefined) {
      attached.handOver = () => {
        system.cast(room, { type: 'socketDown', peerId, socket: ref, returns: true });
        void system.stop(ref);
      };
    }
    if (returns !== undefined && node !== undefined) {
      system.monitor(ref, () => returns.delete(ref));
      const close = (reason: string): void => {
        socket.close(1012, reason);
        attached.detach('closed_by_server');
      };
      returns.add(ref, { roomId, node, close });
    }
    return attached;
  } catch (error) {
    void system.stop(ref);
    // SDKs treat this reason as final: any other failure, such as a broken link, must let them retry.
    if (error instanceof ActorError && error.isFinal) return 'room not found';
    throw error;
  }
}

type Attached = Extract<AttachAnswer, { result: 'attached' }>;

async function claim(
  attach: (request: AttachRequest) => Promise<AttachAnswer>,
  { sender, ...request }: { sender: Sender } & Omit<AttachRequest, 'replaces'>,
): Promise<Attached | AttachRefusal> {
  let replaces: SocketRef | null = null;

  for (let round = 0; round < MAX_ROUNDS; round++) {
    const answer: AttachAnswer = await attach({ ...request, replaces });
    if (answer.result === 'attached') return answer;
    if (answer.result === 'refused') return answer.reason;
    if (await isAlive(sender, answer.by)) return 'peer already connected';
    replaces = answer.by;
  }

  return 'peer already connected';
}

async function isAlive(sender: Sender, socket: SocketRef): Promise<boolean> {
  const ping = { type: 'ping', timeoutMs: PING_TIMEOUT_MS } as const;

  return sender.call(socket, ping, PING_TIMEOUT_MS + 500).catch(() => false);
}
