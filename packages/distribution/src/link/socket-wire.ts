import type { Socket } from 'node:net';
import type { Clock } from '@bloom/time';
import type { Wire } from '../world.js';

/** A TCP socket as the transport of a link. */
export function socketWire(socket: Socket, clock: Clock): Wire {
  return {
    get pendingBytes() {
      return socket.writableLength;
    },
    write: (bytes, done) => void socket.write(bytes, done),
    end: () => {
      socket.end();
      // The other side must not keep the socket by never closing its end.
      const timer = clock.setTimeout(() => socket.destroy(), 1_000);
      socket.once('close', () => clock.clearTimeout(timer));
    },
    destroy: () => void socket.destroy(),
  };
}
