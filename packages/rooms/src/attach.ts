import { ActorError, type ActorSystem } from '@bloom/actors';
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
  /** Holds the actors of all websockets of this node while they live. */
  sockets: Set<SocketRef>;
}

/** Puts an actor in front of the websocket and makes it the peer's, unless a living one is. */
export async function attachSocket({
  system,
  room,
  peerId,
  socket,
  sockets,
}: AttachOptions): Promise<AttachedPeer | AttachRefusal> {
  const ref = system.spawn(socketBehaviour(socket), { folder: 'sockets', mailbox: { essential: 'all' } });
  sockets.add(ref);
  system.monitor(ref, () => sockets.delete(ref));

  try {
    const answer = await claim(system, room, peerId, ref);
    if (typeof answer === 'string') {
      void system.stop(ref);
      return answer;
    }
    system.cast(ref, { type: 'bind', peer: answer });

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
  system: ActorSystem,
  room: RoomRef,
  peerId: string,
  socket: SocketRef,
): Promise<PeerRef | AttachRefusal> {
  let replaces: SocketRef | null = null;

  for (let round = 0; round < MAX_ROUNDS; round++) {
    const answer: Awaited<ReturnType<typeof attach>> = await attach(system, room, { peerId, socket, replaces });
    if (answer.result === 'attached') return answer.peer;
    if (answer.result === 'refused') return answer.reason;
    if (await isAlive(system, answer.by)) return 'peer already connected';
    replaces = answer.by;
  }

  return 'peer already connected';
}

function attach(
  system: ActorSystem,
  room: RoomRef,
  message: { peerId: string; socket: SocketRef; replaces: SocketRef | null },
) {
  return system.call(room, { type: 'attach', ...message }, CALL_TIMEOUT_MS);
}

async function isAlive(system: ActorSystem, socket: SocketRef): Promise<boolean> {
  const ping = { type: 'ping', timeoutMs: PING_TIMEOUT_MS } as const;

  return system.call(socket, ping, PING_TIMEOUT_MS + 500).catch(() => false);
}

function attachedPeer(system: ActorSystem, ref: SocketRef, peer: PeerRef, socket: PeerSocket): AttachedPeer {
  return {
    receive: (text) => {
      const taken = system.cast(peer, { type: 'clientEvent', socket: ref, text });
      // A flood beyond the mailbox: what is lost could be an offer, so the client has to begin anew.
      if (!taken && system.isAlive(peer)) socket.close(1011, INTERNAL_ERROR);
    },
    detach: () => void system.stop(ref),
  };
}
