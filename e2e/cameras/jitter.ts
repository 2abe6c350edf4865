// A network with jitter: forwards what a server sends, in order, each piece after a random delay.
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

export interface Jitter {
  readonly port: number;
  close(): void;
}

export async function openJitter(target: number, mostMs: number): Promise<Jitter> {
  const sockets = new Set<Socket>();
  const server = createServer((near) => {
    const far = connect(target, '127.0.0.1');
    let last = Promise.resolve();
    far.on('data', (bytes) => {
      const due = new Promise<void>((resolve) => setTimeout(resolve, Math.random() * mostMs));
      last = last.then(async () => {
        await due;
        near.write(bytes);
      });
    });
    near.pipe(far);
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(one);
      one.on('error', () => {});
      one.on('close', () => other.destroy());
    }
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');

  return {
    port: (server.address() as AddressInfo).port,
    close: () => {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}
