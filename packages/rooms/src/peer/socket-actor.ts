import { later, type Behaviour } from '@bloom/actors';
import type { PeerSocket } from '../room-service.js';
import { INTERNAL_ERROR } from './close-reason.js';
import { SOCKET_SHAPES, type SocketProtocol } from './peer-messages.js';

interface SocketState {
  closed: boolean;
  bound: boolean;
}

/**
 * Represents an accepted websocket on the node that accepted it, so that the peer may live on another node. It ends
 * with the websocket and is monitored by the peer's room; it monitors the peer and closes the websocket when the peer
 * ends.
 */
export function socketBehaviour(socket: PeerSocket): Behaviour<SocketProtocol, SocketState> {
  const close = (state: SocketState, code: number, reason: string): void => {
    if (state.closed) return;
    state.closed = true;
    socket.close(code, reason);
  };

  return {
    kind: 'peer-socket',
    shapes: SOCKET_SHAPES,
    // A room on another node may end a socket that no longer accepts messages.
    endable: true,
    init: () => ({ closed: false, bound: false }),
    handlers: {
      send: (state, { text }) => {
        if (!state.closed) socket.send(text);
      },
      close: (state, { code, reason }, context) => {
        close(state, code, reason);
        context.stop();
      },
      ping: (_state, { timeoutMs }) => later(socket.ping(timeoutMs)),
      bind: (state, { peer }, context) => {
        if (state.bound) return;
        state.bound = true;
        context.monitor(peer, () => ({ type: 'peerDown' }));
      },
      peerDown: (state, _message, context) => {
        close(state, 1011, INTERNAL_ERROR);
        context.stop();
      },
    },
    inspect: ({ closed, bound }) => ({ closed, bound }),
    onStop: (state, { reason }) => {
      // A socket that was never bound is closed by the code that refused it.
      if (reason === 'crashed' || state.bound) close(state, 1011, INTERNAL_ERROR);
    },
  };
}
