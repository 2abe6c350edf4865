import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { isIPv6 } from 'node:net';
import { WebrtcError } from '../errors.js';
import { Nonces } from '../relay/nonces.js';
import { addressBytes } from '../stun/address.js';
import type { MediaPort, MediaPortOptions } from './api.js';
import { KeptSlots } from './kept-slots.js';
import { MediaPortCore } from './media-port-core.js';

/** A burst of key frames from many publishers fits; the system caps it at its own limit. */
const SOCKET_BUFFER_BYTES = 4 * 1024 * 1024;
const TICK_MS = 250;

/**
 * Binds the first free UDP port of the range and serves it. Rejects with `WebrtcError` `NO_FREE_PORT` or `BAD_ADDRESS`.
 */
export async function openMediaPort(options: MediaPortOptions): Promise<MediaPort> {
  const advertisedBytes = addressBytes(options.advertisedAddress);
  if (advertisedBytes === undefined) {
    throw new WebrtcError('BAD_ADDRESS', `the advertised address ${options.advertisedAddress} is not an IP address`);
  }
  const socket = await bindFirstFree(options.listenAddress, options.portRange);
  const { port } = socket.address();
  let closed = false;
  const kept = new KeptSlots(
    () => (closed ? 0 : socket.getSendQueueCount()),
    (slot) => options.onSlotFree?.(slot),
  );

  const core = new MediaPortCore({
    advertised: { bytes: advertisedBytes, port },
    certificate: options.certificate,
    nonces: new Nonces(options.nonceSecret),
    clock: options.clock ?? (() => performance.timeOrigin + performance.now()),
    sendUdp: (datagram, toPort, address) => {
      if (closed) return true;
      socket.send(datagram, toPort, address);
      return socket.getSendQueueCount() === 0;
    },
    onSlotKept: (slot) => kept.add(slot),
  });
  socket.on('message', (datagram, from) => {
    try {
      core.receive(datagram, from.address, from.port);
    } catch {
      // A fault in the handling of one datagram must not end the worker with everybody's media.
      core.countFault();
    }
  });
  // ICMP errors of single clients surface here on some systems; the port itself stays usable.
  socket.on('error', () => undefined);
  const timer = setInterval(() => core.tick(), TICK_MS);
  timer.unref();

  return {
    address: options.advertisedAddress,
    port,
    openTransport: (transport) => {
      if (closed) throw new WebrtcError('CLOSED', `the media port ${port} is closed`);
      return core.openTransport(transport);
    },
    hasRelayUser: (username) => core.hasRelayUser(username),
    attachStream: (stream) => core.attachStream(stream),
    stats: () => core.stats(),
    close: async () => {
      if (closed) return;
      core.close();
      closed = true;
      clearInterval(timer);
      const ended = once(socket, 'close');
      socket.close();
      await ended;
    },
  };
}

async function bindFirstFree(address: string, { min, max }: { min: number; max: number }): Promise<Socket> {
  for (let port = min; port <= max; port++) {
    const socket = createSocket({
      type: isIPv6(address) ? 'udp6' : 'udp4',
      recvBufferSize: SOCKET_BUFFER_BYTES,
      sendBufferSize: SOCKET_BUFFER_BYTES,
      // Addresses are literals: without this every send would wait for the next tick, after its buffer was reused.
      lookup: (host, _options, callback) => callback(null, host, isIPv6(host) ? 6 : 4),
    });
    try {
      // Listened for before, because with our lookup binding ends within the call.
      const listening = once(socket, 'listening');
      socket.bind({ port, address, exclusive: true });
      await listening;
      return socket;
    } catch (error) {
      socket.close();
      const { code } = error as NodeJS.ErrnoException;
      if (code === 'EADDRINUSE' || code === 'EACCES') continue;
      throw new WebrtcError('BAD_ADDRESS', `no UDP port can be bound on ${address}`, { cause: error });
    }
  }
  throw new WebrtcError('NO_FREE_PORT', `every UDP port of ${min}-${max} on ${address} is taken`);
}
