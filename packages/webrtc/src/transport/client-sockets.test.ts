import { once } from 'node:events';
import { createSocket, type Socket } from 'node:dgram';
import { afterEach, describe, expect, test } from '@jest/globals';
import { WebrtcError } from '../errors.js';
import {
  Closers,
  clientCertificate,
  credentials,
  exchangeMedia,
  openRecorded,
  openClient,
  openPort,
  user,
} from '../testing/port-fixture.js';
import { bindFirstFree, SHARES_PORTS } from './bind-port.js';
import { ClientSockets } from './client-sockets.js';

const closers = new Closers();
afterEach(() => closers.closeAll());
const onLinux = SHARES_PORTS ? describe : describe.skip;

async function bound(address = '127.0.0.1', range = { min: 0, max: 0 }): Promise<Socket> {
  const [socket] = await bindFirstFree([address], range);
  closers.add(async () => void socket.close());
  return socket;
}

describe('binding a port', () => {
  test('refuses a port that is in use, although its sockets share the number', async () => {
    const { port } = (await bound()).address();
    await expect(bindFirstFree(['127.0.0.1'], { min: port, max: port })).rejects.toThrow(WebrtcError);
    await expect(bindFirstFree(['0.0.0.0'], { min: port, max: port })).rejects.toThrow(`UDP port of ${port}-${port}`);
  });

  test('gives concurrent callers different ports', async () => {
    const { port } = (await bound()).address();
    const max = Math.min(65_535, port + 200);
    const sockets = await Promise.all(Array.from({ length: 8 }, () => bound('127.0.0.1', { min: port, max })));
    expect(new Set(sockets.map((socket) => socket.address().port)).size).toBe(8);
  });

  test('binds the same port on both IP families, free on both', async () => {
    const sockets = await bindFirstFree(['127.0.0.1', '::1'], { min: 0, max: 0 });
    const [first, second] = sockets;
    for (const each of sockets) closers.add(async () => void each?.close());
    expect(second?.address()).toMatchObject({ address: '::1', port: first.address().port });

    const other = createSocket('udp6').bind(0, '::1');
    await once(other, 'listening');
    closers.add(async () => void other.close());
    const { port } = other.address();
    const taken = bindFirstFree(['127.0.0.1', '::1'], { min: port, max: port });
    await expect(taken).rejects.toThrow(`UDP port of ${port}-${port} on 127.0.0.1 and ::1`);
  });

  test('skips a port that another program holds exclusively', async () => {
    const other = createSocket('udp4').bind(0, '127.0.0.1');
    await once(other, 'listening');
    closers.add(async () => void other.close());
    const { port } = other.address();
    await expect(bindFirstFree(['127.0.0.1'], { min: port, max: port })).rejects.toMatchObject({
      code: 'NO_FREE_PORT',
    });
  });
});

onLinux('sockets of single clients [needs linux]', () => {
  async function opened(max: number) {
    const listener = await bound();
    const received: string[] = [];
    let wake = (): void => undefined;
    const onMessage = (datagram: Buffer, from: { port: number }): void => {
      received.push(`${datagram.toString()} of ${from.port}`);
      wake();
    };
    listener.on('message', onMessage);
    const { port } = listener.address();
    const sockets = new ClientSockets({ addresses: ['127.0.0.1'], port, max, onMessage, onBusy: () => undefined });
    closers.add(async () => sockets.close());
    const until = async (line: string): Promise<void> => {
      while (!received.includes(line)) await new Promise<void>((resolve) => (wake = resolve));
    };
    return { sockets, port, received, until };
  }

  async function client(port: number): Promise<Socket> {
    const socket = createSocket('udp4');
    socket.connect(port, '127.0.0.1');
    await once(socket, 'connect');
    closers.add(async () => void socket.close());
    return socket;
  }

  test("exchanges a client's datagrams through its own socket, and strangers' through the shared one", async () => {
    const { sockets, port, until } = await opened(10);
    const [known, stranger] = [await client(port), await client(port)];
    const connection = sockets.connect({ port: known.address().port, address: '127.0.0.1', local: 0 });
    known.send('from the client');
    stranger.send('from a stranger');
    await until(`from the client of ${known.address().port}`);
    await until(`from a stranger of ${stranger.address().port}`);
    const answer = once(known, 'message');
    expect(connection?.send(Buffer.from('to the client'))).toBe(true);
    expect(String((await answer)[0])).toBe('to the client');
    connection?.close();
    known.send('after it was closed');
    await until(`after it was closed of ${known.address().port}`);
  });

  test('opens no more sockets than allowed, and a closed one makes room', async () => {
    const { sockets } = await opened(1);
    const first = sockets.connect({ port: 9, address: '127.0.0.1', local: 0 });
    expect(first).toBeDefined();
    expect(sockets.connect({ port: 10, address: '127.0.0.1', local: 0 })).toBeUndefined();
    first?.close();
    first?.close();
    expect(sockets.connect({ port: 10, address: '127.0.0.1', local: 0 })).toBeDefined();
    expect(sockets.count).toBe(1);
  });

  test('serves a client through the shared socket when the system refuses another', async () => {
    const { sockets } = await opened(10);
    expect(sockets.connect({ port: 9, address: 'fe80::1', local: 0 })).toBeUndefined();
    expect(sockets.count).toBe(0);
  });

  test.each([0, 1])(
    'carries media with %d such sockets for two clients, even after a move to a new address',
    async (n) => {
      const port = await openPort(closers, { maxClientSockets: n });
      const { fingerprint } = await clientCertificate();
      const pairs = await Promise.all(
        [1, 2].map(async (number) => {
          const recorded = openRecorded(port, {}, { ...user, username: `179:${number}` });
          const each = await openClient(closers, port);
          recorded.transport.negotiate({ generation: 1, ice: credentials(number), fingerprint });
          await each.check(credentials(number));
          await each.handshake();
          await recorded.until('dtls');
          return { recorded, each, number };
        }),
      );
      for (const { recorded, each } of pairs) await exchangeMedia(recorded, each, 1);
      expect(port.stats().connectedClients).toBe(n);
      for (const { recorded, each, number } of pairs) {
        await each.move();
        await each.check(credentials(number));
        expect(recorded.transport.pathState.remotePort).toBe(each.wire.local.port);
        await exchangeMedia(recorded, each, 2);
      }
    },
  );
});
