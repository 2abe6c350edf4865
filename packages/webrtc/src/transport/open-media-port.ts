import type { Socket } from 'node:dgram';
import { once } from 'node:events';
import { addressBytes } from '@bloom/net';
import { WebrtcError } from '../errors.js';
import { Nonces } from '../relay/nonces.js';
import type { MediaPort, MediaPortOptions } from './api.js';
import { advertisedPort, bindFirstFree, SHARES_PORTS } from './bind-port.js';
import { ClientSockets } from './client-sockets.js';
import { KeptSlots } from './kept-slots.js';
import { MediaPortCore } from './media-port-core.js';

const TICK_MS = 250;
/** Bound on per-client sockets, per port. */
const MAX_CLIENT_SOCKETS = 1_000;

/**
 * Binds the first free UDP port of the range and serves it. Rejects with `WebrtcError` `NO_FREE_PORT` or `BAD_ADDRESS`.
 */
export async function openMediaPort(options: MediaPortOptions): Promise<MediaPort> {
  const advertisedBytes = addressBytes(options.advertisedAddress);
  if (advertisedBytes === undefined) {
    throw new WebrtcError('BAD_ADDRESS', `the advertised address ${options.advertisedAddress} is not an IP address`);
  }
  const { listenAddress, secondListenAddress, moreListenAddresses = [] } = options;
  const second = secondListenAddress === undefined ? [] : [secondListenAddress];
  const addresses = [listenAddress, ...second, ...moreListenAddresses];
  const sockets = await bindFirstFree(addresses, options.portRange);
  const { port } = sockets[0].address();
  let closed = false;
  /** Sockets with sends that the kernel has not accepted yet. */
  const busy = new Set<Socket>();
  const kept = new KeptSlots(
    () => {
      for (const each of busy) if (queued(each) === 0) busy.delete(each);
      return busy.size;
    },
    (slot) => options.onSlotFree?.(slot),
  );
  const onMessage = (datagram: Buffer, from: { address: string; port: number }, local: number): void => {
    try {
      core.receive(datagram, from.address, from.port, local);
    } catch {
      // An exception while handling one datagram must not end the worker and all its rooms.
      core.countFault();
    }
  };
  const clients = new ClientSockets({
    addresses,
    ipv6Only: addresses.length > 1,
    port,
    max: SHARES_PORTS ? (options.maxClientSockets ?? MAX_CLIENT_SOCKETS) : 0,
    onMessage,
    onBusy: (each) => busy.add(each),
  });

  const core = new MediaPortCore({
    advertised: { bytes: advertisedBytes, port: advertisedPort(port, options.advertisedPorts) },
    certificate: options.certificate,
    nonces: new Nonces(options.nonceSecret),
    clock: options.clock ?? (() => performance.timeOrigin + performance.now()),
    sockets: {
      send: (datagram, { port: toPort, address, local }) => {
        const own = sockets[local];
        if (closed || own === undefined) return true;
        own.send(datagram, toPort, address);
        if (own.getSendQueueCount() === 0) return true;
        busy.add(own);
        return false;
      },
      connect: (to) => clients.connect(to),
    },
    nextTurn: (run) => void setImmediate(run),
    onSlotKept: (slot) => kept.add(slot),
  });
  for (const [local, each] of sockets.entries()) {
    each.on('message', (datagram, from) => onMessage(datagram, from, local));
    // ICMP errors of single clients surface here on some systems; the port itself stays usable.
    each.on('error', () => undefined);
  }
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
      clients.close();
      const ended = sockets.map((each) => once(each, 'close'));
      for (const each of sockets) each.close();
      await Promise.all(ended);
    },
  };
}

function queued(socket: Socket): number {
  try {
    return socket.getSendQueueCount();
  } catch {
    // The socket is closed, so it sends nothing more.
    return 0;
  }
}
