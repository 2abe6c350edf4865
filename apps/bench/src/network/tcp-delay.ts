import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

export interface TcpDelay {
  readonly port: number;
  close(): Promise<void>;
}

/**
 * Opens a port on loopback that leads to another one, with a delay in each direction. What a client sends first comes a
 * round trip later still: the handshake, which ends here, would have taken that long.
 */
export async function openTcpDelay(target: { port: number; delayMs: number }): Promise<TcpDelay> {
  const { port, delayMs } = target;
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const behind = connect(port, '127.0.0.1');
    for (const [from, to, firstMs] of [
      [client, behind, 3 * delayMs],
      [behind, client, delayMs],
    ] as const) {
      sockets.add(from);
      from.setNoDelay(true);
      from.on('error', () => to.destroy());
      from.on('close', () => sockets.delete(from));
      delayed({ from, to, delayMs, firstMs });
    }
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');

  return {
    port: (server.address() as AddressInfo).port,
    close: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

interface Direction {
  readonly from: Socket;
  readonly to: Socket;
  readonly delayMs: number;
  /** Delay of what is sent first. */
  readonly firstMs: number;
}

function delayed({ from, to, delayMs, firstMs }: Direction): void {
  let last = performance.now() + firstMs;
  let before = Promise.resolve();
  const later = (pass: () => void): void => {
    last = Math.max(last, performance.now() + delayMs);
    const at = last;
    before = before.then(() => sleep(Math.max(0, at - performance.now()))).then(pass);
  };
  from.on('data', (bytes) => later(() => void to.write(bytes)));
  from.on('end', () => later(() => void to.end()));
}
