import { later, type Behaviour } from '@bloom/actors';
import { INTERNAL_ERROR } from './close-reason.js';
import type { PeerSocket } from './room-service.js';
import type { SocketProtocol } from './room-messages.js';

interface SocketState {
  closed: boolean;
  bound: boolean;
}

/**
 * Stands in front of an accepted websocket, on the node that accepted it, so that the peer may live on another one.
 * It ends with the websocket, and the peer's room watches it; it watches the peer, whose loss is the websocket's end.
 */
export function socketBehaviour(socket: PeerSocket): Behaviour<SocketProtocol, SocketState> {
  const close = (state: SocketState, code: number, reason: string): void => {
    if (state.closed) return;
    state.closed = true;
    socket.close(code, reason);
  };

  return {
    kind: 'peer-socket',
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
      // One that was never bound is told by whoever refused it.
      if (reason === 'crashed' || state.bound) close(state, 1011, INTERNAL_ERROR);
    },
  };
}
