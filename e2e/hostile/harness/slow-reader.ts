// A TCP proxy whose client has a narrow link: data from the node arrives at a fixed rate.
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

const TICK_MS = 20;

export interface SlowReader {
  /** `host:port` to connect to. */
  readonly host: string;
  close(): Promise<void>;
}

export async function slowReader(target: string, bytesPerSecond: number): Promise<SlowReader> {
  const [host = '', port = ''] = target.split(':');
  const sockets = new Set<Socket>();
  const perTick = Math.ceil((bytesPerSecond * TICK_MS) / 1000);

  const server = createServer((near) => {
    const far = connect(Number(port), host);
    sockets.add(near).add(far);
    for (const socket of [near, far]) socket.on('error', () => undefined);
    near.pipe(far);
    far.pause();
    const timer = setInterval(() => {
      // `read(n)` returns null while fewer than n bytes are available.
      const chunk: unknown = far.read(Math.min(perTick, far.readableLength)) ?? undefined;
      if (chunk !== undefined) near.write(chunk as Buffer);
      else far.read(0);
    }, TICK_MS);
    far.on('close', () => near.destroySoon());
    near.on('close', () => {
      clearInterval(timer);
      far.destroy();
      sockets.delete(near);
      sockets.delete(far);
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');

  return {
    host: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: async () => {
      const closed = once(server, 'close');
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
