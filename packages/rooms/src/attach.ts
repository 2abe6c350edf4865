import { ActorError, newRequestId, type ActorSystem, type Sender } from '@bloom/actors';
import { INTERNAL_ERROR } from './close-reason.js';
import type { PeerRef, RoomRef, SocketRef } from './room-messages.js';
import type { AttachedPeer, AttachRefusal, PeerSocket } from './room-service.js';
import { socketBehaviour } from './socket-actor.js';

/** How long the old socket of a peer has to show life before a new one replaces it. */
export const PING_TIMEOUT_MS = 2_000;
const CALL_TIMEOUT_MS = 4_000;
/** Rounds of finding the peer taken by a dead socket; each means that yet another socket came in between. */
const MAX_ROUNDS = 3;

export interface AttachOptions {
  system: ActorSystem;
  room: RoomRef;
  peerId: string;
  socket: PeerSocket;
  /** Holds the actor of the websocket while it lives. */
  sockets?: Set<SocketRef>;
  /** Of the attachment; everything that the client says later has one of its own. */
  requestId: string;
}

/** What is told to have sent the messages of clients. */
const FACE = 'websocket';

/** Puts an actor in front of the websocket and makes it the peer's, unless a living one is. */
export async function attachSocket({
  system,
  room,
  peerId,
  socket,
  sockets,
  requestId,
}: AttachOptions): Promise<AttachedPeer | AttachRefusal> {
  const sender = system.forRequest(requestId, FACE);
  const ref = system.spawn(socketBehaviour(socket), { folder: 'sockets', mailbox: { essential: 'all' } });
  if (sockets !== undefined) {
    sockets.add(ref);
    system.monitor(ref, () => sockets.delete(ref));
  }

  try {
    const answer = await claim(sender, room, peerId, ref);
    if (typeof answer === 'string') {
      void system.stop(ref);
      return answer;
    }
    sender.cast(ref, { type: 'bind', peer: answer });

    return attachedPeer(system, ref, answer, socket);
  } catch (error) {
    void system.stop(ref);
    // Clients take this for final; whatever else it was, such as a link that broke, is worth another try.
    if (error instanceof ActorError && (error.code === 'NO_PROCESS' || error.code === 'CRASHED')) {
      return 'room not found';
    }
    throw error;
  }
}

async function claim(
  sender: Sender,
  room: RoomRef,
  peerId: string,
  socket: SocketRef,
): Promise<PeerRef | AttachRefusal> {
  let replaces: SocketRef | null = null;

  for (let round = 0; round < MAX_ROUNDS; round++) {
    const answer: Awaited<ReturnType<typeof attach>> = await attach(sender, room, { peerId, socket, replaces });
    if (answer.result === 'attached') return answer.peer;
    if (answer.result === 'refused') return answer.reason;
    if (await isAlive(sender, answer.by)) return 'peer already connected';
    replaces = answer.by;
  }

  return 'peer already connected';
}

function attach(
  sender: Sender,
  room: RoomRef,
  message: { peerId: string; socket: SocketRef; replaces: SocketRef | null },
) {
  return sender.call(room, { type: 'attach', ...message }, CALL_TIMEOUT_MS);
}

async function isAlive(sender: Sender, socket: SocketRef): Promise<boolean> {
  const ping = { type: 'ping', timeoutMs: PING_TIMEOUT_MS } as const;

  return sender.call(socket, ping, PING_TIMEOUT_MS + 500).catch(() => false);
}

function attachedPeer(system: ActorSystem, ref: SocketRef, peer: PeerRef, socket: PeerSocket): AttachedPeer {
  return {
    receive: (text) => {
      const taken = system.forRequest(newRequestId(), FACE).cast(peer, { type: 'clientEvent', socket: ref, text });
      // A flood beyond the mailbox: what is lost could be an offer, so the client has to begin anew.
      if (!taken && system.isAlive(peer)) socket.close(1011, INTERNAL_ERROR);
    },
    detach: () => void system.stop(ref),
  };
}
